// Forward mode: tangents through operators of all kinds.
#include "autograd/testing.h"

namespace umbra {
namespace {

using autograd::DualLevel;
using autograd::make_dual;
using autograd::unpack_dual;

std::vector<double> tangent(const Tensor& t) { return values(unpack_dual(t).tangent); }

TEST(Forward, LinearOperatorsApplyToTangents) {
  DualLevel level;
  Tensor x = make_dual(vector_of({1, 2}), vector_of({1, 10})), y = vector_of({5, 5});
  EXPECT_THAT(tangent(x.view({2, 1}).t()), ElementsAre(1, 10));
  EXPECT_THAT(tangent(x.add(y)), ElementsAre(1, 10));
  EXPECT_THAT(tangent(x.sum()), ElementsAre(11));
  EXPECT_THAT(tangent(cat({x, y})), ElementsAre(1, 10, 0, 0));
  EXPECT_THAT(values(x.add(y)), ElementsAre(6, 7));
}

TEST(Forward, ProductsFollowFromTheGradientFormula) {
  DualLevel level;
  Tensor x = make_dual(vector_of({2, 3}), vector_of({1, 10})), y = make_dual(vector_of({4}), vector_of({1}));
  EXPECT_THAT(tangent(x.mul(y)), ElementsAre(4 + 2, 40 + 3));
  Tensor a = x.view({1, 2}), b = x.view({2, 1});
  EXPECT_THAT(tangent(a.mm(b)), ElementsAre(2 * 2 * 1 + 2 * 3 * 10));
}

// A fused backward pass has no derivative of its own; forward mode takes it apart. Compared with a difference.
TEST(Forward, FusedBackwardPassesComeApart) {
  Tensor x = vector_of({1, 2, 4, 3, 5, 4}).view({2, 3}), direction = vector_of({1, -1, 2, 0, 1, 3}).view({2, 3}),
         grad = vector_of({1, 2, 3, 3, 1, 2}).view({2, 3});
  auto gradient = [&](const Tensor& at) {
    auto [out, mean, rstd] = native_layer_norm(at, {3}, {}, {}, 1e-5);
    return std::get<0>(native_layer_norm_backward(grad, at, {3}, mean, rstd, {}, {}, {true, false, false}));
  };
  std::vector<double> above = values(gradient(x.add(direction.mul(1e-6)))),
                      below = values(gradient(x.sub(direction.mul(1e-6))));
  DualLevel level;
  std::vector<double> slope = tangent(gradient(make_dual(x, direction)));
  ASSERT_EQ(slope.size(), 6u);
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(slope[i], (above[i] - below[i]) / 2e-6, 1e-6);
}

TEST(Forward, ComplexNumbers) {
  DualLevel level;
  Tensor z = full({}, Scalar(std::complex<double>(1, 2)), {.dtype = DType::Complex128});
  Tensor t = full({}, Scalar(std::complex<double>(0, 1)), {.dtype = DType::Complex128});
  Tensor w = make_dual(z, t);
  EXPECT_THAT(values(view_as_real(unpack_dual(w.mul(w)).tangent)), ElementsAre(-4, 2));  // 2 z t
}

TEST(Forward, AComplexFactorIsNotConjugated) {
  DualLevel level;
  Tensor x = make_dual(full({}, 3.0, {.dtype = DType::Float64}), full({}, 1.0, {.dtype = DType::Float64}));
  Scalar i(std::complex<double>(0, 1));
  EXPECT_THAT(values(view_as_real(unpack_dual(x.mul(i)).tangent)), ElementsAre(0, 1));
  EXPECT_THAT(values(view_as_real(unpack_dual(x.div(i)).tangent)), ElementsAre(0, -1));
}

TEST(Forward, TensorsWithoutTangentStayPlain) {
  DualLevel level;
  EXPECT_FALSE(unpack_dual(vector_of({1}).mul(2)).tangent.defined());
  EXPECT_FALSE(unpack_dual(make_dual(vector_of({1}), vector_of({1})).detach()).tangent.defined());
}

TEST(Forward, WorksWithoutGradMode) {
  NoGrad guard;
  DualLevel level;
  Tensor x = make_dual(vector_of({3}), vector_of({1}));
  EXPECT_THAT(tangent(x.mul(x)), ElementsAre(6));
  EXPECT_THAT(tangent(x.view({1, 1}).mm(x.view({1, 1}))), ElementsAre(6));
}

TEST(Forward, InPlaceOperatorsChangeTheTangent) {
  DualLevel level;
  Tensor x = make_dual(vector_of({2, 3}), vector_of({1, 10}));
  Tensor y = x.mul(1);
  y.mul_(x);
  EXPECT_THAT(tangent(y), ElementsAre(4, 60));
  Tensor buffer = vector_of({1, 1, 1});
  buffer.narrow(0, 1, 2).add_(x);
  EXPECT_THAT(tangent(buffer), ElementsAre(0, 1, 10));
  buffer.narrow(0, 0, 1).mul_(2);
  buffer.narrow(0, 2, 1).mul_(2);
  EXPECT_THAT(tangent(buffer), ElementsAre(0, 1, 20));
}

TEST(Forward, OverReverseGivesSecondDerivatives) {
  DualLevel level;
  Tensor x = make_dual(parameter({3}), vector_of({1}));
  Tensor g = autograd::grad({x.mul(x).mul(x).sum()}, {x}, {}, {.create_graph = true})[0];
  EXPECT_THAT(tangent(g), ElementsAre(18));
}

TEST(Forward, TangentsCanBeDifferentiatedBackwards) {
  DualLevel level;
  Tensor leaf = parameter({3});
  Tensor x = make_dual(leaf, vector_of({1}));
  Tensor t = unpack_dual(x.mul(x).mul(x)).tangent;  // 3x^2
  EXPECT_THAT(values(autograd::grad({t}, {leaf})[0]), ElementsAre(18));
  Tensor m = x.view({1, 1});
  EXPECT_THAT(
      values(autograd::grad({unpack_dual(m.mm(m)).tangent}, {leaf}, {ones({1, 1}, {.dtype = DType::Float64})})[0]),
      ElementsAre(2));
}

TEST(Forward, LevelsNest) {
  DualLevel outer;
  Tensor x = make_dual(vector_of({2}), vector_of({1}));
  Tensor second;
  {
    DualLevel inner;
    Tensor y = make_dual(x, vector_of({1}));
    Tensor first = unpack_dual(y.mul(y).mul(y)).tangent;
    EXPECT_THAT(values(first), ElementsAre(12));
    second = unpack_dual(first, outer.level()).tangent;
  }
  EXPECT_THAT(values(second), ElementsAre(12));
}

TEST(Forward, TangentsEndWithTheirLevel) {
  Tensor x;
  {
    DualLevel level;
    x = make_dual(vector_of({1}), vector_of({1}));
  }
  DualLevel level;
  EXPECT_FALSE(unpack_dual(x).tangent.defined());
}

TEST(Forward, SaysWhatIsWrong) {
  EXPECT_EQ(
      error_of([] { make_dual(vector_of({1}), vector_of({1})); }),
      "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first.");
  DualLevel level;
  EXPECT_EQ(error_of([] {
              make_dual(vector_of({1, 2, 3}), vector_of({1, 2, 3, 4}));
            }),
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            "supported. Tensor is of "
            "size [3] while the given forward gradient is of size [4].");
  Tensor integers = ones({1}, {.dtype = DType::Int64});
  EXPECT_EQ(error_of<ValueError>([&] { make_dual(integers, integers); }),
            "Expected primal to be floating point or complex, but got: torch.int64");
}

}  // namespace
}  // namespace umbra
