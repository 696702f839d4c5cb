// Passes over graphs, and what they ask: which values may be the same memory, and what tensors look like.
#include "umbra/jit/passes.h"

#include <gtest/gtest.h>

#include "umbra/generated/functions.h"
#include "umbra/jit/alias.h"
#include "umbra/jit/interpreter.h"

namespace umbra::jit {
namespace {

const Variable* value(const Graph& graph, const std::string& name) {
  const Variable* found = nullptr;
  for (const auto& v : graph.block().inputs())
    if (v->name() == name) found = v.get();
  each_node(graph.block(), [&](const Node& n) {
    for (const auto& v : n.outputs())
      if (v->name() == name) found = v.get();
  });
  return found;
}

size_t count(const Graph& graph, std::string_view kind) {
  size_t n = 0;
  each_node(graph.block(), [&](const Node& node) { n += node.is(kind); });
  return n;
}

constexpr const char* kWritten = R"(graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %copy : Tensor = aten::relu(%x)
  %view : Tensor = aten::t(%copy)
  %written : Tensor = aten::add_(%view, %one, %one)
  %other : Tensor = aten::neg(%x)
  return (%copy)
)";

TEST(JitAlias, ViewsAndWritesAreTheMemoryOfTheirBase) {
  auto graph = parse_graph(kWritten);
  AliasAnalysis aliases(*graph);
  EXPECT_TRUE(aliases.may_alias(value(*graph, "copy"), value(*graph, "written")));
  EXPECT_FALSE(aliases.may_alias(value(*graph, "copy"), value(*graph, "x")));
  EXPECT_TRUE(aliases.has_writers(value(*graph, "copy")));
  EXPECT_FALSE(aliases.has_writers(value(*graph, "other")));
}

TEST(JitAlias, WritesThatAreSeenStayAndDeadCodeGoes) {
  auto graph = parse_graph(kWritten);
  eliminate_dead_writes(*graph);
  EXPECT_EQ(count(*graph, "aten::add_"), 1u);
  EXPECT_EQ(count(*graph, "aten::neg"), 0u);
  Tensor x = ones({2, 3});
  EXPECT_EQ(run(graph, {Value(x)})[0].tensor().sum().item().to_double(), 12.0);
}

TEST(JitAlias, EqualCallsAreOneUnlessSomebodyWritesOrGetsBoth) {
  auto made = [](const char* result) {
    auto graph = parse_graph(concat(R"(graph(%x : Tensor):
  %a : Tensor = aten::exp(%x)
  %b : Tensor = aten::exp(%x)
  %c : Tensor = aten::mul(%a, %b)
  return ()",
                                    result, ")\n"));
    eliminate_common_subexpressions(*graph);
    return count(*graph, "aten::exp");
  };
  EXPECT_EQ(made("%c"), 1u);
  EXPECT_EQ(made("%a, %b"), 2u);
}

TEST(JitShapes, FollowFromTheInputs) {
  auto graph = parse_graph(R"(graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %minus : int = prim::Constant[value=-1]()
  %rows : int = aten::size(%x, %zero)
  %sizes : int[] = prim::ListConstruct(%minus, %rows)
  %y : Tensor = aten::view(%x, %sizes)
  return (%y)
)");
  set_input_shapes(*graph, {Value(ones({2, 6}))}, false);
  propagate_shapes(*graph);
  EXPECT_EQ(value(*graph, "y")->type()->text(), "Float(6, 2, strides=[2, 1], requires_grad=0, device=cpu)");
  erase_shapes(*graph);
  EXPECT_EQ(value(*graph, "y")->type()->text(), "Tensor");
}

}  // namespace
}  // namespace umbra::jit
