#include "kernels/pooling.h"

#include <gmock/gmock.h>

#include "kernels/kernel_tensors.h"

namespace umbra::kernels {
namespace {

using testing::ElementsAre;

constexpr int64_t kTwo[] = {2}, kOne[] = {1}, kThree[] = {3}, kTwoTwo[] = {2, 2};
IntArrayRef ref(const int64_t (&values)[1]) { return {values, 1}; }

TEST(MaxPool, TakesTheFirstOfEqualsAndItsPosition) {
  Tensor out = empty_tensor({1, 2}), indices = empty_tensor({1, 2}, DType::Int64);
  max_pool(out, indices, floats({1, 4}, {3, 3, 1, 2}), {.kernel = ref(kTwo), .stride = ref(kTwo)});
  EXPECT_THAT(values(out), ElementsAre(3, 2));
  EXPECT_THAT(values<int64_t>(indices), ElementsAre(0, 3));
}

TEST(MaxPool, NanIsLargest) {
  Tensor out = empty_tensor({1, 1}), indices = empty_tensor({1, 1}, DType::Int64);
  max_pool(out, indices, floats({1, 3}, {1, NAN, 9}), {.kernel = ref(kThree), .stride = ref(kThree)});
  EXPECT_TRUE(std::isnan(values(out)[0]));
  EXPECT_THAT(values<int64_t>(indices), ElementsAre(1));
}

TEST(MaxPool, GradientsGoToTheMaximum) {
  Tensor grad = empty_tensor({1, 4});
  max_pool_backward(grad, floats({1, 2}, {5, 7}), longs({1, 2}, {1, 1}), 1);
  EXPECT_THAT(values(grad), ElementsAre(0, 12, 0, 0));
}

TEST(MaxPool, ChannelsLastAgrees) {
  IntArrayRef kernel(kTwoTwo, 2);
  Tensor planes = counting({1, 3, 4, 4}),
         last = allocate_tensor({1, 3, 4, 4}, {48, 1, 12, 3}, DType::Float32, Device());
  for (int64_t c = 0; c < 3; ++c)
    for (int64_t i = 0; i < 16; ++i)
      last.data<float>()[i * 3 + c] = planes.data<float>()[c * 16 + i] = std::sin(static_cast<float>(c * 16 + i));
  Tensor out = empty_tensor({1, 3, 2, 2}), indices = empty_tensor({1, 3, 2, 2}, DType::Int64);
  max_pool(out, indices, planes, {.kernel = kernel, .stride = kernel});
  auto expected = values(out);
  auto positions = values<int64_t>(indices);
  max_pool(out, indices, last, {.kernel = kernel, .stride = kernel});
  EXPECT_EQ(values(out), expected);
  EXPECT_EQ(values<int64_t>(indices), positions);
}

TEST(AveragePool, PaddingMayCount) {
  Tensor out = empty_tensor({1, 3}), self = floats({1, 4}, {1, 2, 3, 4});
  PoolOptions options = {.kernel = ref(kTwo), .stride = ref(kTwo), .padding = ref(kOne)};
  average_pool(out, self, options);
  EXPECT_THAT(values(out), ElementsAre(0.5, 2.5, 2));
  options.count_include_pad = false;
  average_pool(out, self, options);
  EXPECT_THAT(values(out), ElementsAre(1, 2.5, 4));
  options.divisor = 10;
  average_pool(out, self, options);
  EXPECT_THAT(values(out), ElementsAre(0.1f, 0.5f, 0.4f));
}

TEST(AveragePool, AdaptiveWindowsOverlap) {
  Tensor out = empty_tensor({1, 2}), grad = empty_tensor({1, 3});
  adaptive_average_pool(out, floats({1, 3}, {1, 2, 3}), 1);
  EXPECT_THAT(values(out), ElementsAre(1.5, 2.5));
  adaptive_average_pool_backward(grad, floats({1, 2}, {2, 4}), 1);
  EXPECT_THAT(values(grad), ElementsAre(1, 3, 2));
}

}  // namespace
}  // namespace umbra::kernels
