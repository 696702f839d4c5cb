// The expected texts are those of torch 2.15 for the same graphs.
#include "umbra/graph/print.h"

#include <gmock/gmock.h>

#include "graph/testing.h"

namespace umbra::fx {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// def f(x, y): the parts of make_fx's output that show each construct once.
IntrusivePtr<Graph> sample() {
  auto graph = make_counted<Graph>();
  Node* x = graph->placeholder("x_1");
  Node* y = graph->placeholder("y_1");
  Node* conj = graph->call(op("conj"), {x});
  Node* sum = graph->call(op("sum"), {y});
  Node* add = graph->call(op("add.Tensor"), {conj, sum});
  Node* split = graph->call(op("split.Tensor"), {add, 2});
  Node* first = graph->call(function("operator.getitem"), {split, 0});
  Node* second = graph->call(function("operator.getitem"), {split, 1});
  Node* cat = graph->call(op("cat"), {Argument::list({first, second}), 1});
  Node* view = graph->call(op("view"), {cat, Value(std::vector<int64_t>{-1})});
  graph->call(function("operator.getitem"), {split, 1});
  graph->output(Argument::tuple({view, first}));
  return graph;
}

TEST(Print, Code) {
  EXPECT_EQ(python_code(*sample()), R"(


def forward(self, x_1, y_1):
    conj = torch.ops.aten.conj.default(x_1);  x_1 = None
    sum_1 = torch.ops.aten.sum.default(y_1);  y_1 = None
    add = torch.ops.aten.add.Tensor(conj, sum_1);  conj = sum_1 = None
    split = torch.ops.aten.split.Tensor(add, 2);  add = None
    getitem = split[0]
    getitem_1 = split[1]
    cat = torch.ops.aten.cat.default([getitem, getitem_1], 1);  getitem_1 = None
    view = torch.ops.aten.view.default(cat, [-1]);  cat = None
    getitem_2 = split[1];  split = getitem_2 = None
    return (view, getitem)
    )");
}

TEST(Print, Nodes) {
  EXPECT_EQ(to_string(*sample()),
            R"(graph():
    %x_1 : [num_users=1] = placeholder[target=x_1]
    %y_1 : [num_users=1] = placeholder[target=y_1]
    %conj : [num_users=1] = call_function[target=torch.ops.aten.conj.default](args = (%x_1,), kwargs = {})
    %sum_1 : [num_users=1] = call_function[target=torch.ops.aten.sum.default](args = (%y_1,), kwargs = {})
    %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%conj, %sum_1), kwargs = {})
    %split : [num_users=3] = call_function[target=torch.ops.aten.split.Tensor](args = (%add, 2), kwargs = {})
    %getitem : [num_users=2] = call_function[target=operator.getitem](args = (%split, 0), kwargs = {})
    %getitem_1 : [num_users=1] = call_function[target=operator.getitem](args = (%split, 1), kwargs = {})
    %cat : [num_users=1] = call_function[target=torch.ops.aten.cat.default](args = ([%getitem, %getitem_1], 1), kwargs = {})
    %view : [num_users=1] = call_function[target=torch.ops.aten.view.default](args = (%cat, [-1]), kwargs = {})
    %getitem_2 : [num_users=0] = call_function[target=operator.getitem](args = (%split, 1), kwargs = {})
    return (view, getitem))");
}

TEST(Print, Table) {
  EXPECT_EQ(tabular(*sample()),
            R"(opcode         name       target                       args                       kwargs
-------------  ---------  ---------------------------  -------------------------  --------
placeholder    x_1        x_1                          ()                         {}
placeholder    y_1        y_1                          ()                         {}
call_function  conj       aten.conj.default            (x_1,)                     {}
call_function  sum_1      aten.sum.default             (y_1,)                     {}
call_function  add        aten.add.Tensor              (conj, sum_1)              {}
call_function  split      aten.split.Tensor            (add, 2)                   {}
call_function  getitem    <built-in function getitem>  (split, 0)                 {}
call_function  getitem_1  <built-in function getitem>  (split, 1)                 {}
call_function  cat        aten.cat.default             ([getitem, getitem_1], 1)  {}
call_function  view       aten.view.default            (cat, [-1])                {}
call_function  getitem_2  <built-in function getitem>  (split, 1)                 {}
output         output     output                       ((view, getitem),)         {})");
}

TEST(Print, SymbolicFunctions) {
  Graph graph;
  Node* a = graph.placeholder("a");
  Node* b = graph.placeholder("b");
  const std::pair<const char*, const char*> kCases[] = {
      {"operator.add", "add = a + b"},
      {"operator.floordiv", "floordiv = a // b"},
      {"operator.mod", "mod = a % b"},
      {"operator.pow", "pow_1 = a ** b"},
      {"operator.neg", "neg = -a"},
      {"operator.and_", "and_ = a & b"},
      {"operator.not_", "not_ = _operator_not_(a, b)"},
      {"torch.sym_max", "sym_max = torch.sym_max(a, b)"},
      {"torch._sym_sqrt", "_sym_sqrt = torch._sym_sqrt(a, b)"},
      {"math.floor", "floor = math_floor(a, b)"},
      {"builtins.round", "round_1 = round(a, b)"},
      {"torch.ops.higher_order.cond", "cond = torch.ops.higher_order.cond(a, b)"},
  };
  for (auto [name, expected] : kCases) graph.call(function(name), {a, b});
  std::string code = python_code(graph);
  for (auto [name, expected] : kCases) EXPECT_THAT(code, ::testing::HasSubstr(std::string("    ") + expected)) << name;
  EXPECT_THAT(to_string(graph),
              ::testing::HasSubstr("%round_1 : [num_users=0] = call_function[target=builtins.round]"));
}

TEST(Print, ValuesOfEveryKind) {
  EXPECT_EQ(python_repr(Value("it's")), "\"it's\"");
  EXPECT_EQ(python_repr(Value("tanh")), "'tanh'");
  EXPECT_EQ(python_str(Value("tanh")), "tanh");
  EXPECT_EQ(python_repr(Value(Device("cuda:1"))), "device(type='cuda', index=1)");
  EXPECT_EQ(python_str(Value(Device("cuda:1"))), "cuda:1");
  EXPECT_EQ(python_repr(Value(DType::Float32)), "torch.float32");
  EXPECT_EQ(python_repr(Value(MemoryFormat::ChannelsLast)), "torch.channels_last");
  EXPECT_EQ(python_repr(Value(1e-5)), "1e-05");
  EXPECT_EQ(python_repr(Value(-kInfinity)), "-inf");
  EXPECT_EQ(python_repr(Value(std::complex<double>(1, 2))), "(1+2j)");
  EXPECT_EQ(python_repr(Value(std::complex<double>(0, 2))), "2j");
  EXPECT_EQ(python_repr(Value(std::complex<double>(-0.0, 2))), "complex(-0.0, 2.0)");
  EXPECT_EQ(python_str(Value(std::complex<double>(0, 2))), "2j");
  EXPECT_EQ(python_repr(Value(std::vector<bool>{true, false})), "[True, False]");
  EXPECT_EQ(python_repr(Value(std::vector<Value>{Value(), Value(2), Value("s")})), "[None, 2, 's']");
  Argument slice = Argument::slice({}, 3, {});
  EXPECT_EQ(python_repr(Argument::tuple({0, slice})), "(0, slice(None, 3, None))");
  EXPECT_EQ(format_argument(Argument::dict({{"k", Argument::tuple({"s"})}})), "{k: (s,)}");
  EXPECT_EQ(python_repr(Argument::dict({{"k", Argument::tuple({"s"})}})), "{'k': ('s',)}");
}

TEST(Print, KeywordArgumentsAttributesAndDefaults) {
  Graph graph;
  Node* x = graph.placeholder("x");
  graph.placeholder("y", Argument());
  Node* input = graph.placeholder("input");
  Node* full = graph.call(op("full"), {Value(std::vector<int64_t>{2, 3}), kInfinity},
                          {{"dtype", DType::Float32}, {"device", Device("cpu")}, {"pin_memory", false}});
  Node* weight = graph.get_attr("layers.0.weight");
  Node* module = graph.call_module("layers.1", {input});
  graph.output(Argument::tuple({x, full, weight, module}));
  EXPECT_EQ(python_code(graph), R"(


def forward(self, x, y = None, input):
    input_1 = input
    full = torch.ops.aten.full.default([2, 3], inf, dtype = torch.float32, device = device(type='cpu'), pin_memory = False)
    layers_0_weight = getattr(self.layers, "0").weight
    layers_1 = getattr(self.layers, "1")(input_1);  input_1 = None
    return (x, full, layers_0_weight, layers_1)
    )");
  EXPECT_THAT(to_string(graph), ::testing::HasSubstr("%y : [num_users=0] = placeholder[target=y](default=None)\n"));
  EXPECT_THAT(
      to_string(graph),
      ::testing::HasSubstr("(args = ([2, 3], inf), kwargs = {dtype: torch.float32, device: cpu, pin_memory: False})"));
  EXPECT_THAT(to_string(graph),
              ::testing::HasSubstr(
                  "%layers_1 : [num_users=1] = call_module[target=layers.1](args = (%input_1,), kwargs = {})"));
}

TEST(Print, ReadableWithTypesSourcesAndSubgraphs) {
  auto branch = make_counted<Graph>();
  Node* inner = branch->placeholder("x");
  branch->output(Argument::tuple({branch->call(op("neg"), {inner})}));
  auto graph = make_counted<Graph>();
  Node* x = graph->placeholder("x");
  Node* conj = graph->call(op("conj"), {x});
  Node* total = graph->call(op("sum"), {conj});
  x->meta.val = conj->meta.val = tensor_of({1, 2}, {2, 1});
  total->meta.val = tensor_of({3}, {});
  conj->meta.source =
      IntrusivePtr<SourceLocation>(make_counted<TextLocation>("File \"a.py\", line 7, in forward\n    x.conj()"));
  graph->output(Argument::tuple({total}));
  auto module = make_counted<GraphModule>(graph);
  module->set_submodule("true_graph_0", make_counted<GraphModule>(branch));
  EXPECT_EQ(readable_code(*module, {.include_stride = true, .include_device = true}),
            R"(class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[2, 1][1, 1]cpu"):
        # File: a.py:7 in forward, code: x.conj()
        conj: "f32[2, 1][1, 1]cpu" = torch.ops.aten.conj.default(x);  x = None

        # No stacktrace found for following nodes
        sum_1: "f32[][]cpu" = torch.ops.aten.sum.default(conj);  conj = None
        return (sum_1,)

    class true_graph_0(torch.nn.Module):
        def forward(self, x):
            # No stacktrace found for following nodes
            neg = torch.ops.aten.neg.default(x);  x = None
            return (neg,)
)");
}

TEST(Print, PytreeSignature) {
  auto graph = make_counted<Graph>();
  Node* x = graph->placeholder("x");
  Node* weight = graph->get_attr("l.weight");
  Node* z = graph->placeholder("k_z");
  graph->output(Argument::tuple({graph->call(op("add.Tensor"), {x, weight}), z}));
  graph->pytree = PytreeSignature{.arguments = {"x", "k"}, .keywords = {{"k"}}};
  EXPECT_EQ(python_code(*graph), R"(


def forward(self, x, k):
    x, k_z, = fx_pytree.tree_flatten_spec(([x], {'k':k}), self._in_spec)
    l_weight = self.l.weight
    add = torch.ops.aten.add.Tensor(x, l_weight);  x = l_weight = None
    return pytree.tree_unflatten((add, k_z), self._out_spec)
    )");
  x->meta.val = tensor_of({1, 2}, {2});
  EXPECT_THAT(python_code(*graph, {.verbose = true}),
              ::testing::HasSubstr(
                  "def forward(self, x, k):\n    x: \"f32[2]\";\n\n    x, k_z, = fx_pytree.tree_flatten_spec("));
}

TEST(Print, Module) {
  auto graph = make_counted<Graph>();
  graph->output(graph->get_attr("layers.0.weight"));
  auto module = make_counted<GraphModule>(graph);
  module->set("layers.0.weight", tensor_of({1}, {1}), AttributeKind::Parameter);
  EXPECT_EQ(to_string(*module), R"(GraphModule(
  (layers): Module(
    (0): Module()
  )
)



def forward(self):
    layers_0_weight = getattr(self.layers, "0").weight
    return layers_0_weight
    
# To see more debug info, please use `graph_module.print_readable()`)");
}

}  // namespace
}  // namespace umbra::fx
