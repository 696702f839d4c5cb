"""auto_functionalized: what a user's operator writes, as values. The operator is called on copies, which are given back."""
import umbra
from umbra._C import Tensor
from umbra._higher_order_ops.operator import FlatOperator


def _written(operator):
    """The names of what an operator writes. Operators of the library have functional forms of their own."""
    schema = operator._schema
    names = [argument.name for argument in schema.arguments if argument.alias_info is not None and argument.alias_info.is_write]
    if not names or schema.name.startswith(("aten::", "prim::", "prims::")):
        raise AssertionError(f"Cannot auto-functionalize op {operator}")
    return names


def _copy(value):
    if isinstance(value, (tuple, list)):
        return [_copy(v) for v in value]
    return value.clone() if isinstance(value, Tensor) else value


def _results(result):
    return tuple(result) if isinstance(result, tuple) else (result,)


class AutoFunctionalized(FlatOperator):
    """`(*results, *new values of what is written)`, each by its name among the keywords."""

    def __init__(self):
        super().__init__("auto_functionalized")

    def __call__(self, operator, /, **kwargs):
        names = _written(operator)
        kwargs = {name: _copy(value) if name in names else value for name, value in kwargs.items()}
        result = operator(**kwargs)
        return (*_results(result), *(kwargs.get(name) for name in names))


class AutoFunctionalizedV2(FlatOperator):
    """The same where what is written is given as views of bases; the bases' new values are given back. For an argument `x` the keywords are
    `_x_base_index` (None: there is no tensor), and how the view is made: `_x_size`, `_x_stride`, `_x_storage_offset`, or `_x_slice_dim`,
    `_x_slice_start`, `_x_slice_end`, or `_x_alias`, or none of them: the base itself. A list has `_x_length`, and `_x_0_base_index` and so on."""

    def __init__(self):
        super().__init__("auto_functionalized_v2")

    def __call__(self, operator, /, *, _all_bases=(), **kwargs):
        bases = _copy(_all_bases)
        given = {name: _take(kwargs, name, bases) for name in _written(operator)}
        return (*_results(operator(**kwargs, **given)), *bases)


def _take(kwargs, name, bases):
    """The argument `name`, made of the keywords that tell of it, which are taken out."""
    length = kwargs.pop(f"_{name}_length", None)
    if length is not None:
        return [_view(kwargs, f"_{name}_{i}", bases) for i in range(length)]
    return _view(kwargs, f"_{name}", bases)


def _view(kwargs, prefix, bases):
    index = kwargs.pop(f"{prefix}_base_index")
    if index is None:
        return None
    size, stride, offset = (kwargs.pop(f"{prefix}_{what}", None) for what in ("size", "stride", "storage_offset"))
    dim, start, end = (kwargs.pop(f"{prefix}_slice_{what}", None) for what in ("dim", "start", "end"))
    if kwargs.pop(f"{prefix}_alias", False):
        return bases[index].view_as(bases[index])
    if size is not None:
        return bases[index].as_strided(size, stride, offset)
    return bases[index] if dim is None else umbra.ops.aten.slice.Tensor(bases[index], dim, start, end)


auto_functionalized, auto_functionalized_v2 = AutoFunctionalized(), AutoFunctionalizedV2()
