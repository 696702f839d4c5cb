#include "kernels/copy.h"

#include <gtest/gtest.h>

#include <limits>

#include "kernels/kernel_tensors.h"

namespace umbra::kernels {
namespace {

TEST(Copy, TransposesOfAnySizeAndItem) {
  for (DType dtype : {DType::UInt8, DType::BFloat16, DType::Float32, DType::Float64, DType::Complex128}) {
    for (auto [rows, columns] : {std::pair{3, 5}, {16, 16}, {33, 70}, {100, 9}}) {
      Tensor in = cast(counting<int64_t>({rows, columns}), dtype), out = empty_tensor({columns, rows}, dtype);
      copy(out, strided(in, {columns, rows}, {1, columns}));
      Tensor expected = cast(in, DType::Int64), seen = cast(out, DType::Int64);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
          ASSERT_EQ(seen.data<int64_t>()[c * rows + r], expected.data<int64_t>()[r * columns + c]);
    }
  }
}

TEST(Copy, PermutesBatches) {
  Tensor in = counting<int32_t>({2, 9, 10, 11}), out = empty_tensor({2, 10, 11, 9}, DType::Int32);
  copy(out, strided(in, {2, 10, 11, 9}, {990, 11, 1, 110}));
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t c = 0; c < 9; ++c)
      for (int64_t i = 0; i < 110; ++i)
        ASSERT_EQ(out.data<int32_t>()[n * 990 + i * 9 + c], in.data<int32_t>()[n * 990 + c * 110 + i]);
}

TEST(Copy, CastsBetweenKindsOfNumbers) {
  using C = std::complex<float>;
  EXPECT_EQ(values_of<int64_t>(row_of<float>({1.9f, -1.9f})), (std::vector<int64_t>{1, -1}));
  EXPECT_EQ(values_of<uint8_t>(row_of<float>({-1.0f, 300.0f})), (std::vector<uint8_t>{255, 44}));
  EXPECT_EQ(values_of<float>(row_of<C>({C(1, 2)})), std::vector<float>{1});
  EXPECT_EQ(values_of<C>(row_of<int32_t>({3})), std::vector<C>{C(3, 0)});
  Tensor flags = empty_tensor({3}, DType::Bool);
  copy(flags, row_of<float>({0, 0.25f, std::numeric_limits<float>::quiet_NaN()}));
  EXPECT_EQ(values_of<int32_t>(flags), (std::vector<int32_t>{0, 1, 1}));
}

TEST(Copy, RoundTripsNarrowFloats) {
  for (DType dtype : {DType::Float16, DType::BFloat16, DType::Float8E5M2, DType::Float8E4M3}) {
    Tensor narrow = cast(row_of<double>({0, 1, -2, 0.5, 1.75, 3, 4, 8, -12}), dtype);
    EXPECT_EQ(values_of<double>(narrow), (std::vector<double>{0, 1, -2, 0.5, 1.75, 3, 4, 8, -12})) << name(dtype);
  }
}

TEST(Copy, BroadcastsAndSkips) {
  Tensor out = empty_tensor({2, 3}, DType::Float64), row = row_of<int32_t>({1, 2, 3});
  copy(out, row);
  EXPECT_EQ(values_of<double>(out), (std::vector<double>{1, 2, 3, 1, 2, 3}));
  Tensor gaps = strided(counting<int64_t>({12}), {4}, {3}),
         spread = strided(empty_tensor({8}, DType::Float32), {4}, {2});
  copy(spread, gaps);
  EXPECT_EQ(values_of<float>(spread), (std::vector<float>{0, 3, 6, 9}));
}

TEST(Fill, WritesOnlyWhatTheTensorCovers) {
  Tensor memory = counting<int32_t>({6});
  fill(strided(memory, {3}, {2}), 7);
  EXPECT_EQ(values_of<int32_t>(memory), (std::vector<int32_t>{7, 1, 7, 3, 7, 5}));
  Tensor number = empty_tensor({}, DType::BFloat16);
  fill(number, 2.5);
  EXPECT_EQ(values_of<float>(number), std::vector<float>{2.5f});
}

TEST(Arange, CountsFromTheIndex) {
  Tensor out = empty_tensor({5}, DType::Float32);
  arange(out, 1, 0.1);
  for (int i = 0; i < 5; ++i) EXPECT_FLOAT_EQ(out.data<float>()[i], 1 + 0.1f * i);
  Tensor down = empty_tensor({3}, DType::Int64);
  arange(down, int64_t{1} << 60, -1);
  EXPECT_EQ(values_of<int64_t>(down)[2], (int64_t{1} << 60) - 2);
}

TEST(Contiguous, CopiesOnlyWhenNeeded) {
  Tensor x = counting({2, 3});
  EXPECT_TRUE(contiguous(x).is_same(x));
  Tensor turned = contiguous(strided(x, {3, 2}, {1, 3}));
  EXPECT_TRUE(turned.is_contiguous());
  EXPECT_EQ(values_of<float>(turned), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_TRUE(cast(x, DType::Float32).is_same(x));
}

}  // namespace
}  // namespace umbra::kernels
