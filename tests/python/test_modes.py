"""Dispatch modes, tensor classes with __torch_dispatch__, function modes, custom operators."""
import pytest

import umbra
from call_log import CallLog
from umbra import Tensor
from umbra._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from umbra.fx.experimental.proxy_tensor import make_fx
from umbra.overrides import TorchFunctionMode
from umbra.utils import _python_dispatch as python_dispatch
from umbra.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from umbra.utils._pytree import tree_map_only


def test_mode_sees_what_composites_are_made_of():
    x, w = umbra.ones(2, 3), umbra.ones(4, 3)
    with CallLog() as log:
        umbra.nn.functional.linear(x, w) if hasattr(umbra.nn, "functional") else umbra.linear(x, w)
    assert "aten.mm.default" in log.seen and "aten.linear.default" not in log.seen


def test_modes_nest_and_factories_say_where():
    with CallLog() as outer, CallLog() as inner:
        umbra.zeros(2)
    assert inner.seen == outer.seen == ["aten.zeros.default"]

    class Arguments(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.kwargs = kwargs
            return func(*args, **kwargs)
    with Arguments() as mode:
        umbra.zeros(2)
    assert mode.kwargs == {"device": umbra.device("cpu"), "pin_memory": False}


def test_mode_is_left_when_an_exception_passes():
    class Refuse(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise KeyError("no")
    with pytest.raises(KeyError):
        with Refuse():
            umbra.zeros(2)
    assert umbra._C._dispatch_modes() == []


class Twice(Tensor):
    """A wrapper around two tensors."""

    @staticmethod
    def __new__(cls, a, b):
        return Tensor._make_wrapper_subclass(cls, a.size(), strides=a.stride(), dtype=a.dtype, device=a.device)

    def __init__(self, a, b):
        self.a, self.b = a, b

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def call(name):
            inner = tree_map_only(Twice, lambda t: getattr(t, name), args)
            return func(*inner, **tree_map_only(Twice, lambda t: getattr(t, name), kwargs or {}))
        a, b = call("a"), call("b")
        out = Twice(a, b) if isinstance(a, Tensor) else a
        return return_and_correct_aliasing(func, args, kwargs, out)


def test_wrapper_class():
    t = Twice(umbra.ones(2), umbra.zeros(2))
    u = t * 2 + 1
    assert type(u) is Twice and u.a.tolist() == [3, 3] and u.b.tolist() == [1, 1]
    assert t.add_(5) is t and t.b.tolist() == [5, 5]


def test_wrapper_class_is_differentiated_outside():
    t = Twice(umbra.ones(2), umbra.zeros(2)).requires_grad_()
    (t * 3).sum().backward()
    assert type(t.grad) is Twice and t.grad.a.tolist() == [3, 3]


def test_function_mode():
    seen = []

    class Names(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))
    with Names():
        umbra.ones(2).add(1)
    assert seen == ["ones", "add"]


def test_function_mode_hears_of_functions_as_of_torchs():
    """What has no default comes by position, the rest by name, whatever the caller wrote."""
    seen = []

    class Calls(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((func.__name__, len(args), dict(kwargs or {})))
            return func(*args, **(kwargs or {}))
    x = umbra.ones(2, 3)
    with Calls():
        umbra.nn.functional.relu(x, True)
        umbra.nn.functional.softmax(x, dim=1)
        umbra.nn.functional.layer_norm(x, (3,), eps=0.5)
    assert seen == [("relu", 1, {"inplace": True}), ("softmax", 1, {"dim": 1, "_stacklevel": 3, "dtype": None}),
                    ("layer_norm", 2, {"weight": None, "bias": None, "eps": 0.5})]


def test_device_context():
    with umbra.device("meta"):
        assert umbra.ones(2).device.type == "meta"
    assert umbra.ones(2).device.type == "cpu"


# ---- custom operators ----

def test_library():
    library = umbra.library.Library("test_modes", "DEF")
    library.define("twice(Tensor x, int n=2) -> Tensor")
    library.impl("twice", lambda x, n=2: x * n, "CPU")
    library._register_fake("twice", lambda x, n=2: umbra.empty_like(x))
    op = umbra.ops.test_modes.twice
    assert op(umbra.ones(2)).tolist() == [2, 2] and op.default(umbra.ones(1), 3).item() == 3
    with umbra._subclasses.fake_tensor.FakeTensorMode() as mode:
        assert op(mode.from_tensor(umbra.ones(2, 5))).shape == (2, 5)


def test_custom_op_with_everything():
    @umbra.library.custom_op("test_modes::cube", mutates_args=())
    def cube(x: Tensor, scale: float = 1.0) -> Tensor:
        return x * x * x * scale

    @cube.register_fake
    def _(x, scale=1.0):
        return umbra.empty_like(x)

    def setup_context(ctx, inputs, output):
        x, ctx.scale = inputs
        ctx.save_for_backward(x)

    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return grad * 3 * x * x * ctx.scale, None
    cube.register_autograd(backward, setup_context=setup_context)
    assert str(umbra.ops.test_modes.cube.default._schema) == "test_modes::cube(Tensor x, float scale=1.) -> Tensor"
    x = umbra.tensor([2.], requires_grad=True)
    y = cube(x, 2.0)
    assert y.item() == 16
    y.backward()
    assert x.grad.item() == 24


def test_infer_schema():
    def f(x: Tensor, sizes: list[int], y: Tensor | None = None, *, flag: bool = False) -> tuple[Tensor, Tensor]:
        pass
    assert umbra.library.infer_schema(f, mutates_args=("x",)) == (
        "(Tensor(a0!) x, SymInt[] sizes, Tensor? y=None, *, bool flag=False) -> (Tensor, Tensor)")


class Swap(TorchDispatchMode):
    """Multiplies where the program adds."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is umbra.ops.aten.add.Tensor:
            return umbra.ops.aten.mul.Tensor(*args)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_a_wrapper_inside_a_captured_function_comes_apart(mode):
    from umbra.fx.experimental.proxy_tensor import make_fx

    def f(x):
        pair = Twice(x, x + 1) * 3
        return pair.a + pair.b
    graph = make_fx(f, tracing_mode=mode)(umbra.ones(2))
    assert graph(umbra.tensor([10., 20.])).tolist() == f(umbra.tensor([10., 20.])).tolist() == [63., 123.]


def test_a_mode_inside_a_captured_function_is_recorded_as_what_it_does():
    from umbra._functorch.aot_autograd import aot_function
    from umbra.fx.experimental.proxy_tensor import make_fx

    def f(x, y):
        with Swap():
            return x + y
    x, y = umbra.tensor([3.]), umbra.tensor([5.])
    assert make_fx(f)(x, y)(umbra.tensor([2.]), umbra.tensor([10.])).item() == 20
    assert aot_function(f, lambda graph, _: graph)(x, y).item() == 15


def test_a_mode_that_passes_a_call_on_leaves_it_to_the_classes_with_the_mode_on():
    class PassPairs(TorchDispatchMode):
        seen = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if Twice in types:
                return NotImplemented
            self.seen.append(str(func))
            return func(*args, **(kwargs or {}))
    pair = Twice(umbra.ones(1), umbra.ones(1))
    with PassPairs() as mode:
        pair.sin()
    assert mode.seen == ["aten.sin.default", "aten.sin.default"]


def test_export_refuses_a_mode_that_changes_what_it_records_and_lets_one_look():
    class Model(umbra.nn.Module):
        def __init__(self, mode):
            super().__init__()
            self.mode = mode

        def forward(self, x, w):
            with self.mode:
                return umbra.nn.functional.linear(x, w) + x
    x, w = umbra.ones(2, 2), umbra.ones(2, 2)
    log = CallLog()
    program = umbra.export.export(Model(log), (x, w))
    assert "aten.mm.default" in log.seen
    assert umbra.equal(program.module()(x * 3, w), umbra.nn.functional.linear(x * 3, w) + x * 3)
    with pytest.raises(RuntimeError, match="changes what aten::add"):
        umbra.export.export(Model(Swap()), (x, w))


def test_export_knows_a_mode_that_changes_a_number_from_one_that_looks():
    class Other(TorchDispatchMode):
        def __init__(self, change):
            super().__init__()
            self.change = change

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*[a if isinstance(a, umbra.Tensor) else self.change(a) for a in args], **(kwargs or {}))

    class Model(umbra.nn.Module):
        def __init__(self, mode, function):
            super().__init__()
            self.mode, self.function = mode, function

        def forward(self, x):
            with self.mode:
                return self.function(x)
    for function in (lambda x: x.clone().add_(1), lambda x: x * 2.5, lambda x: x.sum(1)):
        program = umbra.export.export(Model(Other(lambda a: a), function), (umbra.ones(2, 2),))
        assert umbra.equal(program.module()(umbra.full((2, 2), 3.)), function(umbra.full((2, 2), 3.)))
        with pytest.raises(RuntimeError, match="a dispatch mode inside the captured function changes what aten::"):
            umbra.export.export(Model(Other(lambda a: [0] if isinstance(a, list) else a + 1), function), (umbra.ones(2, 2),))


def test_a_checkpoint_of_a_layer_that_counts_is_exported():
    class Model(umbra.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = umbra.nn.BatchNorm1d(3)

        def forward(self, x):
            return umbra.utils.checkpoint.checkpoint(self.norm, x, use_reentrant=False)
    x, model = umbra.randn(4, 3), Model()
    module = umbra.export.export(model, (x,)).module()
    assert umbra.allclose(module(x), model(x)) and model.norm.num_batches_tracked == 2  # of one buffer


def test_a_result_is_what_the_schema_says():
    class Wrong(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return 42
    x = umbra.ones(1)
    with Wrong(), pytest.raises(RuntimeError, match="Unable to cast 42 to Tensor"):
        x.sin()


def test_function_modes_see_functions_once_and_tensor():
    class Names(TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.seen.append(func.__name__)
            return func(*args, **(kwargs or {}))
    with Names() as mode:
        x = umbra.tensor([1., 2.])
        umbra.nn.functional.softmax(x, 0)
        2 - x
    assert mode.seen == ["tensor", "softmax", "__rsub__"]


def test_a_wrapper_of_fakes_is_a_wrapper():
    from umbra._subclasses.fake_tensor import FakeTensorMode

    class Both(Twice):
        def __tensor_flatten__(self):
            return ["a", "b"], None

        @staticmethod
        def __tensor_unflatten__(inner, meta, size, stride):
            return Both(inner["a"], inner["b"])
    mode = FakeTensorMode()
    x = mode.from_tensor(Both(umbra.ones(2, 3), umbra.ones(2, 3)))
    assert type(x) is Both and type(x.a).__name__ == "FakeTensor"
    with pytest.raises(TypeError, match="must define __torch_dispatch__"):
        Tensor._make_wrapper_subclass(Tensor, (2,))


def test_a_leaf_takes_its_gradient_before_the_eyes_of_a_mode():
    x = umbra.ones(2, 3, requires_grad=True)
    y = x.sin().sum()
    with CallLog() as mode:
        y.backward()
    assert mode.seen[-2:] == ["aten.mul.Tensor", "aten.detach.default"]
    x = umbra.ones(2, 3, requires_grad=True)
    y = x.sin().sum()
    with CallLog() as mode:
        y.backward(create_graph=True)
    assert mode.seen[-2:] == ["aten.new_empty_strided.default", "aten.copy_.default"]
    assert x.grad.requires_grad


def test_a_leaf_takes_a_view_that_is_all_of_its_base_without_a_copy():
    layer, x = umbra.nn.Linear(4, 3), umbra.ones(5, 4)
    with CallLog() as mode:
        layer(x).sum().backward()
    assert mode.seen[-4:] == ["aten.view.default", "aten.detach.default", "aten.t.default", "aten.detach.default"]
    assert not layer.weight.grad._is_view() and layer.weight.grad.is_contiguous()
    # Of a part, and of what others hold, a copy: a write to one does not reach the other.
    w, g = umbra.ones(2, 3, requires_grad=True), umbra.ones(6)
    w.view(6).backward(g)
    w.grad.add_(1)
    assert g.tolist() == [1.0] * 6
    a, b = umbra.ones(2, requires_grad=True), umbra.ones(3, requires_grad=True)
    (umbra.cat([a, b]) * 2).sum().backward()
    assert a.grad.untyped_storage().nbytes() == 8 and b.grad.untyped_storage().nbytes() == 12


def test_a_backward_shows_modes_the_outputs_that_it_kept():
    class Logs(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))
    for function, formula in ((umbra.exp, "aten.mul.Tensor"), (umbra.tanh, "aten.tanh_backward.default")):
        seen = []
        x = umbra.ones(2, requires_grad=True)
        result = function(x).sum()
        with Logs():
            result.backward()
        assert seen == ["aten.ones_like.default", "aten.expand.default", "aten.detach.default", formula, "aten.detach.default"]


def test_a_handler_may_call_on_and_hear_of_what_the_function_calls():
    from umbra import overrides
    seen = []

    def scaled(a, b):
        if overrides.has_torch_function((a, b)):
            return overrides.handle_torch_function(scaled, (a, b), a, b)
        return a * b + 1

    class Hears(overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function.__name__)
            with self:
                return overrides.redispatch_function(function, types, args, kwargs)
    x = umbra.ones(1)
    with Hears():
        assert scaled(x, x).item() == 2
    assert seen[:3] == ["scaled", "mul", "add"]


def test_modes_that_decline_a_function():
    class Declines(umbra.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            return NotImplemented

    with Declines(), pytest.raises(TypeError, match="all __torch_function__ handlers returned NotImplemented"):
        umbra.ones(1)


def test_parameters_are_made_unseen():
    from umbra.utils._python_dispatch import TorchDispatchMode
    seen = []

    class Watches(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    with Watches():
        umbra.nn.init.zeros_(umbra.nn.Parameter(umbra.empty(2)))
    assert seen == ["aten.empty.memory_format", "aten.zero_.default"]


def test_a_mode_whose_handler_is_a_class_method_is_refused():
    class OfClass(TorchDispatchMode):
        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))
    with pytest.raises(RuntimeError, match="please make it a plain method"), OfClass():
        umbra.ones(1)


def test_whether_a_mode_is_entered():
    from umbra.utils._python_dispatch import is_in_torch_dispatch_mode

    class Machinery(TorchDispatchMode):
        @classmethod
        def is_infra_mode(cls):
            return True
    assert not is_in_torch_dispatch_mode()
    with Machinery():
        assert is_in_torch_dispatch_mode() and not is_in_torch_dispatch_mode(include_infra_modes=False)
        with TorchDispatchMode():
            assert is_in_torch_dispatch_mode(include_infra_modes=False)


def test_a_mode_compares_what_operators_do_with_their_schemas():
    from umbra._subclasses.schema_check_mode import Mutation, SchemaCheckMode
    with umbra.library._scoped_library("checked", "DEF") as library:
        for name, function in (("writes", lambda x: x.add_(1).clone()), ("views", lambda x: x.view(-1)), ("gives", lambda x: x), ("copies", lambda x: x.clone())):
            library.define(f"{name}(Tensor x) -> Tensor")
            library.impl(name, function, "CPU")
        x = umbra.ones(2)
        with SchemaCheckMode() as mode:
            for name, error in (("writes", "not defined as mutable but was mutated"), ("views", "not defined to alias output"), ("gives", "not defined to alias")):
                with pytest.raises(RuntimeError, match=error):
                    getattr(umbra.ops.checked, name)(x)
            mode.reset_cache()
            umbra.ops.checked.copies(x).add_(1).view(2, 1).sum()
    assert mode.ops == ["checked::copies", "aten::add_", "aten::view", "aten::sum"] and mode.mutated == [Mutation("aten::add_", "input")]
    assert [one.op_name for one in mode.aliasing] == ["aten::add_", "aten::view"]


def test_a_guard_below_autograd_holds_from_when_it_is_made_until_it_goes():
    x = umbra.ones(2, requires_grad=True)
    guard = umbra._C._AutoDispatchBelowAutograd()
    inside = (x * 2).requires_grad
    del guard
    assert (inside, (x * 2).requires_grad) == (False, True)


def test_a_guard_that_a_with_statement_ended_holds_no_more():
    x = umbra.ones(2, requires_grad=True)
    guard = umbra._C._AutoDispatchBelowAutograd()
    with guard:
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


def test_a_guard_against_handlers_holds_from_when_it_is_made():
    with CallLog() as log:
        guard = umbra._C._DisableTorchDispatch()
        umbra.ones(2)
        del guard
        umbra.zeros(2)
    assert log.seen == ["aten.zeros.default"]


# ---- which modes are entered ----

class Passes(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def entered():
    top = python_dispatch._get_current_dispatch_mode()
    return ([type(mode).__name__ for mode in python_dispatch._get_current_dispatch_mode_stack()], type(top).__name__,
            python_dispatch.is_in_torch_dispatch_mode(), python_dispatch.is_in_torch_dispatch_mode(include_infra_modes=False))


def test_stand_ins_and_captures_are_modes_below_those_of_users():
    assert entered() == ([], "NoneType", False, False)
    with FakeTensorMode() as fake:
        assert entered() == (["FakeTensorMode"], "FakeTensorMode", True, False)
        assert python_dispatch._get_current_dispatch_mode() is fake
    with Passes(), FakeTensorMode():
        assert entered() == (["FakeTensorMode", "Passes"], "Passes", True, True)
    seen = []
    for mode in ("real", "symbolic"):
        make_fx(lambda x: (seen.append(entered()), x + 1)[1], tracing_mode=mode)(umbra.ones(2))
    make_fx(lambda x: (seen.append(entered()), x + 1)[1], pre_dispatch=True)(umbra.ones(2))
    assert seen == [(["ProxyTorchDispatchMode"], "ProxyTorchDispatchMode", True, False),
                    (["FakeTensorMode", "ProxyTorchDispatchMode"], "ProxyTorchDispatchMode", True, False), ([], "NoneType", True, False)]


def test_the_mode_on_top_is_left_for_a_while():
    with FakeTensorMode() as fake:
        with python_dispatch._pop_mode_temporarily() as left:
            assert left is fake and entered() == ([], "NoneType", False, False) and type(umbra.ones(2)) is Tensor
        with Passes(), python_dispatch._disable_current_modes() as modes:
            assert [type(mode).__name__ for mode in modes] == ["Passes", "FakeTensorMode"] and type(umbra.ones(2)) is Tensor
        assert isinstance(umbra.ones(2), FakeTensor)
    with pytest.raises(AssertionError):
        with python_dispatch._pop_mode_temporarily():
            pass
