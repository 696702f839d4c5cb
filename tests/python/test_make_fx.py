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


def test_the_module_is_named_after_the_function():
    def named(x):
        return x.sin()

    class Callable:
        def __call__(self, x):
            return x.sin()
    x = umbra.randn(2, 2)
    assert type(make_fx(named)(x)).__name__ == "named"
    for f in (Callable(), umbra.nn.Linear(2, 2), umbra.sin, lambda *args: args[0].sin()):
        assert type(make_fx(f)(x)).__name__ == "<lambda>"


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


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_literals_are_constants(mode):
    def f(x):
        t = umbra.tensor([1.0, 2.0])
        t.add_(x)
        return t * 1
    graph = make_fx(f, tracing_mode=mode)(umbra.ones(2))
    assert "torch.ops.aten.lift_fresh_copy.default(_tensor_constant0)" in graph.code
    for _ in range(2):
        assert umbra.equal(graph(umbra.ones(2)), umbra.tensor([2.0, 3.0]))
    assert umbra.equal(graph._tensor_constant0, umbra.tensor([1.0, 2.0]))


@pytest.mark.parametrize("function", [
    lambda x: x * x.sum().item(), lambda x: x * float(x[0]), lambda x: x if x.sum() > 0 else -x, lambda x: x * umbra.ones(2).sum().item()])
def test_data_cannot_be_baked_in(function):
    with pytest.raises(RuntimeError, match="It appears that you're trying to get value out of a tracing tensor with aten._local_scalar_dense.default"):
        make_fx(function)(umbra.ones(2))


def test_literals_may_be_read():
    graph = make_fx(lambda x: x * umbra.tensor(3.0).item() * (umbra.tensor(3.0) + 1).item())(umbra.ones(2))
    assert "mul.Tensor(x_1, 3.0)" in graph.code and "mul.Tensor(mul, 4.0)" in graph.code


def test_integers_are_symbols_in_symbolic_mode():
    graph = make_fx(lambda x, n: x * n, tracing_mode="symbolic")(umbra.ones(2), 5)
    assert umbra.equal(graph(umbra.ones(2), 7), umbra.full((2,), 7.0))
    assert "mul.Tensor(x_1, n_1)" in graph.code
    assert "mul.Tensor(x_1, 5.0)" in make_fx(lambda x, n: x * n, tracing_mode="symbolic")(umbra.ones(2), 5.0).code
    assert "mul.Tensor(x_1, 1)" in make_fx(lambda x, n: x * n, tracing_mode="symbolic")(umbra.ones(2), 1).code
    assert "mul.Tensor(x_1, 5)" in make_fx(lambda x, n: x * n, tracing_mode="fake")(umbra.ones(2), 5).code


def body(graph):
    return [line.strip() for line in graph.code.strip().splitlines()[1:] if line.strip()]


def test_texts_are_pytorchs():
    def named(x):
        return x.max(0)[0] * 2
    graph = make_fx(named)(umbra.ones(2, 3))
    assert type(graph).__name__ == "named"
    assert body(graph) == [
        "max_1 = torch.ops.aten.max.dim(x_1, 0);  x_1 = None", "getitem = max_1[0]", "getitem_1 = max_1[1];  max_1 = getitem_1 = None",
        "mul = torch.ops.aten.mul.Tensor(getitem, 2);  getitem = None", "return mul"]
    graph = make_fx(lambda x: (x.relu(), x.sin() * x.numel() + x.shape[0])[1], tracing_mode="symbolic")(umbra.ones(2, 3))
    assert body(graph) == [
        "relu = torch.ops.aten.relu.default(x_1);  relu = None", "sin = torch.ops.aten.sin.default(x_1)",
        "sym_numel_default = torch.ops.aten.sym_numel.default(x_1)",
        "mul = torch.ops.aten.mul.Tensor(sin, sym_numel_default);  sin = sym_numel_default = None",
        "sym_size_int = torch.ops.aten.sym_size.int(x_1, 0);  x_1 = None",
        "add = torch.ops.aten.add.Tensor(mul, sym_size_int);  mul = sym_size_int = None", "return add"]
    assert umbra.equal(graph(umbra.ones(3, 4)), umbra.ones(3, 4).sin() * 12 + 3)
    slices = make_fx(lambda x: x[:, :3], tracing_mode="symbolic")(umbra.ones(4, 6))
    assert "slice.Tensor(x_1, 0, 0, 9223372036854775807)" in slices.code
    assert "view.default(x_1, [-1, 12])" in make_fx(lambda x: x.reshape(-1, 12))(umbra.ones(4, 6)).code


class Model(umbra.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


outside = umbra.ones(2)


def cond_of(true_function, false_function=lambda v: v + 1):
    return lambda x: umbra.cond(x.sum() > 0, true_function, false_function, (x,))


@pytest.mark.parametrize("how", ["eager", "make_fx", "export"])
@pytest.mark.parametrize("function, text", [
    (cond_of(lambda v: v.add_(1)), "Higher order ops do not support input mutation"),
    (cond_of(lambda v: (v[0].add_(1), v + 1)[1]), "Higher order ops do not support input mutation"),
    (cond_of(lambda v: v + 1, lambda v: (outside.add_(1), v + 1)[1]), "Higher order ops do not support input mutation"),
    (cond_of(lambda v: v), "Higher order ops do not support aliasing"),
    (cond_of(lambda v: v + 1, lambda v: v.view(-1)), "Higher order ops do not support aliasing"),
    (cond_of(lambda v: outside), "Higher order ops do not support aliasing"),
    (cond_of(lambda v: v.sum()), "expected same dim but got 0 and 1"),
    (cond_of(lambda v: v.double()), "expected same dtype but got torch.float64 and torch.float32"),
    (cond_of(lambda v: (v + 1, None), lambda v: (v + 1, v + 2)), "Constants returned from branches must be ints"),
    (cond_of(lambda v: (v + 1, v + 2)), "Unmatched output spec from torch.cond branches"),
])
def test_branches_that_cond_refuses(how, function, text):
    x = umbra.ones(2)
    with pytest.raises(RuntimeError, match=text):
        if how == "eager":
            function(x)
        elif how == "make_fx":
            make_fx(function, tracing_mode="fake", _allow_non_fake_inputs=True)(x)
        else:
            umbra.export.export(Model(function), (x,))
    assert umbra.equal(x, umbra.ones(2)) and umbra.equal(outside, umbra.ones(2))


@pytest.mark.parametrize("mode", ["fake", "symbolic", "real"])
def test_nested_cond_closes_over_outer_tensors(mode):
    def f(x, y):
        z = y.sin()
        return umbra.cond(x.sum() > 0, lambda v: umbra.cond(v.sum() > 3, lambda u: u + z, lambda u: u * y, (v,)), lambda v: v + 1, (x,))
    graph = make_fx(f, tracing_mode=mode)(umbra.ones(2), umbra.ones(2))
    for x in (umbra.ones(2), umbra.ones(2) * 3, -umbra.ones(2)):
        y = umbra.randn(2)
        assert umbra.allclose(graph(x, y), f(x, y))


def test_functionalize_refuses_writes_to_what_it_does_not_know():
    from umbra.func import functionalize
    closed_over = umbra.zeros(3)

    def f(x):
        closed_over.select(0, 0).add_(x)
        return closed_over.sum()
    with pytest.raises(RuntimeError, match="a constant"):
        functionalize(f)(umbra.ones(()))
    assert umbra.equal(closed_over, umbra.zeros(3))
    graph = make_fx(functionalize(lambda x: x.clone().add_(1)))(umbra.ones(2))
    assert "def forward(self, x_1):" in graph.code and "add_" not in graph.code


def test_exported_literals_are_constants(tmp_path):
    def f(x):
        t = umbra.tensor([1.0, 2.0])
        t.add_(x)
        return t * 1
    program = umbra.export.export(Model(f), (umbra.ones(2),))
    module = program.module()
    module(umbra.ones(2))
    assert umbra.equal(module(umbra.ones(2)), umbra.tensor([2.0, 3.0]))
    umbra.export.save(program, tmp_path / "program.pt2")
    loaded = umbra.export.load(tmp_path / "program.pt2").module()
    assert umbra.equal(loaded(umbra.ones(2)), umbra.tensor([2.0, 3.0]))


def test_every_parameter_is_given_an_example():
    x = umbra.ones(1)
    for function, args in ((lambda x, y: x, (x,)), (lambda x: x, (x, x)), (lambda x, y=None: x, (x,)), (lambda x, *, y=None: x, (x,))):
        with pytest.raises(RuntimeError, match="Tracing expected"):
            make_fx(function)(*args)
    make_fx(lambda *xs: xs[0] + 1)(x, x)


def test_a_result_that_left_the_graph_by_numpy_is_refused():
    with pytest.raises(NotImplementedError, match="numpy"):
        make_fx(lambda x: x.numpy().sum())(umbra.ones(2))


def called(function, *inputs):
    """The operators that a capture of the function records."""
    graph = make_fx(function)(*inputs).graph
    return [str(node.target).replace("aten.", "") for node in graph.nodes if node.op == "call_function" and "getitem" not in str(node.target)]


@pytest.mark.parametrize("function, inputs, calls", [
    (umbra.isfinite, [umbra.ones(2)], "abs.default ne.Scalar eq.Tensor mul.Tensor"),
    (umbra.nn.functional.linear, [umbra.ones(2, 3, 4), umbra.ones(5, 4), umbra.ones(5)], "view.default t.default addmm.default _unsafe_view.default"),
    (umbra.matmul, [umbra.ones(2, 3, 4), umbra.ones(1, 4, 5)], "squeeze.dim view.default mm.default _unsafe_view.default"),
    (umbra.square, [umbra.ones(2)], "pow.Tensor_Scalar"),
    (lambda x, out: umbra.square(x, out=out), [umbra.ones(2), umbra.ones(2)], "pow.Tensor_Scalar_out"),
    (lambda x, out: umbra.linalg.norm(x, out=out), [umbra.ones(2), umbra.ones(())], "linalg_vector_norm.default copy_.default"),
    (lambda x, out: umbra.linalg.inv(x, out=out), [umbra.eye(2), umbra.ones(2, 2)], "empty.memory_format linalg_inv_ex.inverse _linalg_check_errors.default"),
    (lambda x, out: umbra.fft.fft(x, out=out), [umbra.ones(2), umbra.ones(2, dtype=umbra.complex64)], "_fft_r2c.out"),
])
def test_composites_come_apart_as_in_pytorch(function, inputs, calls):
    assert called(function, *inputs) == calls.split()


def test_a_composite_with_a_kernel_gives_the_same_whole_and_in_parts():
    x = umbra.tensor([1.0, float("inf"), -float("inf"), float("nan")])
    for t in (x, x.to(umbra.complex64), umbra.arange(3)):
        assert umbra.equal(make_fx(umbra.isfinite)(t)(t), umbra.isfinite(t))
    assert umbra.isfinite(x).tolist() == [True, False, False, False]


def test_lift_is_recorded_as_it_is():
    graph = make_fx(lambda x: umbra.ops.aten.lift(x) + 1)(umbra.ones(2))
    assert "aten.lift.default(x_1)" in graph.code
    assert umbra.equal(graph(umbra.zeros(2)), umbra.ones(2))


def test_a_decomposition_may_leave_a_call_whole():
    def parts(x, y, alpha=1):
        return x - y if alpha == 2 else NotImplemented
    table = {umbra.ops.aten.add.Tensor: parts}
    calls = [str(node.target) for node in make_fx(lambda x: umbra.add(x, x, alpha=2) + 1, decomposition_table=table)(umbra.ones(2)).graph.nodes
             if node.op == "call_function"]
    assert calls == ["aten.sub.Tensor", "aten.add.Tensor"]


def test_code_of_nested_arguments_names_them_as_the_function_does():
    code = make_fx(lambda d, e: [d["x"] * 2, e])({"x": umbra.ones(2)}, umbra.ones(2)).code
    assert "def forward(self, d, e):" in code and "tree_flatten_spec([d, e], self._in_spec)" in code
    assert "pytree.tree_unflatten([" in code


def test_the_gradient_of_a_power_computes_in_floating_point_numbers():
    code = make_fx(lambda x: umbra.autograd.grad((x ** 2).sum(), x)[0])(umbra.ones(2, requires_grad=True)).code
    assert "pow.Tensor_Scalar(x_1, 1.0)" in code and "mul.Scalar(pow_2, 2.0)" in code


def test_parts_of_a_literal_can_be_read():
    def f(x):
        first, = umbra.unbind(umbra.tensor([2]), 0)
        return x * first.item()
    assert make_fx(f)(umbra.ones(2))(umbra.ones(2)).tolist() == [2, 2]


def targets(graph):
    return [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]


def test_a_graph_has_aliases_where_the_function_cuts_gradients():
    def f(x):
        return x.detach() * 2
    x = umbra.ones(2)
    for mode in ("real", "fake", "symbolic"):
        assert targets(make_fx(f, tracing_mode=mode)(x)) == ["aten.alias.default", "aten.mul.Tensor"]
    assert targets(make_fx(f, decomposition_table={})(x)) == ["aten.detach.default", "aten.mul.Tensor"]
    assert targets(make_fx(f, pre_dispatch=True)(x)) == ["aten.detach.default", "aten.mul.Tensor"]


def test_var_and_std_are_the_overloads_that_pytorch_picks():
    def f(x):
        return x.var(0), x.var(), x.std(0, correction=2), umbra.std_mean(x, [0]), x.var(0, keepdim=True)
    assert targets(make_fx(f, pre_dispatch=True)(umbra.ones(2, 3)))[:3] == ["aten.var.dim", "aten.var.correction", "aten.std.correction"]
    captured = make_fx(f)(umbra.ones(2, 3)).code
    assert "var.correction(x_1, [0], correction = 1, keepdim = True)" in captured


# ---- attributes, modules and what nodes take over ----

def test_each_use_of_a_closed_over_tensor_is_a_node():
    weight, shift = umbra.nn.Parameter(umbra.ones(2)), umbra.ones(2)
    module = make_fx(lambda x: (x * weight + shift) * weight + shift)(umbra.ones(2))
    nodes = [(node.name, node.target) for node in module.graph.find_nodes(op="get_attr")]
    assert nodes == [("_param_constant0", "_param_constant0"), ("_tensor_constant0", "_tensor_constant0"), ("_param_constant0_1", "_param_constant0"),
                     ("_tensor_constant0_1", "_tensor_constant0")]
    assert module._param_constant0 is weight and [name for name, _ in module.named_parameters()] == ["_param_constant0"]
    shift.fill_(5)
    assert module(umbra.ones(2)).tolist() == [11, 11]


def test_a_closed_over_tensor_that_is_written_is_read_after_the_write():
    state = umbra.zeros(1)

    def f(x):
        state.add_(x)
        return state * 2
    module = make_fx(f)(umbra.ones(1))
    assert module(umbra.ones(1)).item() == 4 and state.item() == 2


class _Outer(umbra.nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = umbra.nn.Sequential(umbra.nn.ReLU(), umbra.nn.Tanh())

    def forward(self, x):
        return self.parts(x) + self.parts[0](x)


def test_nodes_know_the_modules_that_a_wrapped_function_calls():
    root = _Outer()

    def f(x):
        return root(x) * 2
    assert all("nn_module_stack" not in node.meta for node in make_fx(root, record_module_stack=True)(umbra.ones(2)).graph.nodes)
    f._orig_mod = root
    assert all("nn_module_stack" not in node.meta for node in make_fx(f)(umbra.ones(2)).graph.nodes)
    stacks = {node.name: list(node.meta.get("nn_module_stack", {}).items()) for node in make_fx(f, record_module_stack=True)(umbra.ones(2)).graph.nodes}
    assert [key for key, _ in stacks["tanh"]] == ["", "parts", "parts.1"] and stacks["tanh"][-1][1] == ("parts.1", "torch.nn.modules.activation.Tanh")
    assert [key for key, _ in stacks["relu_1"]] == ["", "parts.0@1"] and not stacks["mul"]


def test_a_graph_that_is_run_again_keeps_what_is_known_of_its_nodes():
    from umbra.fx.traceback import preserve_node_meta
    module = umbra.fx.symbolic_trace(lambda x: (x + 1).relu())
    for node in module.graph.nodes:
        node.stack_trace, node.meta["quantization_tag"], node.meta["other"] = f"line of {node.name}", node.name, 1

    def again(x):
        return umbra.fx.Interpreter(module).run(x)
    with preserve_node_meta():
        found = {node.name: (node.stack_trace, node.meta.get("quantization_tag"), node.meta.get("other")) for node in make_fx(again)(umbra.ones(1)).graph.nodes}
    assert found["add"] == ("line of add", "add", None) and found["relu"] == ("line of relu", "relu", None)
    assert all(node.stack_trace is None for node in make_fx(again)(umbra.ones(1)).graph.nodes)


def test_a_graph_recorded_anew_with_operators_taken_apart():
    from umbra._decomp import get_decompositions
    from umbra.fx.experimental.proxy_tensor import DecompositionInterpreter
    weight = umbra.ones(2)
    module, graph = make_fx(lambda x: umbra.nn.functional.silu(x) * weight)(umbra.ones(2)), umbra.fx.Graph()
    result = DecompositionInterpreter(module, graph, get_decompositions([umbra.ops.aten.silu.default])).run(umbra.ones(2))
    again = umbra.fx.GraphModule(module, graph)
    assert [node.name for node in graph.nodes] == ["x_1", "sigmoid", "mul", "_tensor_constant0", "mul_1", "output"]
    assert umbra.equal(result, module(umbra.ones(2))) and umbra.equal(again(umbra.ones(2)), result)


def test_a_graph_inside_a_capture_that_does_not_see_it():
    from umbra.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, get_isolated_graphmodule
    inner = []

    def f(x, factor=2):
        inner.append(get_isolated_graphmodule(lambda y, *, by: y * by, (x,), {"by": 3}))
        with disable_proxy_modes_tracing():
            two = umbra.ones(1) + 1
        return x + two
    module = make_fx(f)(umbra.ones(1), 2)
    assert [node.name for node in module.graph.nodes] == ["x_1", "factor_1", "_tensor_constant0", "add", "output"]
    assert inner[0]([umbra.ones(1), 3]).item() == 3 and [node.name for node in inner[0].graph.nodes if node.op == "call_function"] == ["mul"]


def test_regions_of_autocast_keep_no_casts_in_captures():
    def f(x):
        with umbra.autocast("cpu"):
            return x @ x
    assert "('cpu', torch.bfloat16, True, False)" in make_fx(f, pre_dispatch=True)(umbra.ones(2, 2)).code
    assert umbra.is_autocast_cache_enabled()


def test_what_is_noted_while_a_program_is_captured_stays_with_its_nodes():
    from export_functions import Function
    from umbra.fx import traceback

    @traceback.annotate_fn({"who": "double"})
    def double(x):
        return x * 2

    def f(x):
        with traceback.annotate({"stage": 1}):
            y = double(x + 1)
        return y.sin()

    def notes(graph):
        return {node.name: node.meta.get("custom") for node in graph.nodes if node.op == "call_function"}
    expected = {"add": {"stage": 1}, "mul": {"stage": 1, "who": "double"}, "sin": None}
    with traceback.preserve_node_meta():
        assert notes(make_fx(f)(umbra.ones(2)).graph) == expected
        program = umbra.export.export(Function(f), (umbra.ones(2),))
        assert notes(program.graph) == notes(program.run_decompositions().graph) == expected
    assert not any(notes(make_fx(f)(umbra.ones(2)).graph).values())
    first = next(node for node in program.graph.nodes if node.name == "add")
    first.meta["custom"]["more"] = True
    assert notes(program.graph)["mul"] == {"stage": 1, "who": "double"}


def test_several_results_of_a_call_are_a_tuple_in_its_meta():
    module = make_fx(lambda x: (*umbra.max(x, 0), *x.split(1)))(umbra.ones(2, 3))
    kinds = {str(node.target): type(node.meta["val"]) for node in module.graph.nodes if str(node.target).startswith("aten.")}
    assert kinds == {"aten.max.dim": tuple, "aten.split.Tensor": list}


def test_an_entry_that_is_not_there_is_pythons_own_error():
    graph = make_fx(lambda d, l: d["a"] + l[0])({"a": umbra.ones(2)}, [umbra.ones(2)])
    x = umbra.ones(2)
    for arguments, error, text in ((({"b": x}, [x]), KeyError, "'a'"), (({"a": x}, []), IndexError, "index out of range"), (({"a": x},), TypeError, "missing 1 required"),
                                   (({"a": x, "b": x}, [x]), ValueError, "2 entries"), (({"a": x}, (x,)), ValueError, "structure")):
        with pytest.raises(error, match=text):
            graph(*arguments)


def test_numbers_read_from_data_may_stay_what_they_are():
    def scaled(x):
        return x * x.sum().item()
    graph = make_fx(scaled, _error_on_data_dependent_ops=False)(umbra.ones(2))
    assert graph(umbra.tensor([2.0, 3.0])).tolist() == [4.0, 6.0]
    with pytest.raises(RuntimeError):
        make_fx(scaled)(umbra.ones(2))


def test_a_deep_copy_of_a_symbolic_graph_takes_other_sizes():
    import copy
    graph = make_fx(lambda x: x * x.shape[0], tracing_mode="symbolic")(umbra.ones(4))
    assert copy.deepcopy(graph)(umbra.ones(3)).tolist() == [3, 3, 3]
