#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "kernels/kernel_tensors.h"
#include "kernels/reductions.h"
#include "kernels/scan.h"
#include "kernels/softmax.h"

namespace umbra::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Tensor random(std::vector<int64_t> sizes) {
  Tensor out = scratch(sizes, DType::Float32);
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < out.numel(); ++i) out.data<float>()[i] = normal(generator);
  return out;
}

TEST(Sum, TakesAnySetOfDimensions) {
  Tensor x = counting({2, 3, 4});
  auto total = [&](std::vector<int64_t> sizes, std::vector<int64_t> dims) {
    Tensor out = empty_tensor(sizes, DType::Float32);
    sum(out, x, dims);
    return values_of<float>(out);
  };
  EXPECT_EQ(total({}, {0, 1, 2}), std::vector<float>{276});
  EXPECT_EQ(total({3, 4}, {0}), (std::vector<float>{12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34}));
  EXPECT_EQ(total({2, 1, 4}, {1}), (std::vector<float>{12, 15, 18, 21, 48, 51, 54, 57}));
  EXPECT_EQ(total({2, 3}, {2}), (std::vector<float>{6, 22, 38, 54, 70, 86}));
  EXPECT_EQ(total({3}, {0, 2}), (std::vector<float>{60, 92, 124}));
  EXPECT_EQ(total({2, 3, 4}, {}), values_of<float>(x));
}

TEST(Sum, IsAccurateOverMillions) {
  Tensor x = empty_tensor({1000, 1000}, DType::Float32), out = empty_tensor({}, DType::Float32);
  fill(x, 0.1);
  sum(out, x, {0, 1});
  EXPECT_NEAR(values_of<float>(out)[0], 1e5, 0.1);
  Tensor columns = empty_tensor({1000}, DType::Float32);
  sum(columns, x, {0});
  EXPECT_NEAR(values_of<float>(columns)[7], 100, 1e-4);
}

TEST(Sum, OfNothingIsZeroAndItsMeanNan) {
  Tensor x = empty_tensor({0, 3}, DType::Float32), out = empty_tensor({3}, DType::Float32),
         one = empty_tensor({}, DType::Float32);
  sum(out, x, {0});
  EXPECT_EQ(values_of<float>(out), (std::vector<float>{0, 0, 0}));
  prod(out, x, {0});
  EXPECT_EQ(values_of<float>(out), (std::vector<float>{1, 1, 1}));
  mean(one, x, {0, 1});
  EXPECT_TRUE(std::isnan(values_of<float>(one)[0]));
}

TEST(Sum, WidensNarrowTypes) {
  Tensor bytes = empty_tensor({1000}, DType::UInt8), out = empty_tensor({}, DType::Int64);
  fill(bytes, 200);
  sum(out, bytes, {0});
  EXPECT_EQ(values_of<int64_t>(out)[0], 200000);
  Tensor halves = empty_tensor({5000}, DType::BFloat16), total = empty_tensor({}, DType::BFloat16);
  fill(halves, 1);
  sum(total, halves, {0});
  EXPECT_EQ(values_of<float>(total)[0], static_cast<float>(BFloat16(5000.0f)));
}

TEST(Sum, ReadsExpandedAndTransposedTensors) {
  Tensor row = counting({5}), out = empty_tensor({5}, DType::Float32);
  sum(out, strided(row, {7, 5}, {0, 1}), {0});
  EXPECT_EQ(values_of<float>(out), (std::vector<float>{0, 7, 14, 21, 28}));
  Tensor turned = strided(counting({6}), {3, 2}, {1, 3}), by_row = empty_tensor({3}, DType::Float32);
  sum(by_row, turned, {1});
  EXPECT_EQ(values_of<float>(by_row), (std::vector<float>{3, 5, 7}));
}

TEST(Extremes, HandOnNan) {
  Tensor x = tensor_of<float>({2, 3}, {1, kNan, 3, 4, 5, 6}), out = empty_tensor({2}, DType::Float32);
  amax(out, x, {1});
  EXPECT_TRUE(std::isnan(values_of<float>(out)[0]));
  EXPECT_EQ(values_of<float>(out)[1], 6);
  Tensor where = empty_tensor({2}, DType::Int64);
  argmax(where, x, 1);
  EXPECT_EQ(values_of<int64_t>(where), (std::vector<int64_t>{1, 2}));
}

TEST(Extremes, FindNanAndTheExtremeWhereverTheyLie) {
  for (int64_t n : {1, 5, 15, 16, 17, 40, 63, 64, 65, 130, 1500})
    for (int64_t at = 0; at < n; at += 1 + n / 40) {
      Tensor x = counting({1, n}, -0.5), out = empty_tensor({1});
      x.data<float>()[at] = 7;
      for (DType dtype : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16}) {
        amax(out, cast(x, dtype), {1});
        EXPECT_EQ(values(out)[0], 7) << n << " " << at;
      }
      x.data<float>()[at] = kNan;
      for (DType dtype : {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16}) {
        amin(out, cast(x, dtype), {1});
        EXPECT_TRUE(std::isnan(values(out)[0])) << n << " " << at;
      }
    }
}

TEST(Sum, NarrowFloatsAreSummedAsFloatsInEveryDirection) {
  for (DType narrow : {DType::Float16, DType::BFloat16}) {
    Tensor x = cast(counting({37, 53}, 0.01), narrow), wide = cast(x, DType::Float32);
    for (int64_t dim : {0, 1}) {
      for (const Tensor& in : {x, transposed(x)}) {
        int64_t along = in.size(0) == 37 ? dim : 1 - dim, size = x.size(1 - dim);
        Tensor out = empty_tensor({size}), expected = empty_tensor({size});
        sum(out, in, {along});
        sum(expected, wide, {dim});
        for (int64_t i = 0; i < size; ++i) EXPECT_NEAR(values(out)[i], values(expected)[i], 1e-4f);
      }
    }
  }
}

TEST(Extremes, OfEqualsTheFirstIsFound) {
  Tensor x = tensor_of<int32_t>({2, 3}, {3, 1, 3, 1, 3, 1});
  Tensor values = empty_tensor({3}, DType::Int32), where = empty_tensor({3}, DType::Int64),
         flat = empty_tensor({}, DType::Int64);
  max_with_index(values, where, x, 0);
  EXPECT_EQ(values_of<int32_t>(values), (std::vector<int32_t>{3, 3, 3}));
  EXPECT_EQ(values_of<int64_t>(where), (std::vector<int64_t>{0, 1, 0}));
  argmin(flat, x, std::nullopt);
  EXPECT_EQ(values_of<int64_t>(flat)[0], 1);
}

TEST(AnyAll, AskWhetherElementsAreNotZero) {
  Tensor x = tensor_of<float>({2, 2}, {0, 0, 0, kNan}), out = empty_tensor({2}, DType::Bool);
  any(out, x, {1});
  EXPECT_EQ(values_of<int32_t>(out), (std::vector<int32_t>{0, 1}));
  all(out, x, {1});
  EXPECT_EQ(values_of<int32_t>(out), (std::vector<int32_t>{0, 0}));
}

TEST(Variance, StaysExactFarFromZero) {
  Tensor x = empty_tensor({4, 1000}, DType::Float32);
  for (int64_t i = 0; i < 4000; ++i) x.data<float>()[i] = 10000.0f + static_cast<float>(i % 2);
  Tensor variance = empty_tensor({4}, DType::Float32), average = empty_tensor({4}, DType::Float32);
  var_mean(variance, average, x, {1}, 0, false);
  for (float v : values_of<float>(variance)) EXPECT_NEAR(v, 0.25, 1e-6);
  for (float m : values_of<float>(average)) EXPECT_NEAR(m, 10000.5, 1e-3);
  Tensor deviation = empty_tensor({1000}, DType::Float32);
  var_mean(deviation, {}, x, {0}, 1, true);
  EXPECT_EQ(values_of<float>(deviation)[3], 0);
}

TEST(Norm, KnowsItsSpecialExponents) {
  Tensor x = row_of<float>({3, -4, 0}), out = empty_tensor({}, DType::Float32);
  auto of = [&](double p) {
    norm(out, x, p, {0});
    return values_of<float>(out)[0];
  };
  EXPECT_FLOAT_EQ(of(2), 5);
  EXPECT_FLOAT_EQ(of(1), 7);
  EXPECT_FLOAT_EQ(of(0), 2);
  EXPECT_FLOAT_EQ(of(kInfinity), 4);
  EXPECT_FLOAT_EQ(of(-kInfinity), 0);
  EXPECT_FLOAT_EQ(of(3), std::cbrt(91.0f));
  norm(out, row_of<std::complex<float>>({{3, 4}, {0, 12}}), 2, {0});
  EXPECT_FLOAT_EQ(values_of<float>(out)[0], 13);
}

TEST(LogSumExp, SurvivesLargeAndInfiniteNumbers) {
  Tensor x = tensor_of<float>({3, 2}, {1000, 1000, -kInfinity, -kInfinity, kInfinity, 1}),
         out = empty_tensor({3}, DType::Float32);
  logsumexp(out, x, {1});
  EXPECT_FLOAT_EQ(values_of<float>(out)[0], 1000 + std::log(2.0f));
  EXPECT_EQ(values_of<float>(out)[1], -kInfinity);
  EXPECT_EQ(values_of<float>(out)[2], kInfinity);
}

/// Over rows and over columns, of every type: the results sum to 1 and agree with each other.
TEST(Softmax, IsTheSameAlongEitherDimension) {
  for (DType dtype : {DType::Float32, DType::Float64, DType::BFloat16})
    for (int64_t n : {3, 8, 13, 16, 17, 30, 32, 50}) {  // of one register, of two, of more
      Tensor x = cast(random({37, n}), dtype), turned = contiguous(strided(x, {n, 37}, {1, n}));
      Tensor rows = empty_tensor({37, n}, dtype), columns = empty_tensor({n, 37}, dtype);
      double tolerance = dtype == DType::BFloat16 ? 1e-2 : 1e-6;
      log_softmax(rows, x, 1);
      log_softmax(columns, turned, 0);
      std::vector<double> a = values_of<double>(rows), b = values_of<double>(strided(columns, {37, n}, {1, 37}));
      for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance * std::max(1.0, std::abs(a[i]))) << n;
      softmax(rows, x, 1);
      softmax(columns, turned, 0);
      a = values_of<double>(rows), b = values_of<double>(strided(columns, {37, n}, {1, 37}));
      for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance * a[i]) << n;
      double total = 0;
      for (int64_t i = 0; i < n; ++i) total += a[i];
      EXPECT_NEAR(total, 1, 10 * tolerance);
    }
}

TEST(Softmax, BackwardIsTheDerivative) {
  Tensor x = cast(random({3, 20}), DType::Float64), g = cast(random({3, 20}), DType::Float64);
  for (bool logarithm : {false, true}) {
    auto forward = logarithm ? &log_softmax : &softmax;
    auto backward = logarithm ? &log_softmax_backward : &softmax_backward;
    Tensor y = empty_tensor({3, 20}, DType::Float64), slope = empty_tensor({3, 20}, DType::Float64);
    forward(y, x, 1);
    backward(slope, g, y, 1);
    for (int64_t i : {0, 25, 59}) {
      auto loss = [&](double step) {
        Tensor moved = empty_tensor({3, 20}, DType::Float64), out = empty_tensor({3, 20}, DType::Float64);
        copy(moved, x);
        moved.data<double>()[i] += step;
        forward(out, moved, 1);
        double total = 0;
        for (int64_t j = 0; j < 60; ++j) total += out.data<double>()[j] * g.data<double>()[j];
        return total;
      };
      EXPECT_NEAR(slope.data<double>()[i], (loss(1e-6) - loss(-1e-6)) / 2e-6, 1e-7);
    }
  }
}

TEST(Scan, RunsAlongEitherDimension) {
  Tensor x = counting({2, 3}), out = empty_tensor({2, 3}, DType::Float32);
  cumsum(out, x, 1);
  EXPECT_EQ(values_of<float>(out), (std::vector<float>{0, 1, 3, 3, 7, 12}));
  cumsum(out, x, 0);
  EXPECT_EQ(values_of<float>(out), (std::vector<float>{0, 1, 2, 3, 5, 7}));
  cumprod(out, tensor_of<float>({2, 3}, {1, 2, 3, 4, 5, 6}), 1);
  EXPECT_EQ(values_of<float>(out), (std::vector<float>{1, 2, 6, 4, 20, 120}));
}

TEST(Scan, RemembersWhereTheExtremeWas) {
  Tensor x = row_of<float>({1, 3, 3, 2, kNan, 5}), values = empty_tensor({6}, DType::Float32),
         where = empty_tensor({6}, DType::Int64);
  cummax(values, where, x, 0);
  EXPECT_EQ(values_of<int64_t>(where), (std::vector<int64_t>{0, 1, 2, 2, 4, 4}));
  EXPECT_TRUE(std::isnan(values_of<float>(values)[5]));
}

}  // namespace
}  // namespace umbra::kernels
