// cond inside a compiled function: both branches are captured, and so are their gradients.
#include "autograd/testing.h"

namespace umbra {
namespace {

using Branch = std::function<Tensor(const Tensor&)>;

ValueFunction branch(Branch f) {
  return [f](const std::vector<Value>& in) -> std::vector<Value> { return {Value(f(in[0].tensor()))}; };
}

Tensor choose(const Tensor& x, Branch yes, Branch no) {
  return cond(Value(x.sum() > 0), branch(yes), branch(no), {Value(x)})[0].tensor();
}

/// Values and gradients of the compiled function are those of the function, whichever branch is taken.
void compare(const std::function<Tensor(const Tensor&)>& f, const std::vector<Tensor>& closed_over = {}) {
  auto compiled = aot::compile(f);
  for (double sign : {1.0, -1.0}) {
    std::vector<std::vector<double>> seen[2];
    for (bool use_compiled : {false, true}) {
      Tensor x = parameter({sign * 1, sign * 2});
      std::vector<Tensor> wanted{x};
      wanted.insert(wanted.end(), closed_over.begin(), closed_over.end());
      Tensor y = use_compiled ? compiled(x) : f(x);
      seen[use_compiled].push_back(values(y));
      for (const Tensor& g : autograd::grad({y.sum()}, wanted, {}, {}, true))
        seen[use_compiled].push_back(g.defined() ? values(g) : std::vector<double>{0, 0});
    }
    EXPECT_EQ(seen[0], seen[1]) << "sign " << sign;
  }
}

TEST(AotCond, BothBranchesWithGradients) {
  compare([](const Tensor& x) {
    return choose(
               x * 2, [](auto& v) { return v.sin(); }, [](auto& v) { return v * v; }) +
           1;
  });
}

TEST(AotCond, ForwardOnly) {
  auto f = aot::compile([](const Tensor& x) {
    return choose(
        x, [](auto& v) { return v + 1; }, [](auto& v) { return v - 1; });
  });
  EXPECT_THAT(values(f(vector_of({1, 2}))), ElementsAre(2, 3));
  EXPECT_THAT(values(f(vector_of({-1, -2}))), ElementsAre(-2, -3));
  EXPECT_THAT(f.graphs({vector_of({1, 2})}).partition.forward->code(), HasSubstr("torch.ops.higher_order.cond"));
}

TEST(AotCond, WhatBranchesCloseOverGetsGradients) {
  Tensor weight = parameter({3, 4}), other = parameter({5, 6});
  compare(
      [&](const Tensor& x) {
        Tensor y = x.exp();
        return choose(
            x, [&](auto& v) { return v * weight * y; }, [&](auto& v) { return v * other; });
      },
      {weight, other});
}

TEST(AotCond, Nested) {
  Tensor weight = parameter({3, 4});
  compare(
      [&](const Tensor& x) {
        return choose(
            x,
            [&](auto& v) {
              return choose(
                  v - 1, [&](auto& u) { return u * weight; }, [](auto& u) { return u * u; });
            },
            [](auto& v) { return v.sin(); });
      },
      {weight});
}

TEST(AotCond, ABranchMayWriteWhatItMade) {
  compare([](const Tensor& x) {
    return choose(
        x, [](auto& v) { return (v * 2).add_(1); }, [](auto& v) { return v.clone().mul_(3); });
  });
}

TEST(AotCond, ABranchUnderNoGradHasNoGradient) {
  compare([](const Tensor& x) {
    auto constant = [](auto& v) {
      NoGrad no_grad;
      return v * 2;
    };
    return choose(x, constant, [](auto& v) { return v * 3; }) * x;
  });
}

TEST(AotCond, ABranchThatWritesItsOperandIsRefused) {
  auto f = aot::compile([](const Tensor& x) {
    Tensor y = x * 1;
    return choose(
        y, [](auto& v) { return v.view({-1}).mul_(2); }, [](auto& v) { return v * 3; });
  });
  EXPECT_THAT(error_of<UserError>([&] {
                f(vector_of({1, 2}));
              }),
              HasSubstr("Encountered input mutation during higher order op tracing"));
  EXPECT_TRUE(mode_stack().empty());
}

TEST(Cond, GradientsAreCapturedByMakeFx) {
  Tensor x = parameter({1, 2});
  auto module = make_fx(
      [](const Tensor& v) {
        Tensor y = choose(
            v, [](auto& u) { return u.sin(); }, [](auto& u) { return u * u; });
        return autograd::grad({y.sum()}, {v})[0];
      },
      {x});
  EXPECT_THAT(values(module->run({Value(vector_of({-1, -2}))})[0].tensor()), ElementsAre(-2, -4));
}

}  // namespace
}  // namespace umbra
