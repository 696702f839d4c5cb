"""A graph and its nodes are one Python object each, as long as the graph lives and no longer."""
import gc
import weakref

import pytest

import umbra
from umbra import fx, nn


def _graph():
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(umbra.relu, (x,)))
    return graph


def _collected(*references):
    gc.collect()
    gc.collect()  # what only dies with what the first pass freed
    return all(reference() is None for reference in references)


class _Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return umbra.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (self.layer(x),))


def _objects_of_nodes():
    gc.collect()
    return sum(type(o) is fx.Node for o in gc.get_objects())


class TestIdentity:
    def test_a_node_that_nobody_holds_stays_the_same_object(self):
        graph = _graph()
        before = [id(node) for node in graph.nodes]
        gc.collect()
        assert [id(node) for node in graph.nodes] == before

    def test_nodes_take_attributes_of_users_own(self):
        graph = _graph()
        next(iter(graph.nodes)).my_attr = 1
        assert next(iter(graph.nodes)).my_attr == 1
        assert not hasattr(graph.output_node(), "my_attr")

    def test_graph_of_a_captured_module_keeps_attributes(self):
        traced = fx.symbolic_trace(nn.Linear(2, 2))
        traced.graph.note = "kept"
        assert traced.graph.note == "kept" and traced.graph is traced.graph

    def test_attributes_of_an_exported_programs_nodes_stay(self):
        program = umbra.export.export(_Small(), (umbra.randn(2, 4),))
        for i, node in enumerate(program.graph.nodes):
            node.place = i
        gc.collect()
        assert [node.place for node in program.graph.nodes] == list(range(len(program.graph.nodes)))

    def test_an_erased_node_can_still_be_read(self):
        graph = fx.Graph()
        x = graph.placeholder("x")
        y = graph.call_function(umbra.relu, (x,))
        y.my_attr = [1]
        graph.erase_node(y)
        gc.collect()
        assert y.my_attr == [1] and y.name == "relu" and y.graph is graph

    def test_a_held_node_keeps_its_graph(self):
        node = next(iter(_graph().nodes))
        gc.collect()
        assert [n.name for n in node.graph.nodes] == ["x", "relu", "output"]


class TestNothingLeaks:
    def test_graph(self):
        graph = _graph()
        first = next(iter(graph.nodes))
        first.me, graph.first = first, first
        reference, of_node = weakref.ref(graph), weakref.ref(first)
        del graph, first
        assert _collected(reference) and of_node() is None

    def test_metadata_that_names_its_own_node(self):
        graph = _graph()
        for node in graph.nodes:
            node.meta["self"] = node
        reference = weakref.ref(graph)
        del graph, node
        assert _collected(reference)

    def test_traced_module(self):
        traced = fx.symbolic_trace(nn.Linear(2, 2))
        traced(umbra.randn(1, 2))
        for node in traced.graph.nodes:
            node.owner = traced
        reference = weakref.ref(traced)
        del traced, node
        assert _collected(reference)

    def test_captured_graph_that_was_looked_at(self):
        traced = umbra.fx.experimental.proxy_tensor.make_fx(lambda x: x.sin() + 1)(umbra.randn(2))
        traced._graph.nodes  # the graph that runs, not a copy
        list(traced._graph.nodes)
        reference = weakref.ref(traced)
        del traced
        assert _collected(reference)

    def test_exported_program_with_branches(self):
        program = umbra.export.export(_Small(), (umbra.randn(2, 4),))
        nodes = [weakref.ref(node) for module in program.graph_module.modules() if isinstance(module, fx.GraphModule) for node in module.graph.nodes]
        program.module()(umbra.randn(2, 4))
        references = [weakref.ref(program.graph_module), *nodes]
        del program
        assert _collected(*references)

    def test_subclass_of_graph(self):
        class Own(fx.Graph):
            pass

        graph = Own()
        graph.placeholder("x").graph_again = graph
        reference = weakref.ref(graph)
        del graph
        assert _collected(reference)


def test_capture_makes_no_objects_for_nodes():
    before = _objects_of_nodes()
    program = umbra.export.export(nn.TransformerEncoderLayer(16, 2, batch_first=True).eval(), (umbra.randn(2, 5, 16),))
    assert _objects_of_nodes() == before
    assert len(program.graph.nodes) > 20


def test_the_root_stands_before_the_first_node_and_after_the_last():
    graph = fx.symbolic_trace(lambda x: umbra.sin(x)).graph
    first, *_, last = graph.nodes
    assert first.prev is last.next and first.prev.op == "root" and first.prev.name == ""
    assert last.next.next is first and first.prev.prev is last and last.next not in list(graph.nodes)
    node, names = first, []
    while node.op != "root":
        names.append(node.name)
        node = node.next
    assert names == ["x", "sin", "output"]


def test_a_bound_method_is_no_function_to_trace():
    with pytest.raises(AssertionError, match="Expected FunctionType, got <class 'method'>"):
        fx.symbolic_trace(nn.ReLU().forward)
