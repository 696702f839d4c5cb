#include "umbra/graph/interpreter.h"

#include <gmock/gmock.h>

#include "graph/testing.h"
#include "umbra/autograd/autograd.h"
#include "umbra/autograd/running.h"
#include "umbra/core/interrupt.h"
#include "umbra/dispatch/library.h"

namespace umbra::fx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

IntrusivePtr<GraphModule> module_of(const IntrusivePtr<Graph>& graph) { return make_counted<GraphModule>(graph); }

TEST(Interpreter, RunsOperatorsWithDefaultsListsAndAttributes) {
  auto graph = make_counted<Graph>();
  Node* x = graph->placeholder("x");
  Node* bias = graph->get_attr("layer.bias");
  Node* add = graph->call(op("add.Tensor"), {x, bias}, {{"alpha", 2}});
  Node* cat = graph->call(op("cat"), {Argument::list({add, x})});
  Node* view = graph->call(op("view"), {cat, Argument::list({-1})});
  graph->output(Argument::tuple({view, Argument(), 3, add}));
  auto module = module_of(graph);
  module->set("layer.bias", tensor_of({10, 20}, {2}), AttributeKind::Parameter);
  std::vector<Value> results = module->run({tensor_of({1, 2}, {1, 2})});
  ASSERT_EQ(results.size(), 4u);
  EXPECT_THAT(values_of(results[0]), ElementsAre(21, 42, 1, 2));
  EXPECT_TRUE(results[1].is_none());
  EXPECT_EQ(results[2].to_int(), 3);
  module->set("layer.bias", tensor_of({0, 0}, {2}), AttributeKind::Parameter);
  EXPECT_THAT(values_of(module->run({tensor_of({1, 2}, {1, 2})})[0]), ElementsAre(1, 2, 1, 2));
}

TEST(Interpreter, ComputesSizesAndPicksFromLists) {
  auto graph = make_counted<Graph>();
  Node* x = graph->placeholder("x");
  Node* size = graph->placeholder("size");
  Node* half = graph->call(function("operator.floordiv"), {size, 2});
  Node* doubled = graph->call(function("operator.mul"), {half, 2});
  Node* view = graph->call(op("view"), {x, Argument::list({half, doubled})});
  Node* parts = graph->call(op("split.Tensor"), {view, 1});
  Node* last = graph->call(function("operator.getitem"), {parts, -1});
  Node* joined = graph->call(op("cat"), {parts});
  graph->output(Argument::list({last, joined, doubled}));
  std::vector<Value> results = module_of(graph)->run({tensor_of({1, 2, 3, 4, 5, 6, 7, 8}, {8}), 5});
  EXPECT_THAT(results[0].tensor().sizes().vec(), ElementsAre(1, 4));
  EXPECT_THAT(values_of(results[1]), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_EQ(results[2].to_int(), 4);
}

TEST(Interpreter, InPlaceResultsOutliveTheirInputs) {
  auto graph = make_counted<Graph>();
  Node* x = graph->placeholder("x");
  Node* copy = graph->call(op("clone"), {x});
  Node* changed = graph->call(op("add_.Tensor"), {copy, x});
  graph->output(Argument::tuple({changed}));
  EXPECT_THAT(values_of(module_of(graph)->run({tensor_of({1, 2}, {2})})[0]), ElementsAre(2, 4));
}

TEST(Interpreter, FreesValuesAfterTheirLastUse) {
  auto graph = make_counted<Graph>();
  Node* x = graph->placeholder("x");
  Node* a = graph->call(op("neg"), {x});
  Node* b = graph->call(op("neg"), {a});
  graph->output(Argument::tuple({graph->call(op("neg"), {b})}));
  WeakPtr<TensorImpl> first;
  Interpreter interpreter(module_of(graph));
  interpreter.on_value([&](Node& node, const Value& value) {
    if (&node == a) first = WeakPtr<TensorImpl>(value.tensor().pointer());
    if (&node == b) {
      EXPECT_FALSE(first.expired());
    }
  });
  bool freed = false;
  interpreter.on_call([&](NodeCall& call) {
    if (&call.node() != a && &call.node() != b) freed = first.expired();
    return call.run();
  });
  EXPECT_THAT(values_of(interpreter.run({tensor_of({1}, {1})})[0]), ElementsAre(-1));
  EXPECT_TRUE(freed);
}

TEST(Interpreter, HooksMayChangeArgumentsAndResults) {
  auto graph = make_counted<Graph>();
  Node* x = graph->placeholder("x");
  graph->output(graph->call(op("add.Tensor"), {x, x}));
  Interpreter interpreter(module_of(graph));
  interpreter.on_call([&](NodeCall& call) {
    EXPECT_EQ(call.count(), 3u);
    call.arguments()[2] = Value(10);
    return call.run();
  });
  EXPECT_THAT(values_of(interpreter.run({tensor_of({1}, {1})})[0]), ElementsAre(11));
}

TEST(Interpreter, CallsSubmodulesAndHigherOrderFunctions) {
  static const Function& choose =
      define_function({.name = "test.choose", .format = {}, .evaluate = [](ArrayRef<Value> in) {
                         return to_callable(in[in[0].to_bool() ? 1 : 2]).call(in[3].list().vec());
                       }});
  auto branch = [](const char* name) {
    auto graph = make_counted<Graph>();
    Node* x = graph->placeholder("x");
    graph->output(Argument::tuple({graph->call(op(name), {x})}));
    return module_of(graph);
  };
  auto graph = make_counted<Graph>();
  Node* predicate = graph->placeholder("p");
  Node* x = graph->placeholder("x");
  Node* chosen = graph->call(
      choose, {predicate, graph->get_attr("true_graph_0"), graph->get_attr("false_graph_0"), Argument::tuple({x})});
  Node* item = graph->call(function("operator.getitem"), {chosen, 0});
  Node* called = graph->call_module("true_graph_0", {item});
  graph->output(graph->call(function("operator.getitem"), {called, 0}));
  auto module = module_of(graph);
  module->set_submodule("true_graph_0", branch("neg"));
  module->set_submodule("false_graph_0", branch("clone"));
  EXPECT_THAT(values_of(module->run({true, tensor_of({-1, 2}, {2})})[0]), ElementsAre(-1, 2));
  EXPECT_THAT(values_of(module->call({false, tensor_of({-1, 2}, {2})})), ElementsAre(1, -2));
}

TEST(Interpreter, SeesChangesOfTheGraph) {
  auto graph = make_counted<Graph>();
  Node* x = graph->placeholder("x");
  Node* neg = graph->call(op("neg"), {x});
  graph->output(neg);
  auto module = module_of(graph);
  EXPECT_THAT(values_of(module->run({tensor_of({1}, {1})})[0]), ElementsAre(-1));
  neg->set_target(op("clone"));
  EXPECT_THAT(values_of(module->run({tensor_of({1}, {1})})[0]), ElementsAre(1));
}

TEST(Interpreter, ErrorsNameTheNodeAndTheUsersLine) {
  auto graph = make_counted<Graph>();
  Node* x = graph->placeholder("x");
  Node* view = graph->call(op("view"), {x, Value(std::vector<int64_t>{7})});
  view->meta.source =
      IntrusivePtr<SourceLocation>(make_counted<TextLocation>("  File \"a.py\", line 7, in forward\n    x.view(7)\n"));
  graph->output(view);
  auto module = module_of(graph);
  std::string message = error_of([&] { module->run({tensor_of({1, 2}, {2})}); });
  EXPECT_THAT(message, HasSubstr("shape '[7]' is invalid for input of size 2"));
  EXPECT_THAT(message,
              HasSubstr("While executing %view : [num_users=1] = call_function[target=torch.ops.aten.view.default]"));
  EXPECT_THAT(message, HasSubstr("line 7, in forward"));
}

TEST(Interpreter, ErrorsOfOthersPassUnchanged) {
  auto graph = make_counted<Graph>();
  Node* x = graph->placeholder("x");
  graph->output(graph->call(op("neg"), {x}));
  Interpreter interpreter(module_of(graph));
  interpreter.on_call([](NodeCall&) -> Value { throw std::out_of_range("mine"); });
  EXPECT_THROW(interpreter.run({tensor_of({1}, {1})}), std::out_of_range);
}

TEST(Interpreter, WrongCallsAreTypeErrors) {
  auto graph = make_counted<Graph>();
  graph->placeholder("x");
  Node* y = graph->placeholder("y", 4);
  graph->output(y);
  auto module = module_of(graph);
  EXPECT_EQ(module->run({1})[0].to_int(), 4);
  EXPECT_EQ(error_of<TypeError>([&] { module->run({}); }), "forward() missing 1 required positional argument: 'x'");
  EXPECT_EQ(error_of<TypeError>([&] {
              module->run({1, 2, 3});
            }),
            "forward() takes 3 positional arguments but 4 were given");
  Node* wrong = graph->call(op("neg"), {});
  EXPECT_THAT(error_of<TypeError>([&] { module->run({1}); }),
              HasSubstr("aten::neg() is missing value for argument 'self'"));
  graph->erase_node(wrong);
  Node* unknown = graph->get_attr("nothing.there");
  EXPECT_THAT(error_of<AttributeError>([&] { module->run({1}); }),
              HasSubstr("'GraphModule' object has no attribute 'nothing.there'"));
  graph->erase_node(unknown);
  graph->call(function("test.undefined"), {});
  EXPECT_THAT(error_of<NotImplementedError>([&] { module->run({1}); }), HasSubstr("test.undefined has no definition"));
}

TEST(Functions, ArithmeticOnNumbers) {
  auto run = [](const char* name, std::vector<Value> inputs) { return to_string(function(name).evaluate(inputs)); };
  EXPECT_EQ(run("operator.add", {2, 3}), "5");
  EXPECT_EQ(run("operator.add", {2, 0.5}), "2.5");
  EXPECT_EQ(run("operator.floordiv", {-7, 2}), "-4");
  EXPECT_EQ(run("operator.mod", {-7, 2}), "1");
  EXPECT_EQ(run("operator.truediv", {7, 2}), "3.5");
  EXPECT_EQ(run("operator.pow", {2, 10}), "1024");
  EXPECT_EQ(run("operator.pow", {2, -1}), "0.5");
  EXPECT_EQ(run("operator.neg", {3}), "-3");
  EXPECT_EQ(run("operator.lt", {2, 3}), "True");
  EXPECT_EQ(run("operator.eq", {2, 2.5}), "False");
  EXPECT_EQ(run("operator.and_", {true, false}), "False");
  EXPECT_EQ(run("operator.and_", {6, 3}), "2");
  EXPECT_EQ(run("operator.lshift", {3, 2}), "12");
  EXPECT_EQ(run("torch.sym_max", {2, 3}), "3");
  EXPECT_EQ(run("torch.sym_min", {2.5, 3}), "2.5");
  EXPECT_EQ(run("torch.sym_float", {2}), "2.0");
  EXPECT_EQ(run("torch.sym_int", {-2.7}), "-2");
  EXPECT_EQ(run("torch.sym_not", {true}), "False");
  EXPECT_EQ(run("torch.sym_ite", {false, 1, 2}), "2");
  EXPECT_EQ(run("torch.sym_sum", {Value(std::vector<int64_t>{1, 2, 3})}), "6");
  EXPECT_EQ(run("math.ceil", {2.1}), "3");
  EXPECT_EQ(run("builtins.round", {2.5}), "2");
  EXPECT_EQ(error_of<ZeroDivisionError>([&] {
              run("operator.floordiv", {1, 0});
            }),
            "integer division or modulo by zero");
  EXPECT_EQ(error_of<IndexError>([&] {
              run("operator.getitem", {Value(std::vector<int64_t>{1}), 1});
            }),
            "tuple index out of range");
}

struct Interrupts : ::testing::Test {
  static inline int left = 0;
  Interrupts() {
    set_interrupt_check([] {
      if (left-- == 0) throw std::runtime_error("that is enough");
    });
  }
  ~Interrupts() override { set_interrupt_check(nullptr); }
};

TEST_F(Interrupts, EndAGraphBetweenTwoOfItsNodes) {
  auto graph = make_counted<Graph>();
  Node* x = graph->placeholder("x");
  graph->call(op("add_.Tensor"), {x, 1});
  Node* sum = graph->call(op("add_.Tensor"), {x, 10});
  graph->output(sum);
  auto module = module_of(graph);
  Tensor input = tensor_of({0}, {1});
  left = 1;
  EXPECT_EQ(error_of<std::runtime_error>([&] { module->run({input}); }), "that is enough");
  EXPECT_THAT(values_of(input), ElementsAre(1));
  left = -1;
  EXPECT_THAT(values_of(module->run({input})[0]), ElementsAre(12));
}

TEST_F(Interrupts, EndABackwardPass) {
  Tensor x = tensor_of({2}, {1}).requires_grad_(), y = (x * x).sum();
  left = 1;
  EXPECT_EQ(error_of<std::runtime_error>([&] { y.backward(); }), "that is enough");
  EXPECT_FALSE(x.grad().defined());
  EXPECT_EQ(autograd::running_node(), nullptr);
  left = -1;
  (x * x).sum().backward();
  EXPECT_THAT(values_of(x.grad()), ElementsAre(4));
}

}  // namespace
}  // namespace umbra::fx
