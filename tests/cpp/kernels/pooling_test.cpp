#include "kernels/pooling.h"

#include <gmock/gmock.h>

#include "kernels/kernel_tensors.h"

namespace umbra::kernels {
namespace {

using testing::ElementsAre;

constexpr int64_t kTwo[] = {2}, kOne[] = {1}, kThree[] = {3}, kTwoTwo[] = {2, 2};
template <size_t N> IntArrayRef ref(const int64_t (&values)[N]) { return {values, N}; }

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

// Long rows are pooled row by row, short ones window by window: a row of both kinds of planes gives the same.
TEST(Pool, LongRowsGiveWhatTheirWindowsGive) {
  for (int64_t width : {8, 16, 17, 40})
    for (int64_t stride : {1, 2, 3})
      for (int64_t padding : {0, 1})
        for (int64_t dilation : {1, 2}) {
          int64_t reach = 2 * dilation + 1, n = (width + 2 * padding - reach) / stride + 1;
          if (n < 1) continue;
          Tensor x = empty_tensor({1, 3, width});
          for (int64_t i = 0; i < 3 * width; ++i)
            x.data<float>()[i] = i % 11 == 4 ? NAN : std::sin(static_cast<float>(7 * i % 13));
          const int64_t kernel[] = {3, 3}, strides[] = {1, stride}, paddings[] = {0, padding}, steps[] = {1, dilation};
          Tensor out = empty_tensor({1, 1, n}), indices = empty_tensor({1, 1, n}, DType::Int64);
          max_pool(out, indices, x,
                   {.kernel = ref(kernel), .stride = ref(strides), .padding = ref(paddings), .dilation = ref(steps)});
          Tensor mean = empty_tensor({1, 1, n});
          if (dilation == 1)
            average_pool(mean, x, {.kernel = ref(kernel), .stride = ref(strides), .padding = ref(paddings)});
          for (int64_t o = 0; o < n; ++o) {
            float best = -INFINITY, sum = 0;
            int64_t place = -1;
            for (int64_t row = 0; row < 3; ++row)
              for (int64_t k = 0; k < 3; ++k) {
                int64_t column = o * stride - padding + k * dilation;
                if (column < 0 || column >= width) continue;
                float value = x.data<float>()[row * width + column];
                sum += value;
                if (place < 0 || value > best || std::isnan(value)) best = value, place = row * width + column;
              }
            EXPECT_EQ(values<int64_t>(indices)[static_cast<size_t>(o)], place) << width << " " << stride << " " << o;
            EXPECT_EQ(std::isnan(values(out)[static_cast<size_t>(o)]), std::isnan(best));
            if (!std::isnan(best)) {
              EXPECT_EQ(values(out)[static_cast<size_t>(o)], best);
            }
            if (dilation == 1 && !std::isnan(sum)) {
              EXPECT_NEAR(values(mean)[static_cast<size_t>(o)], sum / 9, 1e-6f);
            }
          }
        }
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
