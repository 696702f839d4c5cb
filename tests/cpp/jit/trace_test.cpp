// Tracing, graphs and the interpreter, without Python.
#include "umbra/jit/trace.h"

#include <gtest/gtest.h>

#include "umbra/generated/functions.h"
#include "umbra/jit/interpreter.h"
#include "umbra/jit/objects.h"
#include "umbra/jit/passes.h"
#include "umbra/ops/operators.h"

namespace umbra::jit {
namespace {

std::shared_ptr<Graph> traced(const std::function<Tensor(const Tensor&)>& function, const Tensor& example) {
  auto trace = make_counted<Trace>();
  trace->add_input("x", Value(example));
  Tensor y;
  {
    TraceScope scope(*trace);
    y = function(example);
    trace->set_output(Value(y), true);
  }
  trace->make_methods("forward");
  return trace->graph();
}

TEST(JitTrace, WritesDownTheOperatorsThatWereCalled) {
  auto graph = traced([](const Tensor& x) { return x.relu().sum(); }, ones({2, 3}));
  std::vector<std::string> kinds;
  for (const auto& n : graph->block().nodes()) kinds.push_back(n->kind());
  EXPECT_NE(std::find(kinds.begin(), kinds.end(), "aten::relu"), kinds.end());
  EXPECT_NE(graph->text().find("graph(%x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)):"),
            std::string::npos);
}

TEST(JitTrace, RunsOnOtherInputsAndThroughAutograd) {
  auto graph = traced([](const Tensor& x) { return x.mul(x).sum(); }, ones({2}));
  Tensor x = full({3}, 2.0).requires_grad_();
  Tensor y = run(graph, {Value(x)})[0].tensor();
  EXPECT_EQ(y.item<double>(), 12.0);
  y.backward();
  EXPECT_EQ(x.grad().sum().item<double>(), 12.0);
}

TEST(JitTrace, ASizeFollowsTheInput) {
  auto graph = traced(
      [](const Tensor& x) {
        Tensor n = active_trace()->size(x, 0);
        return zeros(SymShape{active_trace()->integer(n), 2});
      },
      ones({4, 3}));
  EXPECT_EQ(run(graph, {Value(ones({7, 3}))})[0].tensor().sizes().vec(), (std::vector<int64_t>{7, 2}));
}

TEST(JitTrace, WritesHappenOnEveryRun) {
  auto graph = traced([](const Tensor& x) { return x.add_(1); }, zeros({2}));
  Tensor x = zeros({2});
  run(graph, {Value(x)});
  run(graph, {Value(x)});
  EXPECT_EQ(x.sum().item<double>(), 4.0);
}

TEST(JitTrace, ATensorThatRequiresGradIsNoConstant) {
  Tensor w = ones({2}).requires_grad_();
  EXPECT_THROW(traced([&](const Tensor& x) { return x.add(w); }, ones({2})), Error);
}

TEST(JitGraph, LintFindsAValueThatIsReadBeforeItIsThere) {
  Graph graph;
  Variable* x = graph.add_input("x", tensor_type());
  Node* relu = graph.insert("aten::relu", {x}, {tensor_type()});
  relu->op = &get_operator("aten::relu");
  graph.add_output(relu->output());
  EXPECT_NO_THROW(lint(graph));
  graph.set_before(relu);
  Node* early = graph.insert("aten::neg", {relu->output()}, {tensor_type()});
  early->op = &get_operator("aten::neg");
  EXPECT_THROW(lint(graph), Error);
}

TEST(JitGraph, DeadCodeGoesAndWritesStay) {
  auto graph = traced(
      [](const Tensor& x) {
        x.neg();
        x.add_(1);
        return x.relu();
      },
      ones({2}));
  std::string text = graph->text();
  EXPECT_EQ(text.find("aten::neg"), std::string::npos);
  EXPECT_NE(text.find("aten::add_"), std::string::npos);
}

TEST(JitTrace, AFunctionOfCppBecomesAProgram) {
  FunctionPtr f = trace([](const auto& in) { return Value(in[0].tensor().relu() + in[1].tensor()); },
                        {Value(ones({2})), Value(ones({2}))});
  EXPECT_EQ(f->schema(), "forward(Tensor x, Tensor x1) -> Tensor");
  EXPECT_EQ(run(*f, {Value(full({3}, -1.0)), Value(ones({3}))}).tensor().sum().template item<double>(), 3.0);
}

TEST(JitTrace, TensorsOfAModuleAreItsAttributes) {
  Tensor weight = full({2}, 3.0).requires_grad_(), mean = ones({2});
  Value module = trace_module([&](const auto& in) { return Value((in[0].tensor() - mean) * weight); },
                              {Value(ones({2}))}, {{"layer.weight", weight}}, {{"mean", mean}});
  auto& instance = *object_as<Instance>(module);
  EXPECT_TRUE(object_as<Instance>(instance.attribute("layer"))->cls->attributes[0].is_parameter);
  Value y = run(*instance.cls->method("forward"), {module, Value(full({2}, 2.0))});
  EXPECT_EQ(y.tensor().sum().item<double>(), 6.0);
  y.tensor().sum().backward();
  EXPECT_EQ(weight.grad().sum().item<double>(), 2.0);
}

TEST(JitTrace, AProgramGoesWithItsLastModule) {
  std::weak_ptr<Function> method;
  {
    Tensor weight = ones({2});
    Value module = trace_module([&](const auto& in) { return Value(in[0].tensor() * weight); }, {Value(ones({2}))},
                                {{"weight", weight}});
    method = object_as<Instance>(module)->cls->method("forward");
    EXPECT_FALSE(method.expired());
  }
  EXPECT_TRUE(method.expired());
}

}  // namespace
}  // namespace umbra::jit
