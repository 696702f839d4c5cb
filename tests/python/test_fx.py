"""Graphs written in Python: nodes and their arguments, symbolic tracing, interpreters and transformers."""
import copy
import inspect
import math
import operator
import pickle
import weakref

import pytest

import umbra
import umbra.nn.functional as F
from umbra import fx, nn


def graph_module(build):
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(build(graph, x))
    return fx.GraphModule({}, graph)


def test_none_in_arguments():
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(umbra.ops.aten.clamp.default, (x, None, 2), {"max": None})
    assert node.args == (x, None, 2) and node.kwargs == {"max": None}
    node.args = (x, None)
    node.kwargs = {}
    node.update_arg(1, None)
    assert node.args == (x, None)
    part = graph.call_function(operator.getitem, (x, slice(0, None, 1)))
    assert part.args[1] == slice(0, None, 1)
    assert graph.output((x, None)).args == ((x, None),)
    assert str(fx.Graph().output(None).graph) == "graph():\n    return None"


def test_output_of_nothing_and_of_nests():
    assert graph_module(lambda g, x: None)(3) is None
    assert graph_module(lambda g, x: (x, None))(3) == (3, None)
    assert graph_module(lambda g, x: {"a": (x, None, slice(0, None, 1))})(3) == {"a": (3, None, slice(0, None, 1))}


def test_nodes_say_what_is_wrong_with_them():
    graph = fx.Graph()
    x = graph.placeholder("x")
    with pytest.raises(AssertionError, match="Expected target to be str, got <class 'int'>"):
        graph.call_function(3)
    with pytest.raises(ValueError, match="target a has type str but a Callable is expected"):
        graph.call_function("a")
    with pytest.raises(ValueError, match="but a str is expected"):
        graph.create_node("call_module", umbra.relu)
    with pytest.raises(AssertionError, match="op 'foo' is not in _legal_ops"):
        graph.create_node("foo", "a")
    with pytest.raises(AssertionError, match="args must be a tuple, got <class 'list'>"):
        graph.call_function(umbra.relu, [x])
    graph.call_module("m", (x,))
    graph.owning_module = nn.Module()
    with pytest.raises(RuntimeError, match="Node m target m references nonexistent attribute m of $"):
        graph.lint()


def test_order_of_nodes():
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    assert x < y and not y < x and x <= y and y > x and x <= x


def test_graph_module_roots_and_names():
    graph = fx.Graph()
    graph.output(graph.get_attr("a.b"))
    with pytest.raises(RuntimeError, match="Node a_b referenced target a.b but that target was not provided in ``root``!"):
        fx.GraphModule({}, graph)
    with pytest.raises(AttributeError, match="has no attribute 'a'"):
        fx.GraphModule(nn.Module(), graph)
    with pytest.raises(RuntimeError, match="Unsupported type 3 passed for root!"):
        fx.GraphModule(3, graph)
    module = fx.GraphModule({"a.b": umbra.ones(2)}, graph, "Named")
    assert type(module).__name__ == "Named" and isinstance(module, fx.GraphModule)
    assert str(module).startswith("Named(")
    again = copy.deepcopy(module)
    assert type(again).__name__ == "GraphModule" and umbra.equal(again(), umbra.ones(2))


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(umbra.full((2,), 2.0))
        self.linear = nn.Linear(2, 2)

    def forward(self, x):
        return self.linear(x) * self.scale + self.scale


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.layers = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        self.register_buffer("shift", umbra.ones(2))

    def forward(self, x, times=2):
        y = self.layers(self.inner(x)).view(-1, 2).relu()
        return {"sum": F.relu(y) + umbra.cat([y, y]).sum(dim=0) + self.shift, "rest": (y.shape[0], y[:, None], 3 - y, times)}


def test_symbolic_trace_of_a_module():
    module = Outer()
    traced = fx.symbolic_trace(module)
    assert type(traced).__name__ == "Outer"
    assert [(n.op, str(n.target)) for n in traced.graph.nodes][:6] == [
        ("placeholder", "x"), ("placeholder", "times"), ("call_module", "inner.linear"), ("get_attr", "inner.scale"),
        ("call_function", str(operator.mul)), ("call_function", str(operator.add))]
    assert "def forward(self, x, times = 2):" in traced.code
    assert "layers_0 = getattr(self.layers, \"0\")(add)" in traced.code
    assert "view = layers_1.view(-1, 2)" in traced.code
    assert "torch.nn.functional.relu(relu, inplace = False)" in traced.code
    assert "getattr_1 = relu.shape" in traced.code
    traced.graph.lint()
    x = umbra.randn(3, 2)
    expected, got = module(x, 5), traced(x, times=5)
    assert umbra.allclose(expected["sum"], got["sum"])
    assert got["rest"][0] == 3 and got["rest"][3] == 5 and umbra.equal(expected["rest"][1], got["rest"][1])


@pytest.mark.parametrize("function, error, text", [
    (lambda x: x if x.sum() > 0 else -x, fx.TraceError, "symbolically traced variables cannot be used as inputs to control flow"),
    (lambda x: not x, fx.TraceError, "symbolically traced variables cannot be used as inputs to control flow"),
    (lambda x: [i for i in x], fx.TraceError, "Proxy object cannot be iterated"),
    (lambda x: 3 in x, fx.TraceError, "Proxy object cannot be iterated"),
    (lambda x: len(x), RuntimeError, "'len' is not supported in symbolic tracing by default"),
    (lambda x: range(x), TypeError, "cannot be interpreted as an integer"),
    (lambda x: {x: 1}, RuntimeError, "Keys for dictionaries used as an argument cannot contain a Node. Got key: x"),
])
def test_what_symbolic_trace_refuses(function, error, text):
    with pytest.raises(error, match=text):
        fx.symbolic_trace(function)
    assert fx.symbolic_trace(umbra.nn.Identity()) is not None  # nothing stayed behind


def test_operators_of_proxies():
    def f(x):
        a, b = x, 2 - x
        return (a + b, 1 / a, a ** 2, a @ b, a == b, -a, a[0], abs(a), math.sqrt(x[0]), umbra.ones(2) + x, x.T)
    x = umbra.tensor([4.0, 9.0])
    for expected, got in zip(f(x), fx.symbolic_trace(f)(x)):
        assert umbra.equal(umbra.as_tensor(expected), umbra.as_tensor(got))


def test_unpacking_and_starred_arguments():
    def pair(x):
        a, b = x
        return a - b
    assert fx.symbolic_trace(pair)((5, 3)) == 2
    starred = fx.symbolic_trace(lambda *a, **k: (a[0], k))
    assert "def forward(self, *a, **k):" in starred.code
    assert starred(1, 2, c=3) == (1, {"c": 3})


def test_concrete_arguments():
    def f(x, flag):
        return x + 1 if flag else x - 1
    traced = fx.symbolic_trace(f, concrete_args={"flag": True})
    assert "torch._assert(eq, 'flag has been specialized to have value True but got another value')" in traced.code
    assert traced(umbra.ones(1), True).item() == 2
    with pytest.raises(AssertionError, match="flag has been specialized"):
        traced(umbra.ones(1), False)


def helper(x):
    return len(x) + 1


fx.wrap("helper")


def test_wrapped_functions_are_called_whole():
    traced = fx.symbolic_trace(lambda x: helper(x) * 2)
    assert [n.op for n in traced.graph.nodes] == ["placeholder", "call_function", "call_function", "output"]
    assert traced(umbra.ones(3)) == 8


def test_a_tracer_of_ones_own():
    class Shallow(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return True
    module = Outer()
    graph = Shallow().trace(module)
    assert [n.target for n in graph.nodes if n.op == "call_module"] == ["inner", "layers"]
    x = umbra.randn(3, 2)
    assert umbra.allclose(fx.GraphModule(module, graph)(x)["sum"], module(x)["sum"])


def test_transformer_runs_its_overrides():
    class Swap(fx.Transformer):
        def call_function(self, target, args, kwargs):
            return umbra.tanh(*args, **kwargs) if target is umbra.sigmoid else super().call_function(target, args, kwargs)

        def call_method(self, target, args, kwargs):
            return args[0].abs() if target == "neg" else super().call_method(target, args, kwargs)
    traced = fx.symbolic_trace(lambda x: umbra.sigmoid(x.neg()))
    changed = Swap(traced).transform()
    x = umbra.tensor([-1.0, 2.0])
    assert umbra.equal(changed(x), x.abs().tanh()) and umbra.equal(traced(x), (-x).sigmoid())
    assert "tanh = torch.tanh(abs_1)" in changed.code


def test_transformer_of_a_captured_graph():
    from umbra.fx.experimental.proxy_tensor import make_fx

    class Swap(fx.Transformer):
        def call_function(self, target, args, kwargs):
            target = umbra.ops.aten.cos.default if target is umbra.ops.aten.sin.default else target
            return super().call_function(target, args, kwargs)
    x = umbra.randn(3)
    changed = Swap(make_fx(lambda x: x.sin() + 1)(x)).transform()
    assert umbra.equal(changed(x), x.cos() + 1)


def test_shape_propagation():
    from umbra.fx.passes.shape_prop import ShapeProp
    traced = fx.symbolic_trace(lambda x: x.view(-1).relu())
    ShapeProp(traced).propagate(umbra.ones(2, 3))
    view = next(n for n in traced.graph.nodes if n.name == "view")
    assert view.meta["tensor_meta"].shape == (6,) and view.meta["tensor_meta"].dtype == umbra.float32


def test_named_modules_are_pickled_as_before():
    assert pickle.loads(pickle.dumps(fx.GraphModule)) is fx.GraphModule


def test_dead_code_elimination_keeps_effects():
    from umbra.fx.experimental.proxy_tensor import make_fx

    def f(x):
        umbra.cond(x.sum() > 0, lambda v: v + umbra.rand(2), lambda v: v + 1, (x,))
        umbra.cond(x.sum() > 0, lambda v: v + 2, lambda v: v + 1, (x,))
        x.relu()
        x.clone().add_(1)
        return x * 2
    traced = make_fx(f, tracing_mode="fake")(umbra.ones(2))
    assert "relu" in traced.code
    assert traced.graph.eliminate_dead_code()
    names = [n.name for n in traced.graph.nodes]
    assert "cond" in names and "cond_1" not in names and "relu" not in names and "add_" in names

    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(umbra._assert, (x, "text"))
    graph.call_method("add_", (x, 1))
    graph.call_method("add", (x, 1))
    graph.call_function(operator.setitem, (x, 0, 1))
    graph.call_function(umbra.relu, (x,))
    graph.output(x)
    graph.eliminate_dead_code()
    assert [n.name for n in graph.nodes] == ["x", "_assert", "add_", "setitem", "output"]


def test_tracing_a_graph_module_again():
    module = Outer()
    traced = fx.symbolic_trace(module)
    again = fx.symbolic_trace(traced)
    assert [n.name for n in again.graph.nodes] == [n.name for n in traced.graph.nodes]
    x = umbra.randn(3, 2)
    assert umbra.allclose(again(x)["sum"], module(x)["sum"])


def chain():
    graph = fx.Graph()
    x = graph.placeholder("x")
    a = graph.call_function(umbra.relu, (x,))
    b = graph.call_function(umbra.neg, (a,))
    graph.output(b)
    return graph, x, a, b


def names(graph):
    return [node.name for node in graph.nodes]


def test_insertion_points_nest():
    graph, x, a, b = chain()
    with graph.inserting_before(b):
        graph.call_function(umbra.exp, (a,))
        with graph.inserting_before(a):
            graph.call_function(umbra.sin, (x,))
        graph.call_function(umbra.cos, (a,))
    graph.call_function(umbra.tan, (b,))
    assert names(graph) == ["x", "sin", "relu", "exp", "cos", "neg", "output", "tan"]


def test_each_node_goes_right_after_the_one_that_was_named():
    graph, x, a, b = chain()
    with graph.inserting_after(x):
        graph.call_function(umbra.exp, (x,))
        graph.call_function(umbra.sin, (x,))
        with graph.inserting_after(b):
            graph.call_function(umbra.cos, (x,))
        graph.call_function(umbra.tan, (x,))
    assert names(graph) == ["x", "tan", "sin", "exp", "relu", "neg", "cos", "output"]
    with graph.inserting_before():
        graph.call_function(umbra.sqrt, (x,))
    with graph.inserting_after():
        graph.call_function(umbra.log, (x,))
    assert names(graph)[0] == "sqrt" and names(graph)[-1] == "log"


def test_an_insertion_point_outlives_its_node():
    graph, x, a, b = chain()
    with graph.inserting_before(b):
        node = graph.call_function(umbra.exp, (a,))
        with graph.inserting_before(node):
            with graph.inserting_before(a):
                graph.erase_node(node)
            graph.call_function(umbra.cos, (a,))
    assert names(graph) == ["x", "relu", "cos", "neg", "output"]
    with pytest.raises(AssertionError, match="Node to insert before is not in graph"):
        graph.inserting_before(chain()[1])


def test_an_error_names_the_node_that_was_running():
    gm = fx.symbolic_trace(lambda x, y: umbra.mm(x, y))
    with pytest.raises(RuntimeError, match=r"While executing %mm : \[num_users=1\]"):
        fx.Interpreter(gm).run(umbra.ones(2, 3), umbra.ones(2, 3))


def test_nodes_know_the_modules_that_were_running():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(2, 2))

        def forward(self, x):
            return self.inner(x) + self.inner(x)
    gm = fx.symbolic_trace(Outer())
    stacks = [list(node.meta["nn_module_stack"]) for node in gm.graph.nodes if node.op == "call_module"]
    assert stacks == [["inner", "inner.0"], ["inner@1", "inner.0@1"]]


def test_a_tracer_may_make_nodes_of_buffers():
    class Shifted(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("shift", umbra.ones(2))

        def forward(self, x):
            return x + self.shift * 2

    class WithBuffers(fx.Tracer):
        proxy_buffer_attributes = True
    assert [node.name for node in WithBuffers().trace(Shifted()).nodes] == ["x", "shift", "mul", "add", "output"]


def test_named_tuples_keep_their_class():
    import collections
    pair = collections.namedtuple("pair", "a b")
    result = fx.symbolic_trace(lambda x: pair(x, x + 1))(umbra.ones(1))
    assert type(result) is pair and result.b.tolist() == [2]


def test_a_body_transformer_takes_effect_at_once():
    gm = fx.symbolic_trace(lambda x: x + 1)
    gm.graph.on_generate_code(lambda before: lambda body: ["# hello\n", *body])
    gm.recompile()
    assert "# hello" in gm.code and gm(umbra.ones(1)).tolist() == [2]


def test_an_interpreter_takes_arguments_in_the_form_of_the_source():
    class OfList(fx.CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation):
            return f"def forward(self, given){maybe_return_annotation}:\n    {', '.join(free_vars)}, = given"

        def process_inputs(self, *inputs):
            return inputs[0]
    gm = fx.symbolic_trace(lambda a, b: a - b)
    gm.graph.set_codegen(OfList())
    gm.recompile()
    assert fx.Interpreter(gm).run([umbra.tensor([3.0]), umbra.tensor([1.0])]).tolist() == [2]


def test_functions_with_effects_stay():
    @fx.has_side_effect
    def tell(x):
        return None
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(tell, (x,))
    graph.output(x)
    graph.eliminate_dead_code()
    assert len(graph.nodes) == 3


def test_a_graph_out_of_order_can_be_put_in_order():
    from umbra.fx.passes.tools_common import legalize_graph
    graph = fx.Graph()
    x = graph.placeholder("x")
    first, second = graph.call_function(umbra.relu, (x,)), graph.call_function(umbra.neg, (x,))
    graph.output(first)
    first.args = (second,)
    gm = legalize_graph(fx.GraphModule({}, graph))
    gm.graph.lint()
    assert [node.name for node in gm.graph.nodes] == ["x", "neg", "relu", "output"]


@pytest.mark.parametrize("value", [object(), {1, 2}, b"text", int, [object()], {"key": object()}])
def test_what_a_graph_cannot_hold_is_refused(value):
    with pytest.raises(NotImplementedError, match="argument of type"):
        fx.symbolic_trace(lambda x: x.method(value))


def test_dataclasses_are_made_by_the_graph():
    import dataclasses

    @dataclasses.dataclass
    class Pair:
        first: object
        second: int = 2
    result = fx.symbolic_trace(lambda x: Pair(x + 1))(umbra.ones(1))
    assert type(result) is Pair and result.first.tolist() == [2] and result.second == 2


def test_functions_of_several_tensors_take_proxies_outside_of_a_trace():
    graph = fx.Graph()
    tracer = fx.proxy.GraphAppendingTracer(graph)
    x, y = (fx.Proxy(graph.placeholder(name), tracer) for name in "xy")
    first = umbra.broadcast_tensors(x, y)[0]
    graph.output(umbra.einsum("ij->j", [umbra.split(first, 1)[0]]).node)
    run = fx.GraphModule({}, graph)
    assert run(umbra.ones(2, 3), umbra.ones(3)).tolist() == [1, 1, 1]


def test_functions_of_networks_are_called_by_torchs_names():
    functional = umbra.nn.functional
    module = umbra.fx.symbolic_trace(lambda x: functional.gelu(functional.linear(x, x)))
    assert "torch._C._nn.linear(x, x)" in module.code and "torch._C._nn.gelu(linear)" in module.code
    assert umbra.allclose(module(umbra.ones(2, 2)), functional.gelu(functional.linear(umbra.ones(2, 2), umbra.ones(2, 2))))


def test_a_module_of_two_graphs_that_makes_itself():
    """What torchvision's feature extractors do: the base class of GraphModule is initialised, and a graph is set."""
    from umbra import fx, nn
    from umbra.fx.graph_module import _copy_attr

    class Dual(fx.GraphModule):
        def __init__(self, root, one, other):
            super(fx.GraphModule, self).__init__()
            for node in (*one.nodes, *other.nodes):
                if node.op == "call_module":
                    _copy_attr(root, self, node.target)
            self.one, self.other, self.graph = one, other, one

        def train(self, mode=True):
            self.graph = self.one if mode else self.other
            return super().train(mode)

    root = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    tracer = fx.Tracer()
    one, other = tracer.trace(root), fx.Tracer().trace(nn.Sequential(root[0]))
    assert one._tracer_cls is fx.Tracer and fx.Graph()._tracer_cls is None
    dual, x = Dual(root, one, other), umbra.ones(1, 2)
    assert umbra.equal(dual(x), root(x)) and umbra.equal(dual.eval()(x), root[0](x))
    assert [name for name, _ in dual.named_parameters()] == ["0.weight", "0.bias"]


def test_a_tracer_knows_the_module_that_runs():
    scopes = []

    class Noting(umbra.fx.Tracer):
        def create_node(self, *args, **kwargs):
            scopes.append((self.scope.module_path, self.scope.module_type))
            return super().create_node(*args, **kwargs)

    class Inner(umbra.nn.Module):
        def forward(self, x):
            return x + 1

    class Outer(umbra.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(x) * 2
    Noting().trace(Outer())
    assert scopes == [("", None), ("inner", Inner), ("", None), ("", None)]


class TestNodes:
    def test_lines_show_types(self):
        class Flagged(umbra.nn.Module):
            def forward(self, x, flag: bool = True):
                return x + 1

        traced = fx.symbolic_trace(Flagged())
        assert "%flag : bool [num_users=0] = placeholder[target=flag](default=True)" in str(traced.graph)
        assert "def forward(self, x, flag : bool = True):" in traced.print_readable(print_output=False)
        node = traced.graph.call_function(umbra.neg, (1,), type_expr=umbra.Tensor)
        assert node.format_node().startswith("%neg : torch.Tensor [num_users=0]")

    def test_mapped_nests_cannot_be_changed(self):
        mapped = fx.node.map_aggregate((1, [2, {"k": 3}]), lambda leaf: leaf * 2)
        assert mapped == (2, [4, {"k": 6}])
        with pytest.raises(TypeError):
            mapped[1].append(1)

    def test_output_is_the_last_node(self):
        graph = fx.Graph()
        graph.output(graph.placeholder("x"))
        assert graph.output_node().op == "output"
        graph.placeholder("late")
        with pytest.raises(AssertionError, match="got op=placeholder"):
            graph.output_node()

    def test_refused_modules_do_not_own_the_graph(self):
        graph = fx.Graph()
        graph.output(graph.call_module("layer", (graph.placeholder("x"),)))
        kept = fx.GraphModule({"layer": umbra.nn.ReLU()}, graph)
        with pytest.raises((AttributeError, RuntimeError)):
            fx.GraphModule(umbra.nn.Module(), graph)
        assert graph.owning_module is kept
        graph.lint()
        with pytest.raises(AssertionError, match="Expected a Graph instance"):
            kept.graph = 3
        assert kept(umbra.tensor([-1.0])).item() == 0

    def test_only_functions_are_traced(self):
        with pytest.raises(AssertionError, match="Expected FunctionType"):
            fx.symbolic_trace(3)

    def test_unused_results_are_let_go(self):
        code = fx.symbolic_trace(lambda x, flag: x + 1 if flag else x, concrete_args={"flag": True}).code
        assert "eq = _assert = None" in code


def test_lists_that_a_module_gives_may_be_changed():
    def listed(x):
        return [x, {"k": x}]

    given = fx.symbolic_trace(listed)(umbra.ones(1))
    assert type(given) is list and type(given[1]) is dict


def test_the_signature_of_forward_is_that_of_its_text():
    class Model(umbra.nn.Module):
        def forward(self, x, y=2, *rest, scale: float = 1.0):
            return x * y * scale
    traced = fx.symbolic_trace(Model(), concrete_args={"scale": 1.0})
    assert list(inspect.signature(traced.forward).parameters)[:2] == ["x", "y"]
    assert inspect.signature(traced.forward).parameters["y"].default == 2
    exported = umbra.export.export(umbra.nn.Bilinear(2, 2, 2), (umbra.ones(1, 2), umbra.zeros(1, 2))).module()
    transformed = fx.Transformer(exported).transform()
    for module in (exported, transformed):
        assert str(inspect.signature(module.forward)) == "(input1, input2)"
    again = fx.symbolic_trace(transformed)
    assert umbra.equal(again(umbra.ones(1, 2), umbra.ones(1, 2)), exported(umbra.ones(1, 2), umbra.ones(1, 2)))


def test_a_transformed_program_with_branches_gives_what_the_program_gives():
    class Model(umbra.nn.Module):
        def forward(self, x):
            return umbra.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
    exported = umbra.export.export(Model(), (umbra.ones(2),)).module()
    assert umbra.equal(fx.Transformer(exported).transform()(umbra.ones(2)), umbra.ones(2).sin())


def test_objects_that_a_traced_program_makes_of_values_are_attributes():
    class Both(metaclass=umbra.fx.ProxyableClassMeta):
        def __init__(self, left, right):
            self.left, self.right = left, right

        def add(self, other):
            return Both(self.left + other.left, self.right + other.right)
    traced = umbra.fx.symbolic_trace(lambda x: x.add(Both(umbra.ones(2), umbra.zeros(2))))
    assert [node.target for node in traced.graph.find_nodes(op="get_attr")] == ["_Both_constant_0"]
    assert traced(Both(umbra.ones(2), umbra.ones(2))).left.tolist() == [2, 2]


def test_a_graph_that_python_runs_calls_what_its_nodes_hold():
    def scaled(factor):
        def scale(x, options=None, **kwargs):  # all of one name
            return x * factor, options, kwargs
        return scale
    kept = [1, {"k": (2, slice(0, 1))}]
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y", default_value=-0.0)
    twice = graph.call_function(scaled(2), (x, [y, *kept]), {"no name": math.nan, "class": kept[1]})
    thrice = graph.call_function(scaled(3), (graph.call_method("neg", (x,)),), {"options": y})
    graph.output((twice, {"thrice": thrice}))
    module = fx.GraphModule({}, graph)
    for _ in range(2):
        (doubled, options, kwargs), rest = module(umbra.ones(2))
        assert doubled.tolist() == [2, 2] and math.isnan(kwargs["no name"]) and kwargs["class"] == {"k": (2, slice(0, 1))}
        assert type(options) is list and type(options[2]) is dict and math.copysign(1, options[0]) == -1
        options.append(4), options[2].clear()  # this call's own
        assert rest["thrice"][0].tolist() == [-3, -3] and rest["thrice"][1:] == (-0.0, {})
        module = copy.deepcopy(module)
    assert module(umbra.ones(2), 5)[1]["thrice"][1] == 5


def test_a_graph_that_python_runs_keeps_no_value_longer_than_needed():
    made = []

    def make(x):
        made.append(umbra.nn.Module())
        return made[-1]

    def look(x, module):
        made[:] = [weakref.ref(module)]
        return x

    module = graph_module(lambda graph, x: graph.call_function(
        lambda x: made[0]() is None, (graph.call_function(look, (x, graph.call_function(make, (x,)))),)))
    assert module(umbra.ones(1)) is True
