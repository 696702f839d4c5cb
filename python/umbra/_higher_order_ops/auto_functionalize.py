"""auto_functionalized: what a user's operator writes, as values. The operator is called on copies, which are given back."""
from umbra._C import Tensor
from umbra._higher_order_ops.operator import HigherOrderOperator


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


class AutoFunctionalized(HigherOrderOperator):
    """`(*results, *new values of what is written)`, each by its name among the keywords."""

    def __init__(self):
        super().__init__("auto_functionalized")

    def __call__(self, operator, /, **kwargs):
        names = _written(operator)
        kwargs = {name: _copy(value) if name in names else value for name, value in kwargs.items()}
        result = operator(**kwargs)
        return (*_results(result), *(kwargs.get(name) for name in names))


class AutoFunctionalizedV2(HigherOrderOperator):
    """The same where tensors that are written are given as bases, `_all_bases[_x_base_index]` for `x`; the bases' new values are given back."""

    def __init__(self):
        super().__init__("auto_functionalized_v2")

    def __call__(self, operator, /, *, _all_bases=(), **kwargs):
        names = _written(operator)
        bases = _copy(_all_bases)
        given = {}
        for name in names:
            index = kwargs.pop(f"_{name}_base_index", None)
            given[name] = None if index is None else bases[index]
        others = [name for name in kwargs if name.startswith("_") and name.rsplit("_", 1)[0][1:].startswith(tuple(names))]
        if others:
            raise NotImplementedError(f"auto_functionalized_v2: views of bases ({', '.join(others)}) and lists that are written are not in Umbra yet")
        return (*_results(operator(**kwargs, **given)), *bases)


auto_functionalized, auto_functionalized_v2 = AutoFunctionalized(), AutoFunctionalizedV2()
