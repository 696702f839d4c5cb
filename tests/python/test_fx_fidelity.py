"""Graphs of torch.fx as PyTorch prints, copies and refuses them."""
import copy
import json
import operator
import typing

import pytest
import umbra
from umbra import fx, nn
from umbra.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from umbra.fx.passes.operator_support import OperatorSupport


def test_functions_are_named_after_the_modules_that_have_them():
    def f(x):
        return umbra.linalg.det(x), umbra.fft.fft(x), umbra.special.erf(x), nn.functional.pad(x, (1, 1)), umbra._assert(x, "no"), umbra.as_tensor(x)
    code = fx.symbolic_trace(f).code
    for name in ("torch._C._linalg.linalg_det(x)", "torch._C._fft.fft_fft(x)", "torch._C._special.special_erf(x)", "torch.nn.functional.pad(x",
                 "torch._assert(x", "torch.as_tensor(x)"):
        assert name in code
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output((graph.call_function(umbra.func.vmap, (x,)), graph.call_function(umbra.pca_lowrank, (x,)), graph.call_function(umbra.manual_seed, (x,))))
    assert [str(n.format_node()).split("target=")[1].split("]")[0] for n in list(graph.nodes)[1:4]] == [
        "torch.func.vmap", "torch._lowrank.pca_lowrank", "torch.random.manual_seed"]
    assert umbra._C._linalg.linalg_det is umbra.linalg.det and not hasattr(umbra._C._fft, "linalg_det")


def test_a_traced_module_of_linear_algebra_is_pickled():
    import pickle
    traced = fx.symbolic_trace(lambda x: umbra.linalg.det(x) + 1)
    assert umbra.equal(pickle.loads(pickle.dumps(traced))(umbra.eye(2)), umbra.tensor(2.0))


def test_a_lambda_is_named_after_what_it_is_assigned_to():
    double = lambda x: x * 2  # noqa: E731
    graph = fx.Graph()
    graph.output(graph.call_function(double, (graph.placeholder("x"),)))
    gm = fx.GraphModule(nn.Module(), graph)
    assert "test_fx_fidelity_double(x)" in gm.code and gm(3) == 6


def test_annotations_in_code():
    def f(x: int | None, y: typing.Dict[str, typing.Tuple[int, ...]] = None, z: typing.Any = 1, w: "umbra.Tensor" = None):
        return x
    assert ("def forward(self, x : typing_Union[int,NoneType], y : typing_Dict[str,typing_Tuple[int,_]] = None, z : typing_Any = 1, w : _umbra_Tensor_ = None):"
            in fx.symbolic_trace(f).code)


def test_a_number_beyond_64_bits_is_an_argument():
    gm = fx.symbolic_trace(lambda x: (x + 10 ** 20, -(2 ** 63)))
    assert gm.code.count("x + 100000000000000000000") == 1 and gm(1) == (10 ** 20 + 1, -(2 ** 63))


def test_errors_of_a_call_are_those_of_its_source():
    gm = fx.symbolic_trace(lambda x, y: umbra.mm(x, y))
    with pytest.raises(RuntimeError) as error:
        gm(umbra.ones(2, 3), umbra.ones(2, 3))
    assert str(error.value).removeprefix("mm: ") == "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"
    with pytest.raises(RuntimeError, match="(?s)While executing %mm.*Original traceback:\nNone\nUse tlparse to see full graph"):
        fx.Interpreter(gm).run(umbra.ones(2, 3), umbra.ones(2, 3))
    with pytest.raises(TypeError) as error:
        fx.symbolic_trace(lambda x: x.view(-1) + None)(umbra.ones(1))
    assert "While executing" not in str(error.value)


def test_graph_modules_within_are_printed_with_shapes():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = fx.symbolic_trace(lambda x: x.view(-1))

        def forward(self, x):
            return self.inner(x)

    class Whole(fx.Tracer):
        def is_leaf_module(self, m, name):
            return isinstance(m, fx.GraphModule)
    outer = Outer()
    text = fx.GraphModule(outer, Whole().trace(outer)).print_readable(print_output=False)
    assert "\n\n    class inner(torch.nn.Module):\n        def forward(self, x):\n" in text


def test_source_with_strides_devices_and_another_root():
    from umbra.fx.passes.shape_prop import ShapeProp
    gm = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2)))
    ShapeProp(gm).propagate(umbra.ones(1, 2))
    assert 'getattr(root, "0")(input_1)' in gm.graph.python_code("root").src
    gm = umbra.fx.experimental.proxy_tensor.make_fx(lambda x: x + 1)(umbra.ones(2, 3))
    assert 'add: "f32[2, 3][3, 1]cpu"' in gm.graph.python_code("self", verbose=True, include_stride=True, include_device=True).src


def test_copies_are_plain_graph_modules_without_hooks_of_calls():
    gm = fx.GraphModule(nn.Module(), fx.symbolic_trace(lambda x: x + 1).graph, "Named")
    gm.register_forward_hook(lambda module, args, output: output * 10)
    assert gm(1) == 20 and copy.deepcopy(gm)(1) == 2
    assert type(gm).__name__ == "Named" and type(copy.deepcopy(gm)).__name__ == type(copy.copy(gm)).__name__ == "GraphModule"


def test_buffers_that_are_not_saved_stay_such():
    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("kept", umbra.ones(1))
            self.register_buffer("temporary", umbra.ones(1), persistent=False)

        def forward(self, x):
            return x + self.kept + self.temporary
    gm = fx.symbolic_trace(Holder())
    assert list(gm.state_dict()) == ["kept"] and [name for name, _ in gm.named_buffers()] == ["kept", "temporary"]


def test_a_buffer_may_be_assigned_while_it_is_traced():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", umbra.zeros(1))

        def forward(self, x):
            self.count = self.count + x
            return self.count
    assert "add" in [node.name for node in fx.symbolic_trace(Counter()).graph.nodes]


def test_metadata_are_a_dict():
    node = fx.symbolic_trace(lambda x: x + 1).graph.output_node()
    node.meta["a"] = 1
    assert isinstance(node.meta, dict) and json.dumps(node.meta) == '{"a": 1}' and node.meta | {"b": 2} == {"a": 1, "b": 2}
    assert {**node.meta} == copy.deepcopy(node.meta) == dict(node.meta) == {"a": 1} and len(node.meta) == 1


def test_arguments_are_replaced_by_place():
    node = list(fx.symbolic_trace(lambda x, y: umbra.cat([x, y], 0)).graph.nodes)[2]
    with pytest.raises(IndexError, match="list assignment index out of range"):
        node.update_arg(9, 1)
    with pytest.raises(AssertionError, match=r"insert_args index must be between 0 and len\(self.args\), got 9"):
        node.insert_arg(9, 1)
    node.update_arg(-1, 1)
    assert node.args[1] == 1 and node._pretty_print_target(node.target) == "torch.cat"
    node._rename("x")
    assert node.name == "x_1"


def test_lint_asks_for_modules():
    gm = fx.symbolic_trace(nn.Linear(2, 2))
    node = gm.graph.create_node("call_module", "weight", ())
    with pytest.raises(RuntimeError, match=f"Node {node.name} target weight weight of  does not reference an nn.Module"):
        gm.graph.lint()


def test_partitions_are_fused_in_order():
    class Adding(OperatorSupport):
        def is_node_supported(self, modules, node):
            return node.op == "call_function" and node.target in (operator.add, umbra.relu)

    def f(x, y):
        a = x + y
        return umbra.relu(a) * 2 + a, umbra.relu(y) + 1
    gm = fx.symbolic_trace(f)
    partitioner = CapabilityBasedPartitioner(gm, Adding())
    parts = partitioner.propose_partitions()
    assert [part.id for part in parts] == [1, 4]
    lines = [str(node.format_node()).split(" : ")[0] for node in partitioner.fuse_partitions(parts).graph.nodes]
    assert lines[2:-1] == ["%fused_1", "%getitem_2", "%getitem_3", "%mul", "%fused_0", "%getitem", "%getitem_1"]


def test_capture_of_an_annotated_function():
    with fx.traceback.annotate({"stage": 1}):
        gm = fx.experimental.proxy_tensor.make_fx(lambda x: x.sin())(umbra.ones(2))
    assert [node.meta.get("custom") for node in gm.graph.nodes] == [None] * 3


def test_a_promised_size_of_an_operator_is_checked_by_programs():
    import umbra.export

    @umbra.library.custom_op("fidelity::positive", mutates_args=())
    def positive(x: umbra.Tensor) -> umbra.Tensor:
        return x[x > 0].clone()

    @positive.register_fake
    def _(x):
        return x.new_empty(umbra.library.get_ctx().new_dynamic_size(min=1, max=2))

    class Program(nn.Module):
        def forward(self, x):
            return positive(x) * 2
    program = umbra.export.export(Program(), (umbra.tensor([1.0, -1.0, 2.0]),))
    assert [node.name for node in program.graph.nodes] == [
        "x", "positive", "sym_size_int", "ge", "_assert_scalar_default", "le", "_assert_scalar_default_1", "mul", "output"]
    assert program.module()(umbra.tensor([1.0, -1.0, 3.0])).tolist() == [2.0, 6.0]
    with pytest.raises(RuntimeError, match="Runtime assertion failed for expression u0 <= 2 on node 'le'"):
        program.module()(umbra.ones(3))


def test_an_operator_is_captured_by_its_arguments_alone():
    @umbra.library.custom_op("fidelity::scale", mutates_args=())
    def scale(x: umbra.Tensor, k: float = 2.0) -> umbra.Tensor:
        return x * k
    scale.register_fake(lambda x, k=2.0: umbra.empty_like(x))
    gm = fx.experimental.proxy_tensor.make_fx(scale)(umbra.ones(2))
    assert "def forward(self, arg0_1):\n    scale = torch.ops.fidelity.scale.default(arg0_1);" in gm.code
    with pytest.raises(ValueError, match="this API can only create non-negative sizes"):
        scale.register_fake(lambda x, k=2.0: x.new_empty(umbra.library.get_ctx().new_dynamic_size(min=-1)))
        fx.experimental.proxy_tensor.make_fx(scale, tracing_mode="symbolic")(umbra.ones(2))


# ---- named tuples and scripts in graphs ----

class Span(typing.NamedTuple):
    start: object
    end: object


def length_of(span, *, other=None):
    assert type(span) is Span and (other is None or type(other[0]) is Span)
    return span.end - span.start + (0 if other is None else other[0].start)


def test_a_named_tuple_in_the_arguments_of_a_node_stays_one():
    graph = fx.Graph()
    x = graph.placeholder("x")
    call = graph.call_function(length_of, (Span(x, 10),), {"other": [Span(x, 1)]})
    graph.output(call)
    gm = fx.GraphModule({}, graph)
    assert gm(umbra.tensor([4.0])).tolist() == [10.0]
    call.update_arg(0, Span(1, x))
    call.update_kwarg("other", [Span(100, x)])
    graph.eliminate_dead_code()
    gm.recompile()
    assert gm(umbra.tensor([4.0])).tolist() == [103.0]
    call.args, call.kwargs = (Span(x, x),), {}
    gm.recompile()
    graph.lint()
    assert gm(umbra.tensor([4.0])).tolist() == [0.0] and copy.deepcopy(gm)(umbra.tensor([4.0])).tolist() == [0.0]


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_methods_of_scripts_are_calls_of_a_symbolic_trace():
    class Inner(umbra.nn.Module):
        def forward(self, x):
            return umbra.relu(x) if bool(x.sum() > 0) else x

        @umbra.jit.export
        def times(self, x, n: int = 2):
            return x * n

    class Outer(umbra.nn.Module):
        def __init__(self):
            super().__init__()
            self.scripted = umbra.jit.script(Inner())

        def forward(self, x):
            return self.scripted(x) + self.scripted.times(x, n=3)
    module = Outer()
    gm = fx.symbolic_trace(module)
    assert [n.target for n in gm.graph.nodes if n.op == "call_method"] == ["forward", "times"]
    for x in (umbra.tensor([1.0, -2.0]), umbra.tensor([3.0, -1.0])):
        assert umbra.equal(gm(x), module(x))
    hooked = Inner()
    hooked.register_forward_hook(added_by_a_hook)
    module.scripted = umbra.jit.script(hooked)
    assert umbra.equal(fx.symbolic_trace(module)(umbra.ones(2)), module(umbra.ones(2)))


def added_by_a_hook(self, inputs: typing.Tuple[umbra.Tensor], result: umbra.Tensor) -> umbra.Tensor:
    return result + 100
