"""make_fx and the graphs it gives."""
import operator

import pytest

import umbra
from umbra.fx.experimental.proxy_tensor import make_fx


def test_code_names_inputs_as_the_function_does():
    def f(x, y):
        return umbra.sin(x) + y
    graph = make_fx(f)(umbra.randn(3), umbra.randn(3))
    assert "def forward(self, x_1, y_1):" in graph.code
    assert "torch.ops.aten.sin.default(x_1)" in graph.code
    x, y = umbra.randn(3), umbra.randn(3)
    assert umbra.equal(graph(x, y), f(x, y))


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_modes_give_the_same_values(mode):
    def f(x):
        return (x * 2).view(-1).sum()
    graph = make_fx(f, tracing_mode=mode)(umbra.randn(3, 4))
    x = umbra.randn(3, 4)
    assert umbra.allclose(graph(x), f(x))


def test_symbolic_graph_runs_at_other_sizes():
    graph = make_fx(lambda x: x.view(x.shape[0] * x.shape[1]), tracing_mode="symbolic")(umbra.randn(3, 4))
    assert graph(umbra.randn(5, 7)).shape == (35,)


def test_nested_arguments_and_results():
    def f(pair, table):
        return {"sum": pair[0] + pair[1], "rest": [table["a"] * 2]}
    a, b = umbra.randn(2), umbra.randn(2)
    graph = make_fx(f)((a, b), {"a": umbra.randn(2)})
    out = graph((a, b), {"a": b})
    assert umbra.equal(out["sum"], a + b) and umbra.equal(out["rest"][0], b * 2)


def test_exception_of_the_function_comes_out_as_itself():
    class Mine(Exception):
        pass

    def f(x):
        x.sin()
        raise Mine("here")
    with pytest.raises(Mine, match="here"):
        make_fx(f)(umbra.randn(2))
    assert make_fx(umbra.sin)(umbra.randn(2)) is not None  # nothing stayed behind


def test_node_identity_and_editing():
    graph_module = make_fx(lambda x: (x.sin().cos(), x.sin()))(umbra.randn(3))
    graph = graph_module.graph
    nodes = list(graph.nodes)
    assert nodes[0] is next(iter(graph.nodes))
    cosine = next(n for n in nodes if n.target is umbra.ops.aten.cos.default)
    assert cosine.args[0] is nodes[1] and cosine in nodes[1].users
    with graph.inserting_after(cosine):
        negative = graph.call_function(umbra.ops.aten.neg.default, (cosine,))
    cosine.replace_all_uses_with(negative, lambda user: user is not negative)
    graph.lint()
    graph_module.recompile()
    x = umbra.randn(3)
    assert umbra.allclose(graph_module(x)[0], -x.sin().cos())
    negative.meta["note"] = {"any": object}
    assert negative.meta["note"] == {"any": object} and "note" in negative.meta


def test_python_functions_as_targets():
    graph = umbra.fx.Graph()
    x = graph.placeholder("x")
    doubled = graph.call_function(operator.add, (3, 4))
    graph.output((x, doubled))
    assert umbra.fx.GraphModule({}, graph)(umbra.ones(2))[1] == 7


def test_decomposition_table():
    table = {umbra.ops.aten.silu.default: lambda x: x * umbra.sigmoid(x)}
    graph = make_fx(lambda x: umbra.silu(x), decomposition_table=table)(umbra.randn(3))
    assert "silu" not in graph.code and "sigmoid" in graph.code


def test_stack_traces():
    graph = make_fx(lambda x: x.sin(), record_stack_traces=True)(umbra.randn(3))
    node = next(n for n in graph.graph.nodes if n.op == "call_function")
    assert "test_make_fx.py" in node.stack_trace


def test_cond():
    def f(x):
        return umbra.cond(x.sum() > 0, lambda v: v.sin(), lambda v: v.cos(), (x,))
    x = umbra.ones(3)
    assert umbra.equal(f(x), x.sin()) and umbra.equal(f(-x), (-x).cos())
    graph = make_fx(f, tracing_mode="fake")(x)
    assert "torch.ops.higher_order.cond" in graph.code
    assert umbra.equal(graph(x), x.sin()) and umbra.equal(graph(-x), (-x).cos())
