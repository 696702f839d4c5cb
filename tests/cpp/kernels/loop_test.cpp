#include "kernels/loop.h"

#include <gtest/gtest.h>

#include "kernels/kernel_tensors.h"

namespace umbra::kernels {
namespace {

TEST(LoopGeometry, WalksContiguousTensorsAsOneRun) {
  Tensor a = empty_tensor({2, 3, 4}, DType::Float32), b = empty_tensor({2, 3, 4}, DType::Float64);
  LoopGeometry loop(a, {&b});
  EXPECT_EQ(loop.dims(), 1);
  EXPECT_EQ(loop.size(0), 24);
  EXPECT_EQ(loop.stride(0, 0), 4);
  EXPECT_EQ(loop.stride(0, 1), 8);
}

TEST(LoopGeometry, OrdersDimensionsByTheOutputsStrides) {
  Tensor out = strided(empty_tensor({60}, DType::Float32), {3, 4, 5}, {1, 3, 12});  // the first dimension is innermost
  LoopGeometry loop(out);
  EXPECT_EQ(loop.dims(), 1);
  EXPECT_EQ(loop.size(0), 60);
}

TEST(LoopGeometry, BroadcastsByStepsOfZero) {
  Tensor out = empty_tensor({4, 5}, DType::Float32), row = empty_tensor({5}, DType::Float32),
         column = empty_tensor({4, 1}, DType::Float32);
  LoopGeometry loop(out, {&row, &column});
  ASSERT_EQ(loop.dims(), 2);
  EXPECT_EQ(loop.stride(0, 1), 4);
  EXPECT_EQ(loop.stride(1, 1), 0);
  EXPECT_EQ(loop.stride(0, 2), 0);
  EXPECT_EQ(loop.stride(1, 2), 4);
}

TEST(LoopGeometry, RefusesWhatDoesNotBroadcast) {
  Tensor out = empty_tensor({4, 5}, DType::Float32), other = empty_tensor({4}, DType::Float32);
  EXPECT_THROW(LoopGeometry(out, {&other}), Error);
}

TEST(LoopGeometry, VisitsEveryElementOnceOverThreads) {
  Tensor out = strided(empty_tensor({7 * 2 * 11 * 13 * 3}, DType::Int32), {7, 11, 13}, {11 * 13 * 3, 13 * 3, 3});
  fill(out, 0);
  LoopGeometry loop(out);
  for (int64_t grain : {1, 10, 100000}) {
    loop.for_each_inner(
        [](char** data, const int64_t* strides, int64_t n) {
          for (int64_t i = 0; i < n; ++i) ++*reinterpret_cast<int32_t*>(data[0] + i * strides[0]);
        },
        grain);
  }
  for (int32_t value : values_of<int32_t>(out)) EXPECT_EQ(value, 3);
}

TEST(LoopGeometry, TakesEmptyAndZeroDimensionalTensors) {
  int calls = 0;
  LoopGeometry(empty_tensor({0, 3}, DType::Float32)).for_each_inner([&](char**, const int64_t*, int64_t) { ++calls; });
  EXPECT_EQ(calls, 0);
  LoopGeometry(empty_tensor({}, DType::Float32)).for_each_inner([&](char**, const int64_t*, int64_t n) { calls += n; });
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace umbra::kernels
