#include "umbra/graph/passes.h"

#include <gmock/gmock.h>

#include "graph/testing.h"
#include "umbra/dispatch/library.h"

namespace umbra::fx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::string> names(const Graph& graph) {
  std::vector<std::string> out;
  for (Node* node : graph.nodes()) out.push_back(node->name());
  return out;
}

const Operator& defined_operator(const char* schema, bool random = false) {
  static Library library("graph_test");
  Operator& made = library.define(schema);
  made.mutable_definition().random = random;
  return made;
}

TEST(DeadCode, GoesWithAllThatOnlyItUsed) {
  Graph graph;
  Node* x = graph.placeholder("x");
  graph.placeholder("unused");
  Node* a = graph.call(op("neg"), {x});
  graph.call(op("neg"), {a});
  graph.get_attr("weight");
  graph.output(Argument::tuple({x}));
  EXPECT_TRUE(eliminate_dead_code(graph));
  EXPECT_THAT(names(graph), ElementsAre("x", "unused", "output"));
  EXPECT_FALSE(eliminate_dead_code(graph));
}

TEST(DeadCode, KeepsWhatHasEffects) {
  static const Operator& assertion = defined_operator("assert_positive(Tensor x) -> ()");
  static const Operator& noise = defined_operator("noise(Tensor x) -> Tensor", true);
  Graph graph;
  Node* x = graph.placeholder("x");
  graph.call(op("add_.Tensor"), {x, 1});
  graph.call(assertion, {x});
  graph.call(noise, {x});
  graph.call_module("_guards_fn", {x});
  graph.output(x);
  EXPECT_FALSE(eliminate_dead_code(graph));
  EXPECT_TRUE(eliminate_dead_code(graph, [](const Node& node) { return node.op() != Op::CallFunction; }));
  EXPECT_THAT(names(graph), ElementsAre("x", "_guards_fn", "output"));
}

TEST(DeadCode, ReachesSubgraphs) {
  auto branch = make_counted<Graph>();
  Node* inner = branch->placeholder("x");
  branch->call(op("neg"), {inner});
  branch->output(Argument::tuple({inner}));
  auto graph = make_counted<Graph>();
  graph->output(graph->get_attr("true_graph_0"));
  auto module = make_counted<GraphModule>(graph);
  module->set_submodule("true_graph_0", make_counted<GraphModule>(branch));
  EXPECT_TRUE(eliminate_dead_code(*module));
  EXPECT_THAT(names(*branch), ElementsAre("x", "output"));
}

TEST(CommonSubexpressions, MergeWhateverListsAreMadeOf) {
  Graph graph;
  Node* x = graph.placeholder("x");
  Node* a = graph.call(op("view"), {x, Argument::list({2, 3})});
  Node* b = graph.call(op("view"), {x, Value(std::vector<int64_t>{2, 3})});
  Node* c = graph.call(op("view"), {x, Argument::list({3, 2})});
  Node* d = graph.call(op("neg"), {a});
  Node* e = graph.call(op("neg"), {b});
  graph.output(Argument::tuple({graph.call(op("mul.Tensor"), {d, e}), graph.call(op("neg"), {c})}));
  EXPECT_TRUE(eliminate_common_subexpressions(graph));
  EXPECT_THAT(names(graph), ElementsAre("x", "view", "view_2", "neg", "mul", "neg_2", "output"));
  EXPECT_FALSE(eliminate_common_subexpressions(graph));
}

TEST(CommonSubexpressions, ResultsStayApart) {
  Graph graph;
  Node* x = graph.placeholder("x");
  Node* a = graph.call(op("neg"), {x});
  Node* b = graph.call(op("neg"), {x});
  graph.output(Argument::tuple({graph.call(op("t"), {a}), b}));
  EXPECT_FALSE(eliminate_common_subexpressions(graph));
}

TEST(CommonSubexpressions, RandomNumbersAreDrawnTwice) {
  static const Operator& draw = defined_operator("draw(Tensor x) -> Tensor", true);
  Graph graph;
  Node* x = graph.placeholder("x");
  Node* a = graph.call(draw, {x});
  Node* b = graph.call(draw, {x});
  graph.output(graph.call(op("mul.Tensor"), {a, b}));
  EXPECT_FALSE(eliminate_common_subexpressions(graph));
}

TEST(CommonSubexpressions, OnlySizesWhereValuesAreWrittenTo) {
  Graph graph;
  Node* x = graph.placeholder("x");
  Node* s = graph.placeholder("s");
  Node* a = graph.call(op("clone"), {x});
  Node* b = graph.call(op("clone"), {x});
  Node* one = graph.call(function("operator.mul"), {s, 2});
  Node* two = graph.call(function("operator.mul"), {s, 2});
  graph.call(op("add_.Tensor"), {a, one});
  graph.output(Argument::tuple({graph.call(op("mul.Tensor"), {b, graph.call(function("operator.add"), {one, two})})}));
  EXPECT_TRUE(eliminate_common_subexpressions(graph));
  EXPECT_THAT(names(graph), ElementsAre("x", "s", "clone", "clone_1", "mul", "add_", "add", "mul_2", "output"));
}

TEST(Lint, AcceptsWhatIsWellFormed) {
  auto graph = make_counted<Graph>();
  Node* x = graph->placeholder("x");
  Node* n = graph->placeholder("n");
  Node* w = graph->get_attr("w");
  Node* view = graph->call(op("view"), {x, Argument::list({-1, n})});
  Node* sum = graph->call(op("sum.dim_IntList"), {view, Value(std::vector<int64_t>{0})}, {{"dtype", DType::Float64}});
  Node* cat = graph->call(op("cat"), {Argument::list({sum, w})});
  graph->output(Argument::tuple({cat, Argument()}));
  auto module = make_counted<GraphModule>(graph);
  module->set("w", tensor_of({1}, {1}));
  lint(*module);
}

TEST(Lint, FindsUsesBeforeDefinitions) {
  Graph graph;
  Node* x = graph.placeholder("x");
  Node* a = graph.call(op("neg"), {x});
  graph.output(a);
  a->move_before(x);
  EXPECT_THAT(
      error_of([&] { lint(graph); }),
      StartsWith(
          "Argument 'x' of Node 'neg' was used before it has been defined! Please check that Nodes in the graph are "
          "topologically ordered\ngraph():"));
  sort_topologically(graph);
  lint(graph);
  EXPECT_THAT(names(graph), ElementsAre("x", "neg", "output"));
}

TEST(Lint, ChecksCallsAgainstSchemas) {
  auto message = [](const Operator& target, Arguments args, KeywordArguments kwargs = {}) {
    Graph graph;
    Node* x = graph.placeholder("x");
    for (Argument& a : args)
      if (a.is_none()) a = Argument(x);
    graph.call(target, std::move(args), std::move(kwargs));
    return error_of<TypeError>([&] { lint(graph); });
  };
  EXPECT_THAT(message(op("neg"), {}), HasSubstr("Node 'neg' calls aten::neg: argument 'self' is missing"));
  EXPECT_THAT(message(op("neg"), {"text"}), HasSubstr("argument 'self' should be Tensor"));
  EXPECT_THAT(message(op("view"), {Argument(), Argument::list({"a"})}),
              HasSubstr("argument 'size' should be SymInt[]"));
  EXPECT_THAT(message(op("neg"), {Argument(), 1}), HasSubstr("it takes 1 positional arguments but 2 were given"));
  EXPECT_THAT(message(op("neg"), {Argument()}, {{"alpha", 1}}), HasSubstr("it has no argument 'alpha'"));
  EXPECT_THAT(message(op("neg"), {Argument()}, {{"self", 1}}), HasSubstr("argument 'self' is given twice"));
}

TEST(Lint, ChecksAttributes) {
  auto graph = make_counted<Graph>();
  Node* w = graph->get_attr("layer.weight");
  graph->output(w);
  auto module = make_counted<GraphModule>(graph);
  EXPECT_EQ(error_of([&] { lint(*module); }),
            "Node layer_weight target layer.weight references nonexistent attribute weight of layer");
  module->set("layer.weight", tensor_of({1}, {1}));
  lint(*module);
  graph->call_module("layer.weight", {w});
  EXPECT_THAT(error_of([&] { lint(*module); }), HasSubstr("does not reference an nn.Module"));
}

TEST(TopologicalOrder, PutsLongChainsInOrder) {
  Graph graph;
  Node* x = graph.placeholder("x");
  Node* last = x;
  for (int i = 0; i < 20000; ++i) last = graph.call(op("neg"), {last});
  std::vector<Node*> chain;
  for (Node* node : graph.nodes()) chain.push_back(node);
  for (Node* node : chain) node->move_before(graph.first());
  EXPECT_EQ(graph.first(), last);
  sort_topologically(graph);
  lint(graph);
  x->meta.val = Value();
  chain[1]->set_args({last});
  EXPECT_THAT(error_of([&] { sort_topologically(graph); }), HasSubstr("use each other in a circle"));
}

TEST(Subgraph, HoldsWhatLiesBetween) {
  auto graph = make_counted<Graph>();
  Node* x = graph->placeholder("x");
  Node* y = graph->placeholder("y");
  Node* a = graph->call(op("neg"), {x});
  Node* b = graph->call(op("mul.Tensor"), {a, y});
  Node* c = graph->call(op("add.Tensor"), {b, a});
  graph->call(op("clone"), {c});
  a->meta.set("tag", "kept");
  NodeMap map;
  IntrusivePtr<Graph> part = extract_subgraph(*graph, {a, y}, {c, Argument(), y}, &map);
  EXPECT_EQ(to_string(*part), R"(graph():
    %neg : [num_users=2] = placeholder[target=neg]
    %y : [num_users=2] = placeholder[target=y]
    %mul : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%neg, %y), kwargs = {})
    %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%mul, %neg), kwargs = {})
    return (add, None, y))");
  EXPECT_EQ(map.at(a)->meta.find("tag")->to_string(), "kept");
  EXPECT_EQ(error_of([&] { extract_subgraph(*graph, {a}, {c}); }),
            "the subgraph needs the input 'y', which is not among its inputs");
}

}  // namespace
}  // namespace umbra::fx
