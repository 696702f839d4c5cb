"""Operators with effects: captures keep the order of their calls, by tokens that graphs hand on."""
import pytest

import umbra
from umbra import Tensor, ops
from umbra._functorch import config
from umbra._functorch.aot_autograd import aot_export_module, aot_function
from umbra._functorch.partitioners import default_partition, min_cut_rematerialization_partition
from umbra._higher_order_ops.effects import _EffectType, _get_effect, has_effects, with_effects
from umbra.fx.experimental.proxy_tensor import make_fx
from umbra.library import Library, _register_effectful_op, custom_op

calls = []


@custom_op("effects_test::note", mutates_args=())
def note(x: Tensor, name: str) -> Tensor:
    calls.append(name)
    return x.clone()


note.register_fake(lambda x, name: umbra.empty_like(x))
note.register_autograd(lambda ctx, grad: (ops.effects_test.note(grad * 2, ctx.name + " back"), None),
                       setup_context=lambda ctx, inputs, output: setattr(ctx, "name", inputs[1]))
note.register_effect(_EffectType.ORDERED)


@pytest.fixture(autouse=True)
def start_afresh():
    calls.clear()


def two_notes(x):
    y = note(x, "a")
    return y + note(y.sin(), "b")


def compiled(function, *args, **options):
    """What it gives, and the code of its graphs, backward included where one has run."""
    codes = []

    def compiler(graph, inputs):
        codes.append(graph.code.strip())
        return graph
    return aot_function(function, compiler, **options)(*args), codes


def test_calls_hand_on_a_token_that_comes_first():
    with umbra.no_grad():
        _, (code,) = compiled(two_notes, umbra.ones(3))
    assert code == """def forward(self, arg0_1, arg1_1):
    with_effects = torch.ops.higher_order.with_effects(arg0_1, torch.ops.effects_test.note.default, arg1_1, 'a');  arg0_1 = arg1_1 = None
    getitem = with_effects[0]
    getitem_1 = with_effects[1];  with_effects = None
    sin = torch.ops.aten.sin.default(getitem_1)
    with_effects_1 = torch.ops.higher_order.with_effects(getitem, torch.ops.effects_test.note.default, sin, 'b');  getitem = sin = None
    getitem_2 = with_effects_1[0]
    getitem_3 = with_effects_1[1];  with_effects_1 = None
    add = torch.ops.aten.add.Tensor(getitem_1, getitem_3);  getitem_1 = getitem_3 = None
    return (getitem_2, add)"""


@pytest.mark.parametrize("partition", [default_partition, min_cut_rematerialization_partition])
@pytest.mark.parametrize("unlift", [False, True])
def test_forward_and_backward_keep_their_orders(partition, unlift):
    x = umbra.ones(3, requires_grad=True)
    with config.patch(unlift_effect_tokens=unlift):
        result, codes = compiled(two_notes, x, partition_fn=partition)
        result.sum().backward()
    assert calls == ["a", "b", "b back", "a back"]
    assert umbra.allclose(result, x.detach() + x.detach().sin())
    assert umbra.allclose(x.grad, 2 * (1 + 2 * umbra.cos(umbra.ones(3))))
    assert ("tangents_token" in codes[1]) != unlift
    assert all(("_make_token" in code and "_sink_tokens" in code) == unlift for code in codes)


def test_a_call_whose_result_nobody_uses_stays():
    def function(x):
        note(x, "unused")
        return x * 2
    compiled(function, umbra.ones(3))
    assert calls == ["unused"]
    module = make_fx(function)(umbra.ones(3))
    module.graph.eliminate_dead_code()
    assert any(node.target is ops.effects_test.note.default for node in module.graph.nodes)


def test_an_effect_in_the_backward_alone():
    class Noted(umbra.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return ops.effects_test.note(grad.detach(), "only back")
    x = umbra.ones(3, requires_grad=True)
    result, codes = compiled(lambda x: Noted.apply(x * 2), x)
    result.sum().backward()
    assert calls == ["only back"] and x.grad.tolist() == [2, 2, 2]
    assert "primals_2" not in codes[0] and "tangents_token" in codes[1]


def test_written_inputs_and_views_beside_effects():
    x = umbra.ones(2, 3)

    def function(a):
        a.mul_(2)
        return note(a, "k"), a.t()
    (first, second), _ = compiled(function, x)
    assert x.tolist() == [[2, 2, 2], [2, 2, 2]] and first.tolist() == x.tolist() and second.data_ptr() == x.data_ptr()


def test_symbolic_sizes_beside_effects():
    function = aot_function(two_notes, lambda graph, inputs: graph, dynamic=True)
    for size in (3, 5, 1, 0):
        x = umbra.ones(size, requires_grad=True)
        function(x).sum().backward()
        assert umbra.allclose(x.grad, 2 * (1 + 2 * umbra.cos(umbra.ones(size))))


def test_checks_of_linear_algebra_are_effects():
    with umbra.no_grad():
        _, (code,) = compiled(umbra.linalg.inv, umbra.eye(2))
    assert "with_effects(arg0_1, torch.ops.aten._linalg_check_errors.default, getitem_1, 'linalg.inv', is_matrix = True)" in code
    inverse = aot_function(umbra.linalg.inv, lambda graph, inputs: graph)
    assert inverse(2 * umbra.eye(2)).tolist() == [[0.5, 0], [0, 0.5]]
    with pytest.raises(RuntimeError, match="singular"):
        inverse(umbra.zeros(2, 2))


def test_printing_is_an_effect(capfd):
    def function(x):
        ops.aten._print("hello")
        return x + 1
    run = aot_function(function, lambda graph, inputs: graph)
    run(umbra.ones(2))
    run(umbra.ones(2))
    assert capfd.readouterr().out == "hello\nhello\n"


def test_functionalize_leaves_calls_as_they_are():
    code = make_fx(umbra.func.functionalize(two_notes))(umbra.ones(3)).code
    assert "with_effects" not in code and code.count("effects_test.note") == 2


def test_a_branch_may_have_effects():
    def function(x):
        return umbra.cond(x.sum() > 0, lambda x: note(x, "yes"), lambda x: note(x, "no") * 2, (x,))
    run = aot_function(function, lambda graph, inputs: graph)
    run(umbra.ones(3))
    run(-umbra.ones(3))
    assert calls[-2:] == ["yes", "no"]


def test_with_effects_calls_its_operator():
    token, result = with_effects(umbra.tensor([]), ops.effects_test.note.default, umbra.ones(2), name="direct")
    assert token.shape == (0,) and result.tolist() == [1, 1] and calls == ["direct"]
    with pytest.raises(AssertionError, match="op must be HigherOrderOperator or OpOverload"):
        with_effects(umbra.tensor([]), 3, umbra.ones(2))
    with pytest.raises(AssertionError, match="aliasing"):
        with_effects(umbra.tensor([]), ops.aten.add_.Tensor, umbra.ones(2), umbra.ones(2))


def test_what_is_registered():
    assert has_effects(ops.effects_test.note.default) and not has_effects(ops.aten.sin.default) and not has_effects(ops.aten.add_.Tensor)
    library = Library("effects_test_own", "DEF")
    library.define("f(Tensor x) -> Tensor")
    _register_effectful_op("effects_test_own::f", _EffectType.ORDERED, lib=library)
    assert _get_effect("effects_test_own::f") is _EffectType.ORDERED
    library._destroy()
    assert _get_effect("effects_test_own::f") is None
    with pytest.raises(ValueError, match="unexpected type for op"):
        _register_effectful_op(3, _EffectType.ORDERED)


class Noting(umbra.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = umbra.nn.Parameter(umbra.ones(3))
        self.register_buffer("count", umbra.zeros(3))

    def forward(self, x):
        self.count.add_(1)
        return (note(x * self.weight, "a").sum(),)


def test_the_signature_of_a_decomposed_program_has_tokens():
    program = umbra.export.export(Noting(), (umbra.ones(3),))
    assert program.graph_signature.input_tokens == ()
    program = program.run_decompositions({})
    assert program.graph_module.code.strip() == """def forward(self, token, p_weight, b_count, x):
    add = torch.ops.aten.add.Tensor(b_count, 1);  b_count = None
    mul = torch.ops.aten.mul.Tensor(x, p_weight);  x = p_weight = None
    with_effects = torch.ops.higher_order.with_effects(token, torch.ops.effects_test.note.default, mul, 'a');  token = mul = None
    getitem = with_effects[0]
    getitem_1 = with_effects[1];  with_effects = None
    sum_1 = torch.ops.aten.sum.default(getitem_1);  getitem_1 = None
    return (getitem, add, sum_1)"""
    assert program.graph_signature.input_tokens == ("token",) and program.graph_signature.output_tokens == ("getitem",)
    module = program.module()
    calls.clear()
    assert module(umbra.ones(3))[0].item() == 3 and calls == ["a"] and module.count.tolist() == [1, 1, 1]
    assert "note_default = torch.ops.effects_test.note.default(mul, 'a')" in module.code


def test_a_program_with_tokens_is_saved_and_read(tmp_path):
    program = umbra.export.export(Noting(), (umbra.ones(3),)).run_decompositions({})
    umbra.export.save(program, tmp_path / "noting.pt2")
    again = umbra.export.load(tmp_path / "noting.pt2")
    assert again.graph_module.code == program.graph_module.code
    assert str(again.graph_signature) == str(program.graph_signature)
    assert again.module()(umbra.ones(3))[0].item() == 3


def test_an_exported_graph_of_aot_has_tokens():
    module, signature = aot_export_module(Noting(), (umbra.ones(3),), trace_joint=False)
    assert signature.input_tokens == ["arg0_1"] and signature.output_tokens == ["getitem"]
    assert signature.inputs_to_parameters == {"arg1_1": "weight"} and signature.inputs_to_buffers == {"arg2_1": "count"}
    assert signature.user_inputs == ["arg3_1"] and signature.buffers_to_mutate == {"add": "count"} and signature.user_outputs == ["sum_1"]


def test_graphs_with_tokens_are_kept_on_disk(tmp_path):
    before = umbra._C._cache_directory()
    umbra._C._set_cache_directory(str(tmp_path))
    try:
        for _ in range(2):
            counts = umbra._C._disk_cache_info()
            x = (2 * umbra.eye(2)).requires_grad_()
            aot_function(lambda a: umbra.linalg.inv(a).sum(), lambda graph, inputs: graph)(x).backward()
            assert umbra.allclose(x.grad, umbra.full((2, 2), -0.25))
        assert umbra._C._disk_cache_info()["hits"] == counts["hits"] + 1
    finally:
        umbra._C._set_cache_directory(before)


class Pair(Tensor):
    """Two tensors, each computed with by itself."""

    @staticmethod
    def __new__(cls, first, second):
        return Tensor._make_wrapper_subclass(cls, first.shape, strides=first.stride(), dtype=first.dtype, device=first.device,
                                             requires_grad=first.requires_grad)

    def __init__(self, first, second):
        self.first, self.second = first, second

    def __tensor_flatten__(self):
        return ["first", "second"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return Pair(inner["first"], inner["second"])

    @classmethod
    def __torch_dispatch__(cls, function, types, args, kwargs=None):
        pytree = umbra.utils._pytree
        both = [pytree.tree_flatten(function(*pytree.tree_map_only(Pair, lambda t, part=part: getattr(t, part), args),
                                             **pytree.tree_map_only(Pair, lambda t, part=part: getattr(t, part), kwargs or {})))
                for part in ("first", "second")]
        return pytree.tree_unflatten([Pair(a, b) if isinstance(a, Tensor) else a for a, b in zip(both[0][0], both[1][0])], both[0][1])


def test_tensor_classes_beside_effects():
    def function(t):
        note(t, "unused")
        return note(note(t, "a").sin(), "b") * 3

    def pair():
        return Pair(umbra.ones(3), umbra.full((3,), 2.0)).requires_grad_()
    eager, given = pair(), pair()
    function(eager).sum().backward()
    expected = list(calls)
    calls.clear()
    aot_function(function, lambda graph, inputs: graph)(given).sum().backward()
    assert calls == expected and umbra.equal(given.grad.second, eager.grad.second)
    matrix = Pair(umbra.eye(2), umbra.eye(2) * 2).requires_grad_()
    aot_function(lambda t: umbra.linalg.inv(t).sum(), lambda graph, inputs: graph)(matrix).backward()
    assert umbra.allclose(matrix.grad.second, umbra.full((2, 2), -0.25))
