"""What handlers of users' tensor classes may give, how their tensors are made, and under which names they hear of operators."""
import contextlib
import inspect

import pytest
import umbra
from umbra import Tensor


def _class(answer):
    class Answering(Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return answer
    return Tensor._make_subclass(Answering, umbra.ones(2))


def _telling():
    """A class of tensors, and the list of the functions that its handler hears of."""
    heard = []

    class Told(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            heard.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})
    return Told, heard


class Wrapper(Tensor):
    @staticmethod
    def __new__(cls, inner):
        return Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def plain(value):
            return value.inner if isinstance(value, Wrapper) else value
        result = func(*map(plain, args), **{name: plain(value) for name, value in (kwargs or {}).items()})
        return Wrapper(result) if isinstance(result, Tensor) else result


@pytest.mark.parametrize("answer", ["arf", None])
@pytest.mark.parametrize("call", [lambda t: umbra.max(t, 0), lambda t: t.unbind()])
def test_what_is_no_result_of_an_operator_is_refused(answer, call):
    with pytest.raises(RuntimeError, match="Unable to cast|needs a tuple"):
        call(_class(answer))


def test_one_tensor_is_not_several_results():
    with pytest.raises(RuntimeError, match="aten::max.dim has several results and needs a tuple of them, got Tensor"):
        umbra.max(_class(umbra.ones(2, 2)), 0)


def test_a_call_into_an_output_gives_back_that_output():
    out = umbra.zeros(2)
    assert umbra.add(umbra.ones(2), Wrapper(umbra.ones(2)), out=out) is out and out.tolist() == [2, 2]


def test_a_list_of_a_tensor_with_a_handler_is_refused():
    for tensor in (_class(None), Wrapper(umbra.ones(2))):
        with pytest.raises(RuntimeError, match=f"tolist\\(\\) is not supported for tensor subclasses, got {type(tensor).__name__}"):
            tensor.tolist()


@pytest.mark.parametrize("arguments, error, text", [
    (dict(size=(2,), dtype="a"), TypeError, "argument 'dtype' must be torch.dtype, not str"),
    (dict(size=(-1,)), RuntimeError, "negative dimension -1"),
    (dict(size=(2, 2), strides=(1,)), RuntimeError, r"dimensionality of sizes \(2\) must match dimensionality of strides \(1\)"),
    (dict(size=(2,), dispatch_sizes_strides_policy="shapes"), ValueError, "Unknown sizes_strides_policy: shapes")])
def test_a_wrapper_is_not_made_of_what_is_no_geometry(arguments, error, text):
    with pytest.raises(error, match=text):
        Tensor._make_wrapper_subclass(Wrapper, **arguments)


def test_a_tensor_of_one_class_does_not_become_one_of_another():
    class Other(Tensor):
        pass
    with pytest.raises(RuntimeError, match="Creating a new Tensor subclass Other but .* a python object of type Wrapper which is not a subclass"):
        Wrapper(umbra.ones(2)).as_subclass(Other)


def test_handlers_find_powers_and_storages_under_their_names():
    Told, heard = _telling()
    x = umbra.ones(2).as_subclass(Told)
    y = x ** 2
    y = umbra.ones(2) ** x
    y **= 2
    x.storage()
    assert heard[:4] == [Tensor.__pow__, Tensor.__pow__, Tensor.__ipow__, Tensor.storage]
    assert heard[0] is Tensor.__pow__


def test_names_of_functions_that_initialise_and_of_reads_that_are_not_wrapped():
    from umbra.overrides import get_default_nowrap_functions, resolve_name
    assert resolve_name(umbra.nn.init.ones_) == "torch.nn.init.ones_"
    assert Tensor.grad.__get__ in get_default_nowrap_functions() and Tensor.data.__get__ not in get_default_nowrap_functions()


def test_a_cotangent_is_a_tensor():
    _, pull = umbra.func.vjp(lambda x: (x, x * 2), umbra.ones(2))
    with pytest.raises(TypeError, match="gradients can be either Tensors or None, but got int"):
        pull((umbra.ones(2), 3))


def test_functions_that_handlers_hear_of():
    from umbra.overrides import get_ignored_functions, get_overridable_functions, get_testing_overrides
    by_place, ignored, doubles = get_overridable_functions(), get_ignored_functions(), get_testing_overrides()
    assert umbra.add in by_place[umbra] and umbra.einsum in by_place[umbra] and umbra.zeros not in by_place[umbra]
    assert Tensor.add in by_place[Tensor] and umbra.nn.functional.relu in by_place[umbra.nn.functional]
    assert by_place[Tensor.shape] == [Tensor.shape.__get__]
    assert {umbra.zeros, umbra.tensor, umbra.from_numpy, umbra.is_tensor, umbra.rand_like, Tensor.new_zeros} <= ignored
    assert not ignored & {function for functions in by_place.values() for function in functions}
    assert doubles[umbra.add](1, 2, out=3) == -1 and doubles[umbra.nn.functional.max_pool2d](1, kernel_size=2) == -1 and doubles[Tensor.dim](1) == -1
    with pytest.raises(TypeError):
        doubles[umbra.matmul](1)


def test_every_function_that_handlers_hear_of_tells_them():
    from umbra.overrides import get_testing_overrides, is_tensor_method_or_property

    class Like:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            heard.append(func)
            return -1
    quiet = []
    for function, double in get_testing_overrides().items():
        parameters = inspect.signature(double).parameters.values()
        if is_tensor_method_or_property(function) or any(p.kind is p.VAR_POSITIONAL for p in parameters):
            continue  # methods are offered by their own classes' tensors
        heard = []
        with contextlib.suppress(TypeError, ValueError):  # numbers are asked for in some places
            function(*(Like() for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD))
            if heard != [function]:
                quiet.append(function)
    assert not quiet


class Noting(umbra.overrides.TorchFunctionMode):
    def __init__(self):
        self.types = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.types.append(types)
        return func(*args, **(kwargs or {}))


def test_the_classes_that_modes_are_told_of():
    x, weight = umbra.ones(2), umbra.nn.Parameter(umbra.ones(2))
    with Noting() as mode:
        x.shape, weight.dtype, umbra.split(x, 1), x.add(1), umbra.nn.functional.relu(x)
    assert mode.types == [(Tensor,), (umbra.nn.Parameter,), (Tensor,), (), (Tensor,)]
    told = x.as_subclass(type("Told", (Tensor,), {}))
    with Noting() as mode:
        umbra.einsum("i,i->", x, told)
    assert mode.types[0] == (type(told), Tensor)
    with Noting() as mode, umbra._C.DisableTorchFunctionSubclass():
        umbra.einsum("i,i->", x, told)
    assert mode.types[0] == ()


def test_signs_of_tensors_are_methods():
    assert Tensor.__neg__ is Tensor.neg and Tensor.__pos__ is Tensor.positive and Tensor.__abs__ is Tensor.abs
    x = umbra.tensor([1.0, -2.0])
    Told, heard = _telling()
    told = x.as_subclass(Told)
    -told, +told, abs(told), told.where(x > 0, told), told.xpu
    assert heard[:4] == [Tensor.neg, Tensor.positive, Tensor.abs, Tensor.where]
    assert (-x).tolist() == [-1, 2] and abs(x).tolist() == [1, 2]


def test_a_handler_that_is_a_plain_method_is_warned_of():
    class Plain:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func
    with pytest.warns(DeprecationWarning, match="as a plain method is deprecated"):
        assert umbra.nn.functional.relu(Plain()) is umbra.nn.functional.relu


def test_a_list_of_a_users_class_hears_of_functions_written_in_python():
    class Listed(list):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func, types
    listed = Listed([umbra.ones(2)])
    assert umbra.split(listed, 1) == (umbra.split, (Listed,)) and umbra.nn.functional.relu(listed) == (umbra.nn.functional.relu, (Listed,))
