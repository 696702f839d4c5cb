// Operators that take functions, through the layers: each of them is one definition, and the rest follows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "umbra/umbra.h"

namespace umbra {
namespace {

using ::testing::HasSubstr;
using Values = std::vector<Value>;

std::vector<double> numbers(const Tensor& t) {
  std::vector<double> out;
  for (const Tensor& e : t.reshape({-1}).unbind(0)) out.push_back(e.item().to_double());
  return out;
}

/// (i, x) -> (i + 1, x * w + 1) while x.sum() < 100.
Values grow(const Tensor& x, const Tensor& w) {
  return while_loop([](const Values& v) { return Values{Value(v[1].tensor().sum() < 100)}; },
                    [w](const Values& v) {
                      return Values{Value(v[0].tensor() + 1), Value(v[1].tensor() * w + 1)};
                    },
                    {Value(zeros({}, {.dtype = DType::Int64})), Value(x)});
}

TEST(WhileLoop, RunsAsOftenAsTheDataSays) {
  Values out = grow(tensor({3., 4.}), tensor({3.}));
  EXPECT_EQ(out[0].tensor().item().to_int(), 3);
  EXPECT_EQ(numbers(out[1].tensor()), (std::vector<double>{94, 121}));
}

TEST(WhileLoop, CapturedItIsOneCallThatRunsAsOftenAsOtherDataSay) {
  for (TracingMode mode : {TracingMode::Real, TracingMode::Fake, TracingMode::Symbolic}) {
    auto f = [](const Values& v) { return grow(v[0].tensor(), v[1].tensor()); };
    auto graph = make_fx(f, {Value(tensor({1., 2.})), Value(tensor({2.}))}, {.mode = mode});
    EXPECT_THAT(graph->code(), HasSubstr("torch.ops.higher_order.while_loop(while_loop_cond_graph_0, "));
    for (double start : {3., 200.}) {
      Values inputs{Value(tensor({start, 4.})), Value(tensor({3.}))};
      Values expected = f(inputs), seen = graph->run(inputs);
      EXPECT_EQ(numbers(seen[0].tensor()), numbers(expected[0].tensor()));
      EXPECT_EQ(numbers(seen[1].tensor()), numbers(expected[1].tensor()));
    }
  }
}

TEST(WhileLoop, WhatIsCarriedIsNotMistakenForWhatIsClosedOver) {
  auto f = [](const Tensor& x) {
    return while_loop([](const Values& v) { return Values{Value(v[0].tensor().sum() < 50)}; },
                      [x](const Values& v) { return Values{Value(v[0].tensor() + x)}; }, {Value(x)})[0]
        .tensor();
  };
  auto graph = make_fx(f, {tensor({10.})});
  EXPECT_EQ(graph->run({tensor({20.})})[0].tensor().item().to_double(), 60);
}

TEST(WhileLoop, IsCompiledAheadOfTimeAndRunsOnFakes) {
  auto compiled = aot::compile([](const Tensor& x, const Tensor& w) { return grow(x, w)[1].tensor(); });
  EXPECT_EQ(numbers(compiled(tensor({3., 4.}), tensor({3.}))), (std::vector<double>{94, 121}));
  FakeMode fake;
  auto scope = fake.enter();
  EXPECT_TRUE(grow(empty({5, 2}), empty({2}))[1].tensor().is_fake());
}

TEST(WhileLoop, RefusesABodyThatChangesWhatItCarries) {
  auto always = [](const Values& v) { return Values{Value(v[0].tensor().sum() < 100)}; };
  auto widen = [](const Values& v) { return Values{Value(cat({v[0].tensor(), v[0].tensor()}))}; };
  auto write = [](const Values& v) { return Values{Value(v[0].tensor().add_(1))}; };
  EXPECT_THROW(while_loop(always, widen, {Value(tensor({1.}))}), UserError);
  Tensor x = tensor({1.});
  EXPECT_THROW(while_loop(always, write, {Value(x)}), UserError);
  EXPECT_EQ(x.item().to_double(), 1);
}

TEST(Cond, ABranchThatIsRefusedHasWrittenNothing) {
  auto write = [](const Values& v) { return Values{Value(v[0].tensor().add_(1) * 2)}; };
  auto copy = [](const Values& v) { return Values{Value(v[0].tensor() * 2)}; };
  for (bool captured : {false, true}) {
    Tensor x = tensor({1.});
    auto f = [&](const Tensor& t) { return cond(Value(t.sum() > 0), write, copy, {Value(t)})[0].tensor(); };
    if (captured) EXPECT_THROW(make_fx(f, {x}), UserError);
    else EXPECT_THROW(f(x), UserError);
    EXPECT_EQ(x.item().to_double(), 1);
  }
}

TEST(Map, AppliesToRowsAndItsGradientIsAMap) {
  Tensor w = tensor({2., 3.}).requires_grad_();
  auto f = [&](const Tensor& x) {
    return map([&](const Values& v) { return Values{Value((v[0].tensor() * w).sum() + v[0].tensor())}; }, {Value(x)})[0]
        .tensor();
  };
  Tensor x = arange(6, {.dtype = DType::Float32}).reshape({3, 2}).requires_grad_();
  auto eager = autograd::grad({f(x).sum()}, {x, w});
  auto compiled = aot::compile([&](const Tensor& t) { return f(t); });
  auto captured = autograd::grad({compiled(x).sum()}, {x, w});
  for (int i : {0, 1}) EXPECT_EQ(numbers(eager[i]), numbers(captured[i]));
}

struct SeesFunctions : DispatchMode {
  int seen = 0;
  bool handle(const Operator& op, Value* frame) override {
    seen += op.takes_functions();
    op.call(frame);
    return true;
  }
};

TEST(HigherOrder, AModeSeesTheCallWhole) {
  auto mode = make_counted<SeesFunctions>();
  EnterMode scope(mode);
  Values out = grow(tensor({3., 4.}), tensor({3.}));
  EXPECT_EQ(mode->seen, 1);
}

TEST(FunctionsOfTensors, StandWhereFunctionsOfValuesDo) {
  auto f = [](const Tensor& x) {
    Tensor y = cond(
        x.sum() > 0, [](const Tensor& x) { return x.sin(); }, [](const Tensor& x) { return x.cos(); }, {x});
    std::vector<Tensor> grown =
        while_loop([](const Tensor& i, const Tensor&) { return i < 3; },
                   [](const Tensor& i, const Tensor& y) { return std::tuple(i + 1, y * 2); }, {zeros({}), y});
    auto [last, sums] = [&] {
      auto out = scan(
          [](const Tensor& sum, const Tensor& row) {
            return std::vector{sum + row, sum.clone()};
          },
          {zeros({})}, {grown[1]});
      return std::pair(out[0], out[1]);
    }();
    return map([](const Tensor& row) { return row * 2; }, {sums}) + last;
  };
  auto expected = [](const Tensor& y) { return (y.cumsum(0) - y) * 2 + y.sum(); };
  auto graph = make_fx(f, {tensor({1., 2.})});
  for (double sign : {1., -1.}) {
    Tensor x = tensor({1., 2.}) * sign, y = (sign > 0 ? x.sin() : x.cos()) * 8;
    EXPECT_TRUE(f(x).allclose(expected(y)));
    EXPECT_TRUE((*graph)(x).allclose(expected(y))) << graph->code();
  }
}

}  // namespace
}  // namespace umbra
