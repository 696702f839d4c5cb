// Derivatives nested three deep in every order: whichever mode takes which derivative, they agree.
#include "autograd/testing.h"
#include "umbra/transform/transform.h"

namespace umbra {
namespace {

using Function = std::function<Tensor(const Tensor&)>;

std::vector<Function> functions() {
  Tensor weight = vector_of({0.3, -0.2, 0.5, 0.1, 0.7, -0.4}).view({2, 3});
  return {
      [](const Tensor& x) { return x.sin().mul(x); },
      [](const Tensor& x) { return x.exp().cumsum(0); },
      [](const Tensor& x) { return x.tanh().unsqueeze(1).mul(x); },
      [](const Tensor& x) { return x.softmax(0); },
      [=](const Tensor& x) { return weight.matmul(x).sigmoid(); },
      [](const Tensor& x) {
        Tensor y = x.clone();
        y.mul_(x);
        y.slice(0, 1).mul_(x.slice(0, 0, 2));
        return y;
      },
      [](const Tensor& x) {
        return cat(std::vector<Tensor>{x, x.sin()}).pow(3);
      },
      [](const Tensor& x) { return x.prod().mul(x); },
      [](const Tensor& x) { return x.logsumexp({0}).mul(x); },
      [](const Tensor& x) { return x.var().mul(x.mean()); },
  };
}

/// Each way to the full derivative of a function.
std::vector<std::function<Function(Function)>> derivatives() {
  auto by_vjp = [](Function f) -> Function {
    return [f](const Tensor& x) {
      auto [outputs, pull_back] = vjp(f, x);
      std::vector<Tensor> rows;
      for (int64_t i = 0; i < outputs[0].numel(); ++i) {
        Tensor unit = zeros({outputs[0].numel()}, {.dtype = DType::Float64});
        unit.select(0, i).fill_(1);
        rows.push_back(pull_back({unit.view(outputs[0].sym_sizes())})[0]);
      }
      SymShape sizes(outputs[0].sym_sizes());
      sizes.push_back(3);
      return stack(rows).view(sizes);
    };
  };
  auto by_jvp = [](Function f) -> Function {
    return [f](const Tensor& x) {
      std::vector<Tensor> columns;
      for (int64_t i = 0; i < 3; ++i) {
        Tensor unit = zeros({3}, {.dtype = DType::Float64});
        unit.select(0, i).fill_(1);
        columns.push_back(jvp(f, {unit})(x).tangents[0]);
      }
      return stack(columns, -1);
    };
  };
  return {[](Function f) -> Function { return jacrev(f); }, [](Function f) -> Function { return jacfwd(f); }, by_vjp,
          by_jvp};
}

TEST(Nesting, EveryOrderOfModesGivesTheSameThirdDerivative) {
  Tensor x = vector_of({0.4, -0.7, 1.3});
  auto ways = derivatives();
  for (const Function& f : functions()) {
    Tensor want;
    for (const auto& a : ways)
      for (const auto& b : ways)
        for (const auto& c : ways) {
          Tensor got = a(b(c(f)))(x);
          EXPECT_FALSE(got.requires_grad());
          if (!want.defined()) want = got;
          EXPECT_TRUE(allclose(got, want, 1e-8, 1e-8));
        }
  }
}

TEST(Nesting, DerivativesAgreeWithDifferences) {
  Tensor x = vector_of({0.4, -0.7, 1.3});
  for (const Function& f : functions()) {
    Tensor second = jacrev(jacfwd(f))(x), along = vector_of({0.3, 1, -0.5});
    double step = 1e-5;
    Tensor difference = jacrev(f)(x.add(along.mul(step))).sub(jacrev(f)(x.sub(along.mul(step)))).div(2 * step);
    EXPECT_TRUE(allclose(second.matmul(along), difference, 1e-5, 1e-7));
  }
}

}  // namespace
}  // namespace umbra
