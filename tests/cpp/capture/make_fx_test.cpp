// make_fx in its modes; threads; errors.
#include <thread>

#include "autograd/testing.h"

namespace umbra {
namespace {

std::vector<std::string> calls_of(const fx::GraphModule& module) {
  std::vector<std::string> names;
  for (fx::Node* node : module.graph().nodes())
    if (const Operator* op = node->target().op()) names.push_back(op->name());
  return names;
}

TEST(MakeFx, RecordsWhatAFunctionCalls) {
  auto module = make_fx([](const Tensor& x) { return x.sin().cos(); }, {vector_of({1, 2})});
  EXPECT_THAT(calls_of(*module), ElementsAre("aten::sin", "aten::cos"));
  EXPECT_NEAR(values(module->run({Value(vector_of({1}))}).at(0).tensor())[0], std::cos(std::sin(1)), 1e-12);
}

TEST(MakeFx, TakesCompositesApartBelowAutogradAndLeavesThemWholeAbove) {
  auto f = [](const Tensor& x, const Tensor& w) { return linear(x, w); };
  std::vector<Tensor> inputs{randn({2, 3}), randn({4, 3})};
  EXPECT_THAT(calls_of(*make_fx(f, inputs)), ElementsAre("aten::t", "aten::mm"));
  EXPECT_THAT(calls_of(*make_fx(f, inputs, {.pre_dispatch = true})), ElementsAre("aten::linear"));
}

TEST(MakeFx, FakeModeRunsNothing) {
  Tensor x = vector_of({1, 2});
  auto module = make_fx([](const Tensor& a) { return a.mul_(2) + 1; }, {x}, {.mode = TracingMode::Fake});
  EXPECT_THAT(values(x), ElementsAre(1, 2));
  EXPECT_TRUE(module->graph().placeholders()[0]->meta.val.tensor().is_fake());
}

TEST(MakeFx, SymbolicModeHoldsForOtherSizes) {
  auto module = make_fx([](const Tensor& x) { return x.view({x.sym_size(0) * x.sym_size(1)}) * x.sym_size(0); },
                        {ones({2, 3})}, {.mode = TracingMode::Symbolic});
  Tensor y = module->run({Value(ones({5, 4}))}).at(0).tensor();
  EXPECT_EQ(y.sizes(), IntArrayRef({20}));
  EXPECT_EQ(values(y)[0], 5);
}

// Compilers evaluate arguments in orders of their own: definitions leave none of them to choose.
TEST(MakeFx, OperatorsAreCalledInTheSameOrderWhoeverCompiledThem) {
  auto chosen = [](const Tensor& a, const Tensor& b) {
    Tensor x = a.detach().requires_grad_();
    return autograd::grad({maximum(x, b)}, {x}, {b}).at(0);
  };
  std::vector<std::string> calls = calls_of(*make_fx(chosen, {ones({2}), ones({2})}));
  ASSERT_GE(calls.size(), 5u);
  EXPECT_THAT(std::vector<std::string>(calls.end() - 5, calls.end()),
              ElementsAre("aten::div.Scalar", "aten::eq.Tensor", "aten::where.self", "aten::lt.Tensor",
                          "aten::masked_fill.Scalar"));

  auto cell = [](const Tensor& x, const Tensor& h, const Tensor& c, const Tensor& w, const Tensor& u) {
    return std::get<1>(lstm_cell(x, {h, c}, w, u));
  };
  auto module = make_fx(cell, {ones({2, 3}), ones({2, 4}), ones({2, 4}), ones({16, 3}), ones({16, 4})});
  const fx::Node* product = nullptr;
  for (const fx::Node* node : module->graph().nodes())
    if (!product && node->name().starts_with("mul")) product = node;
  ASSERT_NE(product, nullptr);
  EXPECT_EQ(product->inputs().back(), module->graph().placeholders()[2]);  // what is kept of the old state
}

TEST(MakeFx, DecompositionsReplaceOperators) {
  DecompositionTable table;
  table.add("aten::silu", [](const Tensor& x) { return x * x.sigmoid(); });
  auto module = make_fx([](const Tensor& x) { return silu(x); }, {vector_of({1})}, {.decompositions = table});
  EXPECT_THAT(calls_of(*module), ElementsAre("aten::sigmoid", "aten::mul.Tensor"));
}

TEST(MakeFx, TensorsClosedOverBecomeConstants) {
  Tensor c = vector_of({10});
  auto module = make_fx([&](const Tensor& x) { return x + c; }, {vector_of({1})});
  EXPECT_THAT(values(module->run({Value(vector_of({5}))}).at(0).tensor()), ElementsAre(15));
}

TEST(MakeFx, AFunctionOfAListTakesAllInputs) {
  auto sum = [](std::vector<Tensor> inputs) { return inputs[0] + inputs.back(); };
  auto graph = make_fx(sum, {vector_of({1}), vector_of({2}), vector_of({3})});
  EXPECT_THAT(values((*graph)(vector_of({1}), vector_of({2}), vector_of({5}))), ElementsAre(6));
  EXPECT_THAT(values((*make_fx(sum, {vector_of({1})}))(vector_of({2}))), ElementsAre(4));
}

TEST(MakeFx, AnExceptionLeavesTheThreadAsItWas) {
  EXPECT_EQ(error_of<ValueError>([] {
              make_fx([](const Tensor&) -> Tensor { throw ValueError("stop"); }, {vector_of({1})},
                      {.mode = TracingMode::Symbolic});
            }),
            "stop");
  EXPECT_TRUE(mode_stack().empty());
  EXPECT_EQ(dispatch_state().include, DispatchKeySet());
  EXPECT_THAT(values(vector_of({1}) + 1), ElementsAre(2));
}

TEST(MakeFx, ThreadsCaptureSideBySide) {
  std::vector<std::string> codes(2);
  auto work = [&](size_t which) {
    for (int i = 0; i < 50; ++i)
      codes[which] = make_fx([&](const Tensor& x) { return which ? x.sin().exp() : x.cos().neg(); },
                             {vector_of({1, 2})}, {.mode = TracingMode::Symbolic})
                         ->code();
  };
  std::thread first(work, 0), second(work, 1);
  first.join();
  second.join();
  EXPECT_THAT(codes[0], HasSubstr("cos"));
  EXPECT_THAT(codes[0], testing::Not(HasSubstr("sin")));
  EXPECT_THAT(codes[1], HasSubstr("exp"));
}

}  // namespace
}  // namespace umbra
