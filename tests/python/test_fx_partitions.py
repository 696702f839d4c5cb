"""Parts of graphs: which nodes go together, and in which order their calls run."""
import operator

import pytest

import umbra
from umbra.fx import symbolic_trace
from umbra.fx.experimental.proxy_tensor import make_fx
from umbra.fx.interpreter import Interpreter
from umbra.fx.passes.dialect.common.cse_pass import get_CSE_banned_ops
from umbra.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from umbra.fx.passes.operator_support import OperatorSupport
from umbra.fx.passes.split_module import split_module
from umbra.fx.passes.utils.fuser_utils import fuse_by_partitions


def _graph_of_two_ways():
    def f(x):
        return umbra.relu(umbra.neg(x + 1)) - x.sum() * umbra.relu(x)
    return symbolic_trace(f)


class _Takes(OperatorSupport):
    def is_node_supported(self, submodules, node):
        return node.target in (operator.add, operator.sub, umbra.relu, "sum")


@pytest.mark.parametrize("options, parts", [
    ({}, [["add", "sum_1", "relu_1"], ["relu", "sub"]]),
    ({"allows_single_node_partition": True, "skip_horizontal_fusion": True}, [["sub", "relu"], ["relu_1"], ["sum_1"], ["add"]])])
def test_parts_of_a_partitioner_grow_from_the_last_node(options, parts):
    found = CapabilityBasedPartitioner(_graph_of_two_ways(), _Takes(), **options).propose_partitions()
    assert sorted(sorted(node.name for node in part.nodes) for part in found) == sorted(sorted(part) for part in parts)


def test_an_item_goes_with_the_result_that_it_is_taken_from():
    class Takes(OperatorSupport):
        def is_node_supported(self, submodules, node):
            return node.target in (operator.getitem, operator.add, operator.sub)
    graph_module = symbolic_trace(lambda x, y: umbra.split(x, 2)[0] + y - x)
    part, = CapabilityBasedPartitioner(graph_module, Takes()).propose_partitions()
    assert [node.name for node in part.nodes] == ["add", "sub"]


def test_calls_of_parts_stand_where_the_last_node_of_a_part_stood():
    graph_module = symbolic_trace(lambda x, y: umbra.relu(x + y) + umbra.relu(y + x))
    nodes = list(graph_module.graph.nodes)
    fuse_by_partitions(graph_module, [dict.fromkeys(nodes[2:4])])
    assert [node.name for node in graph_module.graph.nodes] == ["x", "y", "fused_0", "add_1", "relu_1", "add_2", "output"]
    assert umbra.equal(graph_module(umbra.ones(2), umbra.ones(2)), umbra.full((2,), 4.0))


def test_independent_parts_of_a_split_module_run_the_last_first():
    graph_module = symbolic_trace(lambda x: (umbra.relu(x), umbra.neg(x)))
    split = split_module(graph_module, umbra.nn.Module(), lambda node: node.name, keep_original_input_name=False)
    assert [node.target for node in split.graph.nodes if node.op == "call_module"] == ["submod_neg", "submod_relu"]
    assert split.meta["partition_names"] == {"submod_relu", "submod_neg"}
    assert [node.name for node in split.submod_relu.graph.nodes] == ["arg_0", "relu", "output"]
    assert [value.item() for value in split(umbra.ones(1))] == [1, -1]


def test_a_part_of_a_split_module_has_the_branches_of_its_cond():
    def f(x):
        return umbra.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))
    captured = make_fx(f)(umbra.ones(2))
    split = split_module(captured, umbra.nn.Module(), lambda node: "all")
    assert {"true_graph_0", "false_graph_0"} <= set(dict(split.submod_all.named_modules()))
    assert split.submod_all.graph.find_nodes(op="placeholder")[0].users and umbra.equal(split(umbra.ones(2)), umbra.full((2,), 2.0))


def test_operators_that_no_pass_may_merge_by_their_names():
    assert {umbra.ops.aten.rand_like, umbra.ops.aten.add_} <= get_CSE_banned_ops()


def test_a_boxed_run_takes_a_value_for_every_placeholder():
    graph_module = symbolic_trace(lambda x, y=2: x + y)
    values = [1, 5]
    assert Interpreter(graph_module).boxed_run(values) == 6 and values == []
    with pytest.raises(RuntimeError, match="boxed_run expected 2 arguments for placeholders but received 1 \\(missing arguments\\)"):
        Interpreter(graph_module).boxed_run([1])


def test_an_interpreter_of_a_graph_and_the_module_that_it_reads():
    class Scaled(umbra.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = 3

        def forward(self, x):
            return x * 2
    module = Scaled()
    assert Interpreter(module, graph=symbolic_trace(module).graph).run(4) == 8


def test_complex_numbers_with_a_part_that_is_zero_are_written_as_calls():
    code = symbolic_trace(lambda x: x * 2j + (1 + 2j) - complex(-0.0, 1)).code
    assert "x * complex(0.0, 2.0)" in code and "(1+2j)" in code and "complex(-0.0, 1.0)" in code


def test_a_node_may_stand_in_one_part_alone():
    module = symbolic_trace(lambda x: x + 1 + 2 + 3)
    first, second, third = [node for node in module.graph.nodes if node.op == "call_function"]
    with pytest.raises(AssertionError, match="add_1 has been removed from owning graph"):
        fuse_by_partitions(module, [{first: None, second: None}, {second: None, third: None}])
