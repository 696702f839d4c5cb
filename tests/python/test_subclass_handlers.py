"""Handlers of tensor subclasses: what they call, what they are asked, and who is offered a call."""
import pytest

import umbra
from umbra.utils._pytree import tree_map


class Inner(umbra.Tensor):
    """A wrapper that differentiates what is inside."""

    @staticmethod
    def __new__(cls, inner):
        made = umbra.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        with umbra.overrides.enable_reentrant_dispatch():
            return cls(func(*tree_map(lambda leaf: leaf.inner if isinstance(leaf, Inner) else leaf, args), **(kwargs or {})))


def test_a_handler_may_go_back_above_autograd():
    x = umbra.ones(2, requires_grad=True)
    y = Inner(x) * 3 + 1
    assert not y.requires_grad and y.inner.requires_grad
    y.inner.sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_a_handler_below_autograd_stays_there():
    class Plain_(Inner):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return cls(func(*tree_map(lambda leaf: leaf.inner if isinstance(leaf, Inner) else leaf, args), **(kwargs or {})))
    assert not (Plain_(umbra.ones(2, requires_grad=True)) * 3).inner.requires_grad


def test_a_handler_that_is_a_plain_method_is_that_of_the_object():
    class Own(Inner):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return self.inner * 10
    assert Own(umbra.ones(2)).neg().tolist() == [10, 10]


def test_a_handler_may_hand_on_its_arguments_in_a_list():
    class Listed(umbra.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return super().__torch_dispatch__(func, types, list(args), kwargs)
    assert Listed(umbra.ones(2)).neg().tolist() == [-1, -1]


asked = []


class Asked(umbra.Tensor):
    """A wrapper of which only its handler knows how it looks."""

    @staticmethod
    def __new__(cls, inner, **policy):
        made = umbra.Tensor._make_wrapper_subclass(cls, (1,), dtype=inner.dtype, **policy)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        asked.append(str(func))
        if func is umbra.ops.prim.device.default:
            return umbra.device("meta")
        if func is umbra.ops.prim.layout.default:
            return umbra.sparse_coo
        return func(*tree_map(lambda leaf: leaf.inner if isinstance(leaf, Asked) else leaf, args), **(kwargs or {}))


def test_a_handler_says_which_sizes_and_strides_its_tensor_has():
    x = Asked(umbra.arange(6.).reshape(2, 3).t(), dispatch_sizes_strides_policy="sizes")
    asked.clear()
    assert (x.shape, x.size(0), x.dim(), x.numel(), x.stride(), x.is_contiguous()) == ((3, 2), 3, 2, 6, (1, 3), False)
    assert asked == [f"aten.{name}.default" for name in ("sym_size", "dim", "sym_size", "dim", "sym_numel", "sym_stride", "is_contiguous")]
    assert (x @ umbra.ones(2)).tolist() == [3, 5, 7] and len(x) == 3  # a product of a matrix: the library goes by what the handler says
    strides = Asked(umbra.ones(2, 2), dispatch_sizes_strides_policy="strides")
    assert strides.shape == (1,) and strides.stride() == (2, 1)


def test_a_handler_says_where_and_how_its_tensor_lies():
    x = Asked(umbra.ones(2), dispatch_device=True, dispatch_layout=True)
    assert x.device.type == "meta" and x.layout is umbra.sparse_coo and x.shape == (1,)
    assert Asked(umbra.ones(2)).device.type == "cpu"
    with pytest.raises(ValueError, match="Unknown sizes_strides_policy: all"):
        Asked(umbra.ones(2), dispatch_sizes_strides_policy="all")


@pytest.mark.parametrize("convert", [lambda t, like: t.type_as(like), lambda t, like: t.to(like), lambda t, like: t.to(tensor=like), lambda t, like: t.type_as(other=like)])
def test_conversions_go_to_the_device_that_a_handler_says(convert):
    converted = convert(umbra.ones(2, dtype=umbra.float64), Asked(umbra.ones(2), dispatch_device=True))
    assert type(converted) is umbra.Tensor and converted.device.type == "meta" and converted.dtype == umbra.float32
    assert convert(umbra.ones(2, dtype=umbra.float64), Asked(umbra.ones(2))).device.type == "cpu"


@pytest.mark.parametrize("function, operator", [(umbra.sin, "cos"), (umbra.sin, "ones_like"), (lambda x: (x.view(2, 2) @ x.view(2, 2)), "t.default")])
def test_a_handler_that_gives_nothing_in_a_backward_is_a_runtime_error(function, operator):
    class Nothing(umbra.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return None if operator in str(func) else func(*args, **(kwargs or {}))
    x = umbra.arange(4.0).requires_grad_()
    y = function(x).sum()
    with pytest.raises(RuntimeError, match="None"), Nothing():
        y.backward()
    with pytest.raises(TypeError):
        umbra.conj(None)


def test_a_handler_that_does_not_know_a_size_is_an_error_and_none_is_the_tensors_own():
    class Declines(Asked):
        answer = NotImplemented

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return cls.answer
    x = Declines(umbra.ones(2, 3), dispatch_sizes_strides_policy="sizes")
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'torch.ops.aten.sym_size'"):
        x.size()
    Declines.answer = None
    assert x.size() == (1,) and x.stride() == (1,) and x.dim() == 1


def test_a_subclass_keeps_its_handler_when_its_data_are_set():
    seen = []

    class Hears(umbra.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return super().__torch_dispatch__(func, types, args, kwargs)
    x = Hears(umbra.zeros(2))
    x.data = umbra.ones(3)
    seen.clear()
    x + 1
    assert type(x) is Hears and seen == ["aten.add.Tensor"]


def test_a_list_of_indices_is_offered_to_a_class_among_them():
    class Takes(umbra.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "taken"
    assert umbra.rand(3)[[Takes(), 0]] == "taken"


def test_what_kind_of_device_it_is_on_follows_from_the_handlers_answer():
    class Elsewhere(umbra.Tensor):
        @staticmethod
        def __new__(cls, sizes):
            return umbra.Tensor._make_wrapper_subclass(cls, sizes, dispatch_device=True)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return umbra.device("meta") if func is umbra.ops.prim.device.default else NotImplemented
    x = Elsewhere((2,))
    assert (x.is_meta, x.is_cpu) == (True, False)


def test_a_list_or_tuple_of_a_users_class_may_have_a_handler():
    class Pair(tuple):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return function.__name__, types

    class Row(list):
        __torch_function__ = Pair.__torch_function__

    image = umbra.ones(1, 1, 3, 3)
    for value in (Pair([image]), Row([image])):
        kinds = (type(value),)
        assert umbra.nn.functional.conv2d(value, image) == ("conv2d", kinds) and umbra.add(image, value) == ("add", kinds)
        assert umbra.cat([image, value]) == ("cat", kinds) and umbra.nn.functional.relu(value) == ("relu", kinds)
        assert umbra.overrides.has_torch_function((value,))
