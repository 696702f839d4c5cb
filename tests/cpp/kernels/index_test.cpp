#include "kernels/index.h"

#include <gmock/gmock.h>

#include <limits>

#include "kernels/concatenate.h"
#include "kernels/embedding.h"
#include "kernels/gather.h"
#include "kernels/kernel_tensors.h"
#include "kernels/masks.h"
#include "kernels/parallel.h"
#include "kernels/take.h"

namespace umbra::kernels {
namespace {

using testing::ElementsAre;

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Index, NegativePositionsCountFromTheEnd) {
  Tensor out = empty_tensor({2, 2});
  index(out, counting({3, 2}), std::vector<Tensor>{longs({2}, {-1, 0})});
  EXPECT_THAT(values(out), ElementsAre(4, 5, 0, 1));
}

TEST(Index, IndexTensorsBroadcastTogether) {
  Tensor out = empty_tensor({2, 2});
  index(out, counting({3, 4}), std::vector<Tensor>{longs({2, 1}, {0, 2}), longs({2}, {1, 3})});
  EXPECT_THAT(values(out), ElementsAre(1, 3, 9, 11));
}

TEST(Index, DimensionsOfSeparatedIndicesComeFirst) {
  std::vector<Tensor> indices = {longs({2}, {0, 1}), Tensor(), longs({2}, {3, 0})};
  EXPECT_THAT(indexed_shape({2, 3, 4}, indices), ElementsAre(2, 3));
  Tensor out = empty_tensor({2, 3});
  index(out, counting({2, 3, 4}), indices);
  EXPECT_THAT(values(out), ElementsAre(3, 7, 11, 12, 16, 20));
}

TEST(Index, AdjacentIndicesKeepTheirPlace) {
  EXPECT_THAT(indexed_shape({2, 3, 4}, std::vector<Tensor>{Tensor(), longs({2, 5}, std::vector<int64_t>(10))}),
              ElementsAre(2, 2, 5, 4));
}

TEST(Index, OutOfRangeNamesThePosition) {
  auto call = [] { index(empty_tensor({1}), counting({3}), std::vector<Tensor>{longs({1}, {5})}); };
  EXPECT_THROW(call(), IndexError);
  EXPECT_EQ(message_of(call), "index 5 is out of bounds for dimension 0 with size 3");
}

TEST(Index, PutAccumulatesRepeatedPositions) {
  Tensor self = counting({3});
  index_put(self, std::vector<Tensor>{longs({3}, {1, 1, 2})}, floats({1}, {10}), true);
  EXPECT_THAT(values(self), ElementsAre(0, 21, 12));
}

TEST(Index, PutIntoAStridedTensor) {
  Tensor self = counting({2, 3});
  index_put(transposed(self), std::vector<Tensor>{longs({1}, {2})}, floats({2}, {7, 8}), false);
  EXPECT_THAT(values(self), ElementsAre(0, 1, 7, 3, 4, 8));
}

TEST(Index, SelectAddCopyFill) {
  Tensor out = empty_tensor({2, 2}), self = counting({2, 3});
  index_select(out, self, 1, longs({2}, {2, 0}));
  EXPECT_THAT(values(out), ElementsAre(2, 0, 5, 3));
  index_add(self, 1, longs({2}, {0, 0}), floats({2, 2}, {1, 2, 3, 4}), 10);
  EXPECT_THAT(values(self), ElementsAre(30, 1, 2, 73, 4, 5));
  index_copy(self, 0, longs({1}, {1}), floats({1, 3}, {7, 8, 9}));
  EXPECT_THAT(values(self), ElementsAre(30, 1, 2, 7, 8, 9));
  index_fill(self, 1, longs({1}, {-1}), 0.5);
  EXPECT_THAT(values(self), ElementsAre(30, 1, 0.5, 7, 8, 0.5));
}

TEST(Index, TakeAndPutSeeOneRow) {
  Tensor self = transposed(counting({2, 3})), out = empty_tensor({2});
  take(out, self, longs({2}, {1, -1}));
  EXPECT_THAT(values(out), ElementsAre(3, 5));
  put(self, longs({2}, {0, 0}), floats({2}, {1, 2}), true);
  EXPECT_THAT(values(self), ElementsAre(3, 3, 1, 4, 2, 5));
}

TEST(Index, NonzeroIsInRowMajorOrder) {
  Tensor self = transposed(floats({2, 2}, {0, NAN, 3, 0}));
  ASSERT_EQ(count_nonzero(self), 2);
  Tensor out = empty_tensor({2, 2}, DType::Int64);
  nonzero(out, self);
  EXPECT_THAT(values<int64_t>(out), ElementsAre(0, 1, 1, 0));
}

TEST(Index, Masks) {
  Tensor out = empty_tensor({2}), self = counting({2, 2}), mask = bools({2}, {0, 1});
  masked_select(out, self, mask);
  EXPECT_THAT(values(out), ElementsAre(1, 3));
  masked_scatter(self, mask, floats({3}, {8, 9, 10}));
  EXPECT_THAT(values(self), ElementsAre(0, 8, 2, 9));
  EXPECT_EQ(message_of([&] { masked_scatter(self, mask, floats({1}, {8})); }),
            "Number of elements of source < number of ones in mask");
}

TEST(Gather, AlongEachDimension) {
  Tensor out = empty_tensor({1, 3});
  gather(out, counting({2, 3}), 0, longs({1, 3}, {1, 0, 1}));
  EXPECT_THAT(values(out), ElementsAre(3, 1, 5));
  out = empty_tensor({2, 1});
  gather(out, counting({2, 3}), 1, longs({2, 1}, {2, 0}));
  EXPECT_THAT(values(out), ElementsAre(2, 3));
}

TEST(Gather, NegativePositionsAreRefused) {
  EXPECT_EQ(message_of([] { gather(empty_tensor({1}), counting({3}), 0, longs({1}, {-1})); }),
            "index -1 is out of bounds for dimension 0 with size 3");
}

TEST(Scatter, Reductions) {
  auto scattered = [](ScatterReduce reduce, bool include_self) {
    Tensor self = floats({2}, {10, 10});
    scatter(self, 0, longs({2}, {0, 0}), floats({2}, {2, 4}), reduce, include_self);
    return values(self);
  };
  EXPECT_THAT(scattered(ScatterReduce::Sum, true), ElementsAre(16, 10));
  EXPECT_THAT(scattered(ScatterReduce::Sum, false), ElementsAre(6, 10));
  EXPECT_THAT(scattered(ScatterReduce::Product, false), ElementsAre(8, 10));
  EXPECT_THAT(scattered(ScatterReduce::Mean, false), ElementsAre(3, 10));
  EXPECT_THAT(scattered(ScatterReduce::Max, false), ElementsAre(4, 10));
  EXPECT_THAT(scattered(ScatterReduce::Min, true), ElementsAre(2, 10));
}

TEST(Scatter, IntegerMeanRoundsDown) {
  Tensor self = longs({1}, {0});
  scatter(self, 0, longs({2}, {0, 0}), longs({2}, {-1, -2}), ScatterReduce::Mean, false);
  EXPECT_THAT(values<int64_t>(self), ElementsAre(-2));
}

TEST(Embedding, RowsAndTheirGradient) {
  Tensor out = empty_tensor({2, 1, 2}), indices = longs({2, 1}, {2, 2});
  embedding(out, counting({3, 2}), indices);
  EXPECT_THAT(values(out), ElementsAre(4, 5, 4, 5));
  Tensor grad = empty_tensor({3, 2});
  embedding_dense_backward(grad, floats({2, 1, 2}, {1, 2, 3, 4}), indices, -1, false);
  EXPECT_THAT(values(grad), ElementsAre(0, 0, 0, 0, 4, 6));
  embedding_dense_backward(grad, floats({2, 1, 2}, {1, 2, 3, 4}), indices, -1, true);
  EXPECT_THAT(values(grad), ElementsAre(0, 0, 0, 0, 2, 3));
  embedding_dense_backward(grad, floats({2, 1, 2}, {1, 2, 3, 4}), indices, 2, false);
  EXPECT_THAT(values(grad), ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(Concatenate, TensorsOfAnyStrides) {
  Tensor out = empty_tensor({2, 3});
  cat(out, std::vector<Tensor>{floats({2, 1}, {1, 2}), empty_tensor({0}), transposed(floats({2, 2}, {3, 4, 5, 6}))}, 1);
  EXPECT_THAT(values(out), ElementsAre(1, 3, 5, 2, 4, 6));
}

TEST(Concatenate, FlipAndRoll) {
  Tensor out = empty_tensor({2, 3}), self = counting({2, 3});
  flip(out, self, {0, 1});
  EXPECT_THAT(values(out), ElementsAre(5, 4, 3, 2, 1, 0));
  roll(out, self, {1}, {1});
  EXPECT_THAT(values(out), ElementsAre(2, 0, 1, 5, 3, 4));
  roll(out, self, {-1}, {});
  EXPECT_THAT(values(out), ElementsAre(1, 2, 3, 4, 5, 0));
  roll(out, self, {6}, {1});
  EXPECT_EQ(values(out), values(self));
}

TEST(Concatenate, RollOfPiecesOfLinesIsThatOfAnyStrides) {
  Tensor self = counting({3, 5, 7});
  for (int64_t dim : {1, 2})
    for (int64_t shift : {-9, -1, 0, 2, 5}) {
      Tensor out = empty_tensor({3, 5, 7}), turned = empty_tensor({7, 5, 3});
      roll(out, self, {shift}, {dim});
      roll(turned, transposed(self, 0, 2), {shift}, {2 - dim});
      EXPECT_EQ(values(out), values(transposed(turned, 0, 2))) << dim << " by " << shift;
    }
}

TEST(Concatenate, TrianglesAndRepeats) {
  Tensor out = empty_tensor({2, 3}), self = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  tril(out, self, 0);
  EXPECT_THAT(values(out), ElementsAre(1, 0, 0, 4, 5, 0));
  triu(out, self, 1);
  EXPECT_THAT(values(out), ElementsAre(0, 2, 3, 0, 0, 6));
  Tensor repeated = empty_tensor({3}, DType::Int64);
  repeat_interleave(repeated, longs({3}, {1, 0, 2}));
  EXPECT_THAT(values<int64_t>(repeated), ElementsAre(0, 2, 2));
}

TEST(Index, NothingIsWrittenWhereAPositionDoesNotFit) {
  Tensor self = counting({4});
  auto put = [&] { index_put(self, std::vector<Tensor>{longs({3}, {0, -1, 4})}, floats({1}, {10}), false); };
  EXPECT_EQ(message_of(put), "index 4 is out of bounds for dimension 0 with size 4");
  EXPECT_THAT(values(self), ElementsAre(0, 1, 2, 3));
  constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  for (int64_t position : {least, most, int64_t{-5}, int64_t{4}})
    EXPECT_THROW(index(empty_tensor({1}), self, std::vector<Tensor>{longs({1}, {position})}), IndexError);
  for (int64_t position : {least, most, int64_t{-1}, int64_t{4}})
    EXPECT_THROW(gather(empty_tensor({1}), self, 0, longs({1}, {position})), Error);
}

TEST(Index, TensorsWithoutElementsAreLeftAlone) {
  Tensor none = empty_tensor({0, 3, 2}), out = empty_tensor({0, 2, 2});
  index_select(out, none, 1, longs({2}, {0, 2}));
  index_fill(none, 1, longs({2}, {0, 2}), 1);
  index_add(none, 1, longs({2}, {0, 2}), out, 1);
  EXPECT_EQ(none.numel(), 0);
}

TEST(Index, LongIndicesOfEveryLayoutAgree) {
  constexpr int64_t n = 3000;
  Tensor self = counting({n}), twice = empty_tensor({n, 2}, DType::Int64), out = empty_tensor({n});
  for (int64_t i = 0; i < n; ++i) twice.data<int64_t>()[2 * i] = (i * 7 + 3) % n;
  Tensor apart = strided(twice, {n}, {2}), together = contiguous(apart);
  std::vector<float> wanted;
  for (int64_t i = 0; i < n; ++i) wanted.push_back(static_cast<float>((i * 7 + 3) % n));
  for (const Tensor& positions : {apart, together, cast(together, DType::Int32)}) {
    index_select(out, self, 0, positions);
    EXPECT_EQ(values(out), wanted);
  }
  for (int64_t i = 0; i < n; ++i) together.data<int64_t>()[i] -= n;
  index(out, self, std::vector<Tensor>{together});
  EXPECT_EQ(values(out), wanted);
}

TEST(Index, MasksFindTheirElementsInOrder) {
  constexpr int64_t n = 1100;
  Tensor self = counting({2, n}), mask = empty_tensor({2, n}, DType::Bool);
  std::vector<float> wanted;
  for (int64_t i = 0; i < 2 * n; ++i)
    if ((mask.data<bool>()[i] = i * i % 7 < 3)) wanted.push_back(static_cast<float>(i));
  int64_t count = count_nonzero(mask);
  ASSERT_EQ(count, static_cast<int64_t>(wanted.size()));
  Tensor out = empty_tensor({count}), places = empty_tensor({count, 2}, DType::Int64);
  masked_select(out, self, mask);
  EXPECT_EQ(values(out), wanted);
  nonzero(places, mask);
  for (int64_t i = 0; i < count; ++i)
    EXPECT_EQ(places.data<int64_t>()[2 * i] * n + places.data<int64_t>()[2 * i + 1], static_cast<int64_t>(wanted[i]));
}

TEST(Index, ThreadsFindWhatIsNotZeroInOrder) {
  int before = num_threads();
  for (int threads : {1, 2, 5}) {
    set_num_threads(threads);
    for (int64_t width : {1, 3, 700, 45000}) {
      const int64_t rows = 90001 / width + 1;
      Tensor mask = empty_tensor({rows, width}, DType::Bool);
      std::vector<int64_t> wanted;
      for (int64_t i = 0; i < mask.numel(); ++i)
        if ((mask.data<bool>()[i] = i * i % 7 < 3)) wanted.push_back(i);
      Tensor places = empty_tensor({count_nonzero(mask), 2}, DType::Int64);
      nonzero(places, mask);
      ASSERT_EQ(places.size(0), static_cast<int64_t>(wanted.size()));
      const auto* at = places.data<int64_t>();
      for (size_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(at[2 * i] * width + at[2 * i + 1], wanted[i]);
    }
  }
  set_num_threads(before);
}

TEST(Index, NarrowFloatsAreAddedOneRoundingAtATime) {
  constexpr int64_t width = 600;
  Tensor self = empty_tensor({1, width}, DType::Float16), source = empty_tensor({3, width}, DType::Float16);
  for (int64_t j = 0; j < width; ++j) self.data<Half>()[j] = Half(2048.0f);
  for (int64_t i = 0; i < 3 * width; ++i) source.data<Half>()[i] = Half(1.0f);
  index_add(self, 0, longs({3}, {0, 0, 0}), source, 1);
  for (float value : values_of<float>(self)) EXPECT_EQ(value, 2048.0f);
}

}  // namespace
}  // namespace umbra::kernels
