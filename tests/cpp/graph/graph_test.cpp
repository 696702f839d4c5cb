#include "umbra/graph/graph.h"

#include <gmock/gmock.h>

#include "graph/testing.h"

namespace umbra::fx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names(const Graph& graph) {
  std::vector<std::string> out;
  for (Node* node : graph.nodes()) out.push_back(node->name());
  return out;
}

TEST(Namespace, NumbersNamesAsTorchFxDoes) {
  Namespace names;
  // Each pair as torch 2.15 answers it, in this order.
  const std::pair<const char*, const char*> kCases[] = {
      {"sum", "sum_1"},
      {"view", "view"},
      {"_softmax", "_softmax"},
      {"sum_1", "sum_2"},
      {"sum_1", "sum_3"},
      {"abs", "abs_1"},
      {"t", "t"},
      {"add_1", "add_1"},
      {"add", "add"},
      {"add_1", "add_2"},
      {"add", "add_3"},
      {"3d", "_3d"},
      {"a-b", "a_b"},
      {"in", "in_1"},
      {"self", "self"},
      {"_", "_"},
      {"__", "__"},
      {"x_01", "x_01"},
      {"x_01", "x_2"},
      {"Conv2d", "Conv2d"},
      {"a.B", "a_B"},
      {"copy_", "copy_"},
      {"copy_", "copy__1"},
      {"detach_", "detach_"},
      {"sum_", "sum_"},
      {"i_1_2", "i_1_2"},
      {"i_1_2", "i_1_3"},
      {"i_1", "i_1"},
      {"int", "int_1"},
      {"device", "device_1"},
      {"torch", "torch_1"},
      {"inf", "inf_1"},
      {"max", "max_1"},
      {"all", "all_1"},
      {"any", "any_1"},
      {"type", "type_1"},
      {"__add__", "__add__"},
      {"", "_unnamed"},
      {"x_1", "x_1"},
      {"x", "x"},
  };
  for (auto [candidate, expected] : kCases) EXPECT_EQ(names.create(candidate), expected) << candidate;
}

TEST(Graph, NamesNodesAfterWhatTheyCall) {
  Graph graph;
  Node* x = graph.placeholder("x");
  EXPECT_EQ(graph.call(op("add.Tensor"), {x, x})->name(), "add");
  EXPECT_EQ(graph.call(op("add.Tensor"), {x, x})->name(), "add_1");
  EXPECT_EQ(graph.call(op("sum"), {x})->name(), "sum_1");
  EXPECT_EQ(graph.create_node(Op::CallFunction, op("add.Tensor"), {x, x})->name(), "add_tensor");
  EXPECT_EQ(graph.create_node(Op::CallFunction, op("conj"), {x})->name(), "conj_default");
  EXPECT_EQ(graph.call(function("operator.getitem"), {x, 0})->name(), "getitem");
  EXPECT_EQ(graph.get_attr("layers.0.Weight")->name(), "layers_0_weight");
  EXPECT_EQ(graph.placeholder("fooBar")->name(), "foo_bar");
  EXPECT_EQ(graph.placeholder("input")->target().name(), "input");
}

TEST(Graph, TracksUsersOnceEach) {
  Graph graph;
  Node* x = graph.placeholder("x");
  Node* y = graph.placeholder("y");
  Node* square = graph.call(op("mul.Tensor"), {x, x});
  Node* both = graph.call(op("cat"), {Argument::list({x, y, x}), 0});
  EXPECT_THAT(x->users(), ElementsAre(square, both));
  EXPECT_THAT(both->inputs(), ElementsAre(x, y));
  both->set_args({Argument::list({y, y})});
  EXPECT_THAT(x->users(), ElementsAre(square));
  EXPECT_THAT(y->users(), ElementsAre(both));
  both->set_kwarg("dim", x);
  EXPECT_THAT(x->users(), ElementsAre(square, both));
}

TEST(Graph, ReplacesAllUses) {
  Graph graph;
  Node* x = graph.placeholder("x");
  Node* y = graph.placeholder("y");
  Node* conj = graph.call(op("conj"), {x});
  Node* output = graph.output(Argument::tuple({conj, x}));
  EXPECT_THAT(x->replace_all_uses_with(y, [&](Node* user) { return user != conj; }), ElementsAre(output));
  EXPECT_EQ(output->text(), "return (conj, y)");
  EXPECT_THAT(x->replace_all_uses_with(y), ElementsAre(conj));
  EXPECT_TRUE(x->users().empty());
  graph.erase_node(x);
  EXPECT_THAT(names(graph), ElementsAre("y", "conj", "output"));
}

TEST(Graph, RefusesToEraseWhatIsUsed) {
  Graph graph;
  Node* x = graph.placeholder("x");
  Node* conj = graph.call(op("conj"), {x});
  graph.output(conj);
  EXPECT_EQ(error_of([&] { graph.erase_node(conj); }),
            "Tried to erase Node conj but it still had 1 users in the graph: {output: None}!");
  Graph other;
  Node* foreign = other.placeholder("z");
  EXPECT_EQ(error_of([&] { graph.erase_node(foreign); }), "Attempting to remove z from wrong graph!");
  EXPECT_THAT(error_of([&] { graph.call(op("conj"), {foreign}); }), HasSubstr("belongs to another graph"));
}

TEST(Graph, InsertsWhereItIsTold) {
  Graph graph;
  Node* x = graph.placeholder("x");
  Node* output = graph.output(x);
  {
    auto scope = graph.inserting_before(output);
    graph.call(op("conj"), {x});
    auto inner = graph.inserting_after(x);
    graph.call(op("neg"), {x});
  }
  graph.call(op("detach"), {x});
  EXPECT_THAT(names(graph), ElementsAre("x", "neg", "conj", "output", "detach"));
  graph.last()->move_after(x);
  EXPECT_THAT(names(graph), ElementsAre("x", "detach", "neg", "conj", "output"));
  EXPECT_EQ(graph.size(), 5u);
}

TEST(Graph, InsertionPointsNestAndOutliveTheirNodes) {
  Graph graph;
  Node* x = graph.placeholder("x");
  Node* output = graph.output(x);
  {
    auto scope = graph.inserting_before(output);
    Node* conj = graph.call(op("conj"), {x});
    {
      auto inner = graph.inserting_before(conj);
      {
        auto innermost = graph.inserting_before(x);
        graph.erase_node(conj);
      }
      graph.call(op("neg"), {x});
    }
    graph.call(op("detach"), {x});
  }
  EXPECT_THAT(names(graph), ElementsAre("x", "neg", "detach", "output"));
  graph.set_insertion_point(x, /*after=*/true);
  graph.call(op("sin"), {x});
  graph.call(op("cos"), {x});
  EXPECT_THAT(names(graph), ElementsAre("x", "cos", "sin", "neg", "detach", "output"));
}

TEST(Graph, MayEraseWhileWalking) {
  Graph graph;
  Node* x = graph.placeholder("x");
  for (int i = 0; i < 200; ++i) graph.call(op("conj"), {x});
  for (Node* node : graph.reversed())
    if (node != x) graph.erase_node(node);
  EXPECT_THAT(names(graph), ElementsAre("x"));
  EXPECT_TRUE(x->users().empty());
}

TEST(Graph, CopiesWithMetadata) {
  auto graph = make_counted<Graph>();
  Node* x = graph->placeholder("x");
  Node* add = graph->call(op("add.Tensor"), {x, 1}, {{"alpha", 2}});
  add->meta.set("tag", "forward");
  graph->output(Argument::tuple({add}));
  NodeMap map;
  IntrusivePtr<Graph> copy = graph->copy(&map);
  EXPECT_EQ(to_string(*copy), to_string(*graph));
  EXPECT_EQ(map.at(add)->meta.find("tag")->to_string(), "forward");
  EXPECT_EQ(&map.at(add)->graph(), copy.get());
  map.at(add)->set_name("total");
  EXPECT_EQ(add->name(), "add");
}

TEST(Argument, ListsOfValuesCompareByContent) {
  Argument plain = Value(std::vector<int64_t>{2, 3});
  EXPECT_TRUE(plain.equals(Argument::list({2, 3})));
  EXPECT_TRUE(Argument::list({2, 3}).equals(plain));
  EXPECT_FALSE(plain.equals(Argument::tuple({2, 3})));
  EXPECT_FALSE(plain.equals(Argument::list({2, 4})));
  EXPECT_FALSE(Argument(1).equals(Argument(true)));
  EXPECT_TRUE(Argument::dict({{"a", 1}}).equals(Argument::dict({{"a", 1}})));
  EXPECT_FALSE(Argument::dict({{"a", 1}}).equals(Argument::dict({{"b", 1}})));
}

TEST(Source, ReadsStackTraces) {
  TextLocation location(
      "  File \"a.py\", line 3, in main\n    run(model)\n  File \"b, line 2.py\", line 12, in forward\n    return x + "
      "1\n");
  auto frames = location.frames();
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].code, "run(model)");
  EXPECT_EQ(frames[1].file, "b, line 2.py");
  EXPECT_EQ(frames[1].line, 12);
  EXPECT_EQ(frames[1].function, "forward");
}

}  // namespace
}  // namespace umbra::fx
