// What pointwise operators share: promotion with numbers, layouts, variants, second names, second derivatives.
#include "autograd/testing.h"

namespace umbra {
namespace {

using autograd::grad;

TEST(Pointwise, PlainNumbersDoNotWidenTensors) {
  Tensor ints = arange(3), halves = ones({2}, {.dtype = DType::BFloat16});
  EXPECT_EQ(ints.add(1.5).dtype(), default_dtype());
  EXPECT_EQ(ints.mul(2).dtype(), DType::Int64);
  EXPECT_EQ(halves.mul(2.5).dtype(), DType::BFloat16);
  EXPECT_EQ(ints.exp().dtype(), default_dtype());
  EXPECT_THAT(values(ints.lt(1.5)), ElementsAre(1, 1, 0));
}

TEST(Pointwise, ResultsKeepTheMemoryOrderOfInputs) {
  Tensor x = arange(6).view({2, 3}).t();
  EXPECT_EQ(x.exp().strides().vec(), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(x.eq(x).strides().vec(), (std::vector<int64_t>{1, 3}));
}

TEST(Pointwise, InPlaceVariantsWriteAndCheck) {
  Tensor x = vector_of({1, 2, 3});
  EXPECT_TRUE(x.pow_(2).is_same(x));
  EXPECT_THAT(values(x), ElementsAre(1, 4, 9));
  EXPECT_THAT(values(x.eq_(4)), ElementsAre(0, 1, 0));
  EXPECT_THAT(error_of([] { arange(3).mul_(1.5); }),
              HasSubstr("result type Float can't be cast to the desired output type Long"));
  EXPECT_THAT(error_of([] { arange(3).pow(-1); }), HasSubstr("Integers to negative integer powers are not allowed."));
}

TEST(Pointwise, SecondNamesShareEveryVariant) {
  Tensor x = vector_of({-1, 2});
  EXPECT_THAT(values(absolute(x)), ElementsAre(1, 2));
  EXPECT_THAT(values(x.greater(0)), ElementsAre(0, 1));
  Tensor out = vector_of({0, 0});
  negative_out(out, x);
  EXPECT_THAT(values(out), ElementsAre(1, -2));
  EXPECT_TRUE(x.multiply_(x).is_same(x));
  EXPECT_THAT(values(x), ElementsAre(1, 4));
}

TEST(Pointwise, EqualOnesShareTheGradient) {
  Tensor x = parameter({1, 2, 3}), y = parameter({2, 2, 2});
  maximum(x, y).sum().backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(0, 0.5, 1));
  EXPECT_THAT(values(y.grad()), ElementsAre(1, 0.5, 0));
}

// Gradients of gradients against differences of gradients.
void check_second_derivative(const std::function<Tensor(const Tensor&)>& f) {
  Tensor x = parameter({-2.3, -0.7, 0.4, 1.9});
  Tensor first = grad({f(x).sum()}, {x}, {}, {.create_graph = true})[0];
  std::vector<double> second = values(grad({first.sum()}, {x})[0]);
  auto slope = [&](double shift) {
    Tensor moved = x.detach().add(shift).requires_grad_();
    return values(grad({f(moved).sum()}, {moved})[0]);
  };
  std::vector<double> above = slope(1e-5), below = slope(-1e-5);
  for (size_t i = 0; i < second.size(); ++i) EXPECT_NEAR(second[i], (above[i] - below[i]) / 2e-5, 1e-6);
}

TEST(Pointwise, ActivationsHaveSecondDerivatives) {
  check_second_derivative([](const Tensor& x) { return gelu(x); });
  check_second_derivative([](const Tensor& x) { return gelu(x, "tanh"); });
  check_second_derivative([](const Tensor& x) { return silu(x); });
  check_second_derivative([](const Tensor& x) { return mish(x); });
  check_second_derivative([](const Tensor& x) { return elu(x, 1.3, 1.1, 0.9); });
  check_second_derivative([](const Tensor& x) { return softplus(x, 2); });
  check_second_derivative([](const Tensor& x) { return sigmoid(x); });
  check_second_derivative([](const Tensor& x) { return tanh(x); });
  check_second_derivative([](const Tensor& x) { return hardswish(x); });
  check_second_derivative([](const Tensor& x) { return log_sigmoid(x); });
  check_second_derivative([](const Tensor& x) { return glu(x); });
  check_second_derivative([](const Tensor& x) { return logit(x.sigmoid(), 1e-6); });
}

}  // namespace
}  // namespace umbra
