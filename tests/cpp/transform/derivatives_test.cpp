// grad, vjp, jvp and Jacobians, alone and nested: each level has a tape of its own.
#include "autograd/testing.h"
#include "umbra/transform/gradcheck.h"

namespace umbra {
namespace {

Tensor scalar(double v) { return vector_of({v}).sum(); }
double number(const Tensor& t) { return t.item().to_double(); }

TEST(Grad, OfAScalarFunction) {
  Tensor g = grad([](const Tensor& x) { return x.mul(x).sum(); })(vector_of({1, 2, 3}));
  EXPECT_THAT(values(g), ElementsAre(2, 4, 6));
  EXPECT_FALSE(g.requires_grad());
}

TEST(Grad, NestedLevelsAreKeptApart) {
  auto inner = [](const Tensor& x) { return grad([&](const Tensor& y) { return x.add(y); })(scalar(1)); };
  EXPECT_EQ(number(grad([&](const Tensor& x) { return x.mul(inner(x)); })(scalar(1))), 1);
  auto cube = [](const Tensor& x) { return x.mul(x).mul(x); };
  EXPECT_EQ(number(grad(grad(cube))(scalar(2))), 12);
  EXPECT_EQ(number(grad(grad(grad(cube)))(scalar(2))), 6);
}

TEST(Grad, OfVjpIsNotLost) {
  auto f = [](const Tensor& x) { return vjp([](const Tensor& y) { return y.sin(); }, x).pull_back({ones_like(x)})[0]; };
  EXPECT_NEAR(number(grad(f)(scalar(0.5))), -std::sin(0.5), 1e-12);
}

TEST(Grad, OfTheOuterTapeStaysOnIt) {
  Tensor x = parameter({0.5, 1});
  Tensor g = grad([](const Tensor& y) { return y.mul(y).mul(y).sum(); })(x);
  g.sum().backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(3, 6));
}

TEST(Grad, NoGradOutsideDoesNotReachIn) {
  NoGrad off;
  EXPECT_THAT(values(grad([](const Tensor& x) { return x.mul(x).sum(); })(vector_of({3}))), ElementsAre(6));
  EXPECT_FALSE(is_grad_enabled());
}

TEST(Grad, NoGradInsideAppliesInside) {
  auto f = [](const Tensor& x) {
    NoGrad off;
    return x.mul(x);
  };
  Tensor g = grad([&](const Tensor& x) { return x.mul(f(x)).sum(); })(vector_of({3}));
  EXPECT_THAT(values(g), ElementsAre(9));
}

TEST(Grad, WritesInPlaceAndThroughViews) {
  auto f = [](const Tensor& x) {
    Tensor y = x.clone();
    y.mul_(x);
    y.select(0, 0).fill_(0);
    y.slice(0, 1).mul_(x.slice(0, 1));
    return y.sum();
  };
  EXPECT_THAT(values(grad(f)(vector_of({2, 3}))), ElementsAre(0, 27));
}

TEST(Grad, OfAWriteToATensorClosedOverIsRefused) {
  Tensor c = zeros({2}, {.dtype = DType::Float64});
  auto f = [&](const Tensor& x) { return c.copy_(x).sum(); };
  EXPECT_THROW(grad(f)(vector_of({1, 2})), Error);
  EXPECT_THROW(grad([&](const Tensor& x) { return c.select(0, 0).copy_(x.sum()); })(vector_of({1, 2})), Error);
}

TEST(Grad, ThatThrowsLeavesNoLevelBehind) {
  auto f = [](const Tensor& x) -> Tensor {
    if (x.dim() == 1) throw std::runtime_error("stop");
    return x;
  };
  EXPECT_THROW(grad(f)(vector_of({1, 2})), std::runtime_error);
  Tensor x = parameter({2});
  x.mul(x).sum().backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(4));
  EXPECT_FALSE(vector_of({1}).mul(2).requires_grad());
}

TEST(Grad, ATensorThatEscapedIsItsValue) {
  Tensor escaped;
  grad([&](const Tensor& x) {
    escaped = x.mul(2);
    return x.sum();
  })(vector_of({1, 2}));
  Tensor sum = escaped.add(1);
  EXPECT_THAT(values(sum), ElementsAre(3, 5));
  EXPECT_FALSE(sum.requires_grad());
}

TEST(Vjp, OfPlainInputsGivesPlainGradients) {
  auto [outputs, pull_back] = vjp([](const Tensor& x) { return x.mul(x); }, vector_of({1, 2}));
  Tensor first = pull_back({vector_of({1, 1})})[0], second = pull_back({vector_of({10, 0})})[0];
  EXPECT_THAT(values(first), ElementsAre(2, 4));
  EXPECT_THAT(values(second), ElementsAre(20, 0));
  EXPECT_FALSE(outputs[0].requires_grad());
  EXPECT_FALSE(first.requires_grad());
}

TEST(Jvp, FollowsATangent) {
  auto f = [](const Tensor& x, const Tensor& y) { return x.mul(y).sum(); };
  auto [outputs, tangents] = jvp(f, {vector_of({1, 0}), vector_of({0, 1})})(vector_of({1, 2}), vector_of({3, 4}));
  auto [y, dy] = jvp([](const Tensor& x) { return x * x; }, vector_of({3}), vector_of({2}));
  EXPECT_EQ(values(y), std::vector<double>{9});
  EXPECT_EQ(values(dy), std::vector<double>{12});
  EXPECT_EQ(number(outputs[0]), 11);
  EXPECT_EQ(number(tangents[0]), 5);
}

TEST(Jvp, OfGradAndGradOfJvpAgree) {
  auto f = [](const Tensor& x) { return x.sin().mul(x).sum(); };
  Tensor x = vector_of({0.3, 1.2}), t = vector_of({1, -2});
  Tensor forward_over_reverse = jvp(grad(f), {t})(x).tangents[0];
  Tensor reverse_over_forward = grad([&](const Tensor& y) { return jvp(f, {t})(y).tangents[0]; })(x);
  Tensor reverse_over_reverse = grad([&](const Tensor& y) { return grad(f)(y).mul(t).sum(); })(x);
  EXPECT_TRUE(allclose(forward_over_reverse, reverse_over_forward));
  EXPECT_TRUE(allclose(forward_over_reverse, reverse_over_reverse));
}

TEST(Jacobian, NestedInEveryOrder) {
  auto f = [](const Tensor& x) { return x.mul(x).mul(x).cumsum(0); };
  Tensor x = vector_of({1, 2});
  std::vector<Tensor> all = {jacfwd(jacfwd(f))(x), jacfwd(jacrev(f))(x), jacrev(jacfwd(f))(x), jacrev(jacrev(f))(x)};
  for (const Tensor& j : all) {
    EXPECT_THAT(j.sizes(), ElementsAre(2, 2, 2));
    EXPECT_THAT(values(j.reshape({-1})), ElementsAre(6, 0, 0, 0, 6, 0, 0, 12));
    EXPECT_FALSE(j.requires_grad());
  }
}

TEST(Jacobian, HessianOfAProduct) {
  Tensor h = hessian([](const Tensor& x) { return x.prod(); })(vector_of({2, 3, 5}));
  EXPECT_THAT(values(h.reshape({-1})), ElementsAre(0, 5, 3, 5, 0, 2, 3, 2, 0));
}

/// Its backward forgets the factor.
struct Forgetful : autograd::Function<Forgetful> {
  static Tensor forward(autograd::FunctionContext*, Tensor x) { return x.mul(3); }
  static std::vector<Tensor> backward(autograd::FunctionContext*, std::vector<Tensor> grads) { return grads; }
};

TEST(Gradcheck, HoldsDerivativesAgainstDifferences) {
  Tensor x = parameter({0.3, -1.2, 2}), y = parameter({1, 2, 3});
  EXPECT_TRUE(gradcheck([](const Tensor& x, const Tensor& y) { return x.mul(y).sin(); }, {x, y}));
  EXPECT_TRUE(gradcheck([](const Tensor& x) { return std::vector<Tensor>{x.exp(), x.detach(), x.sum()}; }, {x}));
  EXPECT_TRUE(gradcheck([](const Tensor& x, const Tensor& y) { return x.mul(y); }, {x, y.detach()}));
  EXPECT_THAT(values(x), ElementsAre(0.3, -1.2, 2));
}

TEST(Gradcheck, ShowsBothJacobians) {
  Tensor x = parameter({1, 2});
  std::string text = error_of([&] { gradcheck([](const Tensor& x) { return Forgetful::apply(x); }, {x}); });
  EXPECT_THAT(text, HasSubstr("Jacobian mismatch for output 0 with respect to input 0"));
  EXPECT_THAT(text, HasSubstr("analytical:tensor([[1., 0.]"));
  EXPECT_THAT(error_of([&] { gradcheck([](const Tensor& x) { return x; }, {x.detach()}); }),
              HasSubstr("at least one input tensor to require gradient"));
  EXPECT_THAT(error_of([&] {
                gradcheck([](const Tensor& x) { return x; }, {x.detach().to(DType::Complex128).requires_grad_()});
              }),
              HasSubstr("is complex"));
}

}  // namespace
}  // namespace umbra
