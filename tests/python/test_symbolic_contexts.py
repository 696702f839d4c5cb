"""Contexts say what becomes of a tensor's sizes and strides when it is converted with symbols."""
import pytest

import umbra
from umbra._subclasses.fake_tensor import FakeTensorMode
from umbra.fx.experimental.symbolic_shapes import (
    DimDynamic, RelaxedUnspecConstraint, ShapeEnv, StatefulSymbolicContext, StatelessSymbolicContext, SubclassSymbolicContext, free_symbols)

DYNAMIC, DUCK, STATIC, INFER = DimDynamic.DYNAMIC, DimDynamic.DUCK, DimDynamic.STATIC, DimDynamic.INFER_STRIDE


def convert(tensor, context=None, env=None, **options):
    return FakeTensorMode(shape_env=env or ShapeEnv()).from_tensor(tensor, symbolic_context=context, **options)


def looks(sizes):
    return [size if isinstance(size, int) else "symbol" for size in sizes]


@pytest.mark.parametrize("make, strides, expected", [
    (lambda: umbra.empty(6, 4), None, "s49, 1"),
    (lambda: umbra.empty(4, 6).t(), None, "1, s26"),
    (lambda: umbra.empty(6, 7)[:, :4], None, "s48, 1"),
    (lambda: umbra.empty(6, 8)[:, ::2], None, "s37*s49, s37"),
    (lambda: umbra.empty(1, 4).expand(6, 4), None, "0, 1"),
    (lambda: umbra.empty(6, 4), [DYNAMIC, INFER], "s48, 1"),
    (lambda: umbra.empty(4, 6).t(), [DYNAMIC, DYNAMIC], "1, s37"),
])
def test_strides_follow_sizes_or_are_symbols(make, strides, expected):
    fake = convert(make(), StatelessSymbolicContext([DYNAMIC, DYNAMIC], dynamic_strides=strides))
    assert ", ".join(map(str, fake.stride())) == expected


def test_an_offset_is_a_symbol_where_sizes_are():
    assert looks([convert(umbra.empty(6, 4)[2:], StatelessSymbolicContext([DYNAMIC, STATIC])).storage_offset()]) == ["symbol"]
    assert convert(umbra.empty(6, 4)[2:], StatelessSymbolicContext([STATIC, STATIC])).storage_offset() == 8


def test_a_context_is_checked():
    with pytest.raises(AssertionError, match="dynamic_strides must only contain"):
        StatelessSymbolicContext([DYNAMIC], dynamic_strides=[STATIC])
    with pytest.raises(TypeError, match="tensor_source"):
        StatefulSymbolicContext([DYNAMIC])
    with pytest.raises(AssertionError, match="1 != 2"):
        convert(umbra.empty(6, 4), StatelessSymbolicContext([DYNAMIC]))
    context = StatelessSymbolicContext([DYNAMIC, STATIC])
    assert (context.dynamic_strides, context.constraint_sizes, context.view_base_context) == ([INFER, INFER], [None, None], None)


def test_unbacked_sizes_and_bounds():
    fake = convert(umbra.empty(6, 4), StatelessSymbolicContext([DimDynamic.UNBACKED, STATIC], unbacked_bounds={0: (2, 8)}))
    assert str(fake.shape[0]) == "u0" and bool(fake.shape[0] <= 8) and fake.stride() == (4, 1)


def test_a_stateful_context_gives_one_tensor_one_set_of_symbols():
    env, context = ShapeEnv(), StatefulSymbolicContext([DYNAMIC, DYNAMIC], tensor_source="x")
    first, second = (convert(umbra.empty(6, 4), context, env, source="x") for _ in range(2))
    assert str(first.shape) == str(second.shape) and len(free_symbols([first.shape, second.shape])) == 2


def test_constraints_are_taken():
    context = StatelessSymbolicContext([DYNAMIC, STATIC], constraint_sizes=[RelaxedUnspecConstraint(warn_only=False), None])
    assert looks(convert(umbra.empty(6, 4), context).shape) == ["symbol", 4]


class Pair(umbra.Tensor):
    @staticmethod
    def __new__(cls, a, b, outer_size=None, outer_stride=None):
        return umbra.Tensor._make_wrapper_subclass(cls, a.size() if outer_size is None else outer_size,
                                                   strides=a.stride() if outer_stride is None else outer_stride, dtype=a.dtype)

    def __init__(self, a, b, outer_size=None, outer_stride=None):
        self.a, self.b = a, b

    def __tensor_flatten__(self):
        return ["a", "b"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, outer_size, outer_stride):
        return Pair(inner["a"], inner["b"], outer_size, outer_stride)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError


def test_a_tensor_class_is_converted_with_symbols():
    pair = Pair(umbra.ones(6, 4), umbra.ones(6, 4))
    fake = convert(pair)
    assert type(fake) is Pair and str(fake.shape) == str(fake.a.shape) == str(fake.b.shape) and looks(fake.shape) == ["symbol"] * 2
    inner = {name: StatelessSymbolicContext([DYNAMIC, STATIC]) for name in "ab"}
    fake = convert(pair, SubclassSymbolicContext([DYNAMIC, STATIC], tensor_source="x", inner_contexts=inner), source="x")
    assert looks(fake.shape) == looks(fake.a.shape) == ["symbol", 4] and str(fake.shape[0]) != str(fake.a.shape[0])
    with pytest.raises(AssertionError, match="Expected SubclassSymbolicContext or None"):
        convert(pair, StatelessSymbolicContext([DYNAMIC, STATIC]))
