"""Graphs of TorchScript programs: what passes do to them, what is known of memory and shapes, and their text."""
import re

import pytest

import umbra as torch
from umbra import nn

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


def kinds(block):
    """The kinds of nodes in order, inner blocks included; constants are left out."""
    out = []
    for node in block.nodes():
        if node.kind() != "prim::Constant":
            out.append(node.kind())
        for inner in node.blocks():
            out += kinds(inner)
    return out


def values(graph):
    return {v.debugName(): v for v in [*graph.inputs(), *(o for n in graph.nodes() for o in n.outputs())]}


def text(graph):
    return re.sub(r" # .*", "", str(graph))


# ---- memory ----

VIEWS = """graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %copy : Tensor = aten::relu(%x)
  %view : Tensor = aten::t(%copy)
  %written : Tensor = aten::add_(%view, %one, %one)
  %other : Tensor = aten::relu(%x)
  return (%other)
"""


def test_views_are_the_memory_of_their_base_and_inputs_may_be_each_others():
    graph = torch._C.parse_ir(VIEWS)
    v, aliases = values(graph), graph.alias_db()
    assert aliases.may_alias(v["copy"], v["view"]) and aliases.may_alias(v["copy"], v["written"])
    assert aliases.may_contain_alias(v["x"], v["y"])
    assert not aliases.may_alias(v["copy"], v["x"]) and not aliases.may_alias(v["copy"], v["other"])


def test_writers_of_a_view_are_writers_of_its_base():
    graph = torch._C.parse_ir(VIEWS)
    v, aliases = values(graph), graph.alias_db()
    assert aliases.has_writers(v["copy"]) and aliases.has_writers(v["view"])
    assert not aliases.has_writers(v["x"]) and not aliases.has_writers(v["other"])


def test_what_is_taken_out_of_a_list_may_be_what_went_in():
    graph = torch._C.parse_ir("""graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %list : Tensor[] = prim::ListConstruct(%a)
  %part : Tensor = aten::__getitem__(%list, %one)
  %written : Tensor = aten::add_(%part, %one, %one)
  return (%list)
""")
    v, aliases = values(graph), graph.alias_db()
    assert aliases.may_alias(v["a"], v["part"]) and aliases.has_writers(v["a"])
    assert aliases.may_contain_alias(v["list"], v["a"]) and not aliases.may_alias(v["list"], v["a"])


def test_a_list_that_only_an_operator_reads_tells_nothing_about_its_elements():
    graph = torch._C.parse_ir("""graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::neg(%x)
  %list : Tensor[] = prim::ListConstruct(%a, %b)
  %whole : Tensor = aten::cat(%list, %one)
  return (%whole)
""")
    v, aliases = values(graph), graph.alias_db()
    assert not aliases.may_alias(v["a"], v["b"]) and not aliases.may_contain_alias(v["list"], v["whole"])


def test_a_branch_gives_the_memory_of_both_its_blocks():
    graph = torch._C.parse_ir("""graph(%x : Tensor, %which : bool):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::neg(%x)
  %out : Tensor = prim::If(%which)
    block0():
      -> (%a)
    block1():
      -> (%b)
  return (%out)
""")
    v, aliases = values(graph), graph.alias_db()
    assert aliases.may_alias(v["out"], v["a"]) and aliases.may_alias(v["out"], v["b"]) and not aliases.may_alias(v["a"], v["b"])


def test_nodes_move_with_what_depends_on_them_and_not_past_writes():
    graph = torch._C.parse_ir("""graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::neg(%x)
  %c : Tensor = aten::abs(%a)
  %d : Tensor = aten::exp(%b)
  %w : Tensor = aten::add_(%x, %one, %one)
  return (%c, %d)
""")
    node = {n.kind(): n for n in graph.nodes()}
    aliases = graph.alias_db()
    assert aliases.move_after_topologically_valid(node["aten::relu"], node["aten::exp"])
    assert kinds(graph) == ["aten::neg", "aten::exp", "aten::relu", "aten::abs", "aten::add_"]
    assert not aliases.move_after_topologically_valid(node["aten::neg"], node["aten::add_"])
    assert not aliases.move_before_topologically_valid(node["aten::exp"], node["aten::neg"])


# ---- dead code, equal calls, constants ----

def after(run, function):
    graph = torch.jit.script(function).graph
    run(graph)
    return kinds(graph)


def test_writes_that_nobody_sees_are_dead():
    def f(x):
        y = x.clone()
        y.add_(1)
        z = x * 2
        z.mul_(3)
        return z

    assert after(torch._C._jit_pass_dce, f) == ["aten::mul", "aten::mul_"]


def test_writes_through_views_and_to_inputs_are_seen():
    def f(x):
        x.add_(1)
        y = x.clone()
        y[0].fill_(7)
        return y

    assert after(torch._C._jit_pass_dce, f) == ["aten::add_", "aten::clone", "aten::select", "aten::fill_"]


def test_writes_in_a_loop_are_seen_behind_it():
    def f(x, n: int):
        y = x.clone()
        z = x.clone()
        for i in range(n):
            y.add_(i)
            z.add_(i)
        return y

    assert after(torch._C._jit_pass_dce, f) == ["aten::clone", "prim::Loop", "aten::add_"]


EQUAL = """graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::add(%x, %one, %one)
  {}
  %b : Tensor = aten::add(%x, %one, %one)
  {}
  return ({})
"""


def common(between, then, out):
    graph = torch._C.parse_ir(EQUAL.format(between, then, out))
    torch._C._jit_pass_cse(graph)
    return kinds(graph).count("aten::add")


def test_equal_calls_are_made_once_where_nobody_could_tell():
    assert common("%n : Tensor = aten::neg(%x)", "%c : Tensor = aten::mul(%a, %b)", "%c") == 1


def test_equal_calls_whose_results_both_go_out_stay_two():
    assert common("%n : Tensor = aten::neg(%x)", "%c : Tensor = aten::mul(%a, %b)", "%a, %b") == 2


def test_equal_calls_stay_two_where_their_input_or_result_is_written():
    assert common("%w : Tensor = aten::add_(%x, %one, %one)", "%c : Tensor = aten::mul(%a, %b)", "%c") == 2
    assert common("%w : Tensor = aten::add_(%a, %one, %one)", "%c : Tensor = aten::mul(%a, %b)", "%c") == 2


def test_other_writes_do_not_keep_equal_calls_apart():
    other = "%n : Tensor = aten::neg(%x)\n  %w : Tensor = aten::add_(%n, %one, %one)"
    assert common(other, "%c : Tensor = aten::mul(%a, %b)", "%c") == 1


def test_a_third_equal_call_that_goes_out_is_not_the_first_ones_stand_in():
    graph = torch._C.parse_ir("""graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::add(%x, %one, %one)
  %b : Tensor = aten::add(%x, %one, %one)
  %c : Tensor = aten::add(%x, %one, %one)
  %n : Tensor = aten::neg(%a)
  return (%b, %c, %n)
""")
    torch._C._jit_pass_cse(graph)
    first, second, _ = graph.outputs()
    assert first != second


def test_tensors_that_follow_from_constants_are_computed_where_nobody_writes_them():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", torch.tensor([1.0, 2.0]))

        def forward(self, x):
            return x + self.table.neg() * 2

    frozen = torch.jit.freeze(torch.jit.script(Scaled().eval()))
    torch._C._jit_pass_constant_propagation(frozen.graph)
    assert kinds(frozen.graph) == ["aten::add"]
    assert frozen(torch.zeros(2)).tolist() == [-2.0, -4.0]


def test_nodes_whose_result_is_there_already_go():
    graph = torch._C.parse_ir("""graph(%x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)):
  %a : Tensor = aten::t(%x)
  %b : Tensor = aten::t(%a)
  %list : Tensor[] = prim::ListConstruct(%x, %b)
  %count : int = aten::len(%list)
  %dims : int = aten::dim(%x)
  return (%b, %count, %dims)
""")
    assert torch._C._jit_pass_peephole(graph)
    torch._C._jit_pass_dce(graph)
    assert kinds(graph) == [] and [v.toIValue() for v in graph.outputs()][1:] == [2, 2]
    assert next(graph.outputs()) == next(graph.inputs())


def test_a_list_that_somebody_writes_is_asked_for_its_length():
    def f(x: int):
        values = [1, 2]
        values.append(x)
        return len(values)

    assert "aten::len" in after(torch._C._jit_pass_peephole, f)


def test_a_method_without_its_module_takes_the_tensors_that_it_reads():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            return self.layer(self.layer(x)) + self.layer.weight.sum()

    for module in (torch.jit.script(Twice()), torch.jit.trace(Twice(), torch.ones(1, 2))):
        graph, tensors = torch._C._jit_pass_lower_graph(module.graph, module._c)
        assert [t.shape for t in tensors] == [(2, 2), (2,)] and "prim::GetAttr" not in kinds(graph)
        function = torch._C._create_function_from_graph("lowered", graph)
        x = torch.randn(3, 2)
        assert torch.allclose(function(x, *tensors), module(x))


# ---- shapes ----

def test_shapes_follow_from_those_of_the_inputs():
    def f(x, y):
        z = (x + y).view(x.size(0) * 3, -1)
        return torch.cat([z, z], dim=1), x > 1

    graph = torch.jit.script(f).graph
    torch._C._jit_pass_complete_shape_analysis(graph, (torch.ones(2, 6), torch.ones(2, 6)), False)
    types = {n.kind(): str(n.output().type().str()) for n in graph.nodes() if n.outputsSize() == 1}
    assert types["aten::cat"] == "Float(6, 4, strides=[4, 1], requires_grad=0, device=cpu)"
    assert types["aten::gt"] == "Bool(2, 6, strides=[6, 1], requires_grad=0, device=cpu)"
    torch._C._jit_pass_erase_shape_information(graph)
    assert all("Float" not in str(v.type().str()) for n in graph.nodes() for v in n.outputs())


def test_shapes_that_data_or_turns_of_a_loop_decide_are_left_open():
    def f(x, n: int):
        y = x
        z = x
        for _ in range(n):
            y = y + 1
            z = torch.cat([z, z])
        return y, z, x.nonzero()

    graph = torch.jit.script(f).graph
    torch._C._jit_pass_complete_shape_analysis(graph, (torch.ones(2, 3), 2), False)
    loop = graph.findNode("prim::Loop")
    y, z = loop.outputs()
    assert y.type().sizes() == [2, 3] and z.type().sizes() is None
    assert graph.findNode("aten::nonzero").output().type().sizes() is None


# ---- text ----

def test_values_of_traces_have_pytorchs_numbers():
    assert text(torch.jit.trace(nn.Linear(3, 2), torch.ones(2, 3)).graph).splitlines()[4].startswith("  %6 : Float(2, 2")


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)

    def forward(self, x):
        y = self.first(x)
        return self.norm(y) + y


def test_modules_and_their_tensors_are_named_behind_all_that_was_recorded():
    traced = torch.jit.trace(Inner(), torch.ones(2, 3))
    assert re.findall(r"%(self\S*) :", text(traced.graph) + text(traced.first.graph) + text(traced.norm.graph)) == ["self.1", "self.3", "self"]
    assert re.findall(r"%(bias\S*) :", text(traced.first.graph) + text(traced.norm.graph)) == ["bias.3", "bias"]


def test_arguments_of_methods_keep_what_the_trace_saw():
    traced = torch.jit.trace(nn.Sequential(nn.Linear(3, 3), nn.ReLU()), torch.ones(2, 3))
    layer = traced[1] if hasattr(traced, "__getitem__") else getattr(traced, "1")
    assert re.search(r"%2 : Float\(2, 3, strides=\[3, 1\], requires_grad=1, device=cpu\)\)", text(layer.graph))
    assert "Tensor argument_1)" in layer.forward.schema


def test_a_module_that_is_called_twice_is_read_once():
    layer = nn.Linear(3, 3)
    traced = torch.jit.trace(nn.Sequential(layer, layer), torch.ones(2, 3))
    assert kinds(traced.graph) == ["prim::GetAttr", "prim::CallMethod", "prim::CallMethod"]


def test_a_number_of_a_tensor_is_read_right_behind_it():
    def f(x):
        rows, columns = x.shape
        return x.reshape(columns, rows)

    assert kinds(torch.jit.trace(f, torch.ones(2, 3)).graph) == [
        "aten::size", "prim::NumToTensor", "aten::Int", "aten::size", "prim::NumToTensor", "aten::Int", "prim::ListConstruct", "aten::reshape"]


def test_names_that_come_again_have_odd_numbers():
    def f(x):
        for _ in range(3):
            x = x * 2
        return x + 1

    assert re.findall(r"%(x\S*) :", text(torch.jit.trace(f, torch.ones(2)).graph)) == ["x.1", "x.3", "x.5", "x"]


def test_numbers_have_pytorchs_digits():
    graph = torch.jit.trace(lambda x: torch.nn.functional.layer_norm(x, [2]) * (1 / 3), torch.ones(2)).graph
    assert "value=1.0000000000000001e-05" in str(graph) and "value={0.333333}" in str(graph)


def test_types_of_enums_and_interfaces_are_read_back():
    graph = """graph(%c : Enum<__torch__.Colour>,
      %b : InterfaceType<Block>):
  %1 : bool = aten::eq(%c, %c)
  return (%1)
"""
    assert str(torch._C.parse_ir(graph)) == graph
