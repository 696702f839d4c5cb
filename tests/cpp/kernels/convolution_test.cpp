#include "kernels/convolution.h"

#include <gmock/gmock.h>

#include "kernels/kernel_tensors.h"

namespace umbra::kernels {
namespace {

using testing::ElementsAre;

ConvolutionOptions options(int64_t dims, int64_t stride = 1, int64_t padding = 0) {
  auto all = [&](int64_t value) { return SmallVector<int64_t>(dims, value); };
  return {all(stride), all(padding), all(1), all(0)};
}

TEST(Convolution, OneDimension) {
  Tensor out = empty_tensor({1, 1, 4});
  convolution(out, floats({1, 1, 4}, {1, 2, 3, 4}), floats({1, 1, 3}, {1, 10, 100}), floats({1}, {0.5}),
              options(1, 1, 1));
  EXPECT_THAT(values(out), ElementsAre(210.5, 321.5, 432.5, 43.5));
}

TEST(Convolution, GroupsStayApart) {
  Tensor out = empty_tensor({1, 2, 2});
  ConvolutionOptions grouped = options(1);
  grouped.groups = 2;
  convolution(out, floats({1, 2, 2}, {1, 2, 3, 4}), floats({2, 1, 1}, {10, 100}), {}, grouped);
  EXPECT_THAT(values(out), ElementsAre(10, 20, 300, 400));
}

TEST(Convolution, StrideLeavesTheEdgeOut) {
  Tensor out = empty_tensor({1, 1, 1, 1});
  convolution(out, counting({1, 1, 3, 3}), floats({1, 1, 2, 2}, {1, 1, 1, 1}), {}, options(2, 2));
  EXPECT_THAT(values(out), ElementsAre(8));
}

// With integers as values, every type gives the same result; this compares oneDNN with the products of windows.
TEST(Convolution, DoubleAgreesWithFloat) {
  Tensor narrow = empty_tensor({2, 4, 3, 4}), wide = empty_tensor({2, 4, 3, 4}, DType::Float64);
  convolution(narrow, counting({2, 2, 5, 6}), counting({4, 2, 3, 3}), {}, options(2));
  convolution(wide, counting<double>({2, 2, 5, 6}), counting<double>({4, 2, 3, 3}), {}, options(2));
  std::vector<double> widened = values<double>(wide);
  EXPECT_THAT(values(narrow),
              testing::Pointwise(testing::FloatEq(), std::vector<float>(widened.begin(), widened.end())));
}

// Kernels of one element are products of planes where these are large.
TEST(Convolution, KernelsOfOneElementMixTheChannelsOfLargePlanes) {
  const int64_t side = 18;
  Tensor image = empty_tensor({3, 2, side, side}), out = empty_tensor({3, 3, side, side});
  for (int64_t i = 0; i < image.numel(); ++i) image.data<float>()[i] = static_cast<float>(i % 19);
  for (bool with_bias : {false, true}) {
    convolution(out, image, floats({3, 2, 1, 1}, {1, 0, 2, 3, 0, 5}),
                with_bias ? floats({3}, {100, 200, 300}) : Tensor(), options(2));
    for (int64_t sample = 0; sample < 3; ++sample)
      for (int64_t at = 0; at < side * side; ++at) {
        const float *from = image.data<float>() + sample * 2 * side * side + at, second = from[side * side];
        const float wanted[] = {from[0], 2 * from[0] + 3 * second, 5 * second};
        for (int64_t c = 0; c < 3; ++c)
          ASSERT_EQ(out.data<float>()[(sample * 3 + c) * side * side + at],
                    wanted[c] + (with_bias ? static_cast<float>(100 * (c + 1)) : 0.0f));
      }
  }
}

TEST(Convolution, TransposedSpreadsTheKernel) {
  for (DType dtype : {DType::Float32, DType::Int64}) {
    ConvolutionOptions transposed = options(1, 2);
    transposed.transposed = true;
    transposed.output_padding = {1};
    if (dtype == DType::Float32) {
      Tensor out = empty_tensor({1, 1, 5});
      convolution(out, floats({1, 1, 2}, {1, 2}), floats({1, 1, 2}, {1, 10}), floats({1}, {1}), transposed);
      EXPECT_THAT(values(out), ElementsAre(2, 11, 3, 21, 1));
    } else {
      Tensor out = empty_tensor({1, 1, 5}, dtype);
      convolution(out, longs({1, 1, 2}, {1, 2}), longs({1, 1, 2}, {1, 10}), longs({1}, {1}), transposed);
      EXPECT_THAT(values<int64_t>(out), ElementsAre(2, 11, 3, 21, 1));
    }
  }
}

TEST(Convolution, Gradients) {
  Tensor input = floats({1, 1, 3}, {1, 2, 3}), weight = floats({1, 1, 2}, {10, 100}), grad = floats({1, 1, 2}, {1, 2});
  Tensor grad_input = empty_tensor({1, 1, 3}), grad_weight = empty_tensor({1, 1, 2}), grad_bias = empty_tensor({1});
  convolution_backward(grad_input, grad_weight, grad_bias, grad, input, weight, options(1));
  EXPECT_THAT(values(grad_input), ElementsAre(10, 120, 200));
  EXPECT_THAT(values(grad_weight), ElementsAre(5, 8));
  EXPECT_THAT(values(grad_bias), ElementsAre(3));
}

TEST(Convolution, AnEmptyBatchHasZeroGradients) {
  Tensor grad_weight = counting({1, 1, 2}), empty_in = empty_tensor({0, 1, 3}), empty_out = empty_tensor({0, 1, 2});
  convolution_backward({}, grad_weight, {}, empty_out, empty_in, counting({1, 1, 2}), options(1));
  EXPECT_THAT(values(grad_weight), ElementsAre(0, 0));
}

}  // namespace
}  // namespace umbra::kernels
