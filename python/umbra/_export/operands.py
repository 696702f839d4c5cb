"""The order in which an exported operator is given what its functions use. PyTorch sorts by how the functions reach it: first what all of them use,
then what each has alone."""
import contextlib
import functools
import re
import types

from umbra import _C
from umbra.nn.modules.module import Module
from umbra.utils import _pytree as pytree
from umbra.utils._contextlib import uninterrupted


_GLOBAL = "\0"  # where a path begins anew
_UNKNOWN = "~"  # what was made on the way stands last


@uninterrupted
def ordered(functions, operands=None):
    """While it lasts, the call of an operator that is recorded stands with its operands in PyTorch's order. `operands`: those that the call has of its
    own, as the caller gives them, where the functions' places among the call's arguments come before them."""
    first = 0 if operands is None else 1
    paths = [_Paths(f"L['args'][{i + first}]", function) for i, function in enumerate(functions)]
    own = _Paths("L['args'][3]", operands)

    def order(values, used):
        shared = [i for i in range(len(values)) if all(uses[i] for uses in used)]
        alone = [[i for i in range(len(values)) if uses[i] and i not in shared] for uses in used]
        names = [own.name(value) or next((path.name(value) for path, uses in zip(paths, used) if uses[i]), None) or _UNKNOWN
                 for i, value in enumerate(values)]
        return [i for group in (shared, *alone) for i in sorted(group, key=lambda i: names[i])]
    before = _C._set_operand_order(order)
    try:
        yield
    finally:
        _C._set_operand_order(before)


def without_order(function):
    """A function of such a call: calls that it makes have orders of their own."""
    def run(*args):
        before = _C._set_operand_order(None)
        try:
            return function(*args)
        finally:
            _C._set_operand_order(before)
    return run


class _Paths:
    """How tensors and symbolic numbers are reached from a value; found when somebody asks."""

    def __init__(self, path, value):
        self._start = path, value

    def name(self, value):
        """What PyTorch's graph calls it; None where it is not reached."""
        path = self._found.get(_key(value))
        return None if path is None else re.sub(r"[^a-zA-Z0-9]+", "_", path.rpartition(_GLOBAL)[2]).lower()

    @functools.cached_property
    def _found(self):
        found, seen = {}, set()
        pending = [self._start]
        while pending:  # shorter paths first
            path, value = pending.pop(0)
            if isinstance(value, (_C.Tensor, _C.SymInt)):
                found.setdefault(_key(value), path)
            elif id(value) not in seen:
                seen.add(id(value))
                pending += ((path + step, part) for step, part in _parts(value))
        return found


def _key(value):
    return str(value) if isinstance(value, _C.SymInt) else id(value)


def _parts(value):
    """Pairs of a step and what it leads to."""
    if isinstance(value, Module):
        return _parts_of_module(value)
    if isinstance(value, types.MethodType):
        return [(".__self__", value.__self__), *_parts(value.__func__)]
    if isinstance(value, types.FunctionType):
        return _parts_of_function(value)
    if isinstance(value, functools.partial):
        return [(".func", value.func), (".args", value.args), (".keywords", value.keywords)]
    if isinstance(value, dict):
        return [(f"[{key!r}]", item) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [(f"[{i}]", item) for i, item in enumerate(value)]
    children = pytree._node_type(value) and pytree.tree_flatten(value, is_leaf=lambda part: part is not value)[0]
    return [(f"[{i}]", child) for i, child in enumerate(children or ())]


def _parts_of_module(module):
    for kind in ("_parameters", "_buffers", "_modules"):
        yield from ((f".{kind}[{name!r}]", part) for name, part in getattr(module, kind).items())
    yield from ((f".{name}", value) for name, value in vars(module).items() if not name.startswith("_") or isinstance(value, _C.Tensor))


def _parts_of_function(function):
    for i, cell in enumerate(function.__closure__ or ()):
        with contextlib.suppress(ValueError):  # a name that has no value yet
            yield f".__closure__[{i}].cell_contents", cell.cell_contents
    yield from ((f".__defaults__[{i}]", value) for i, value in enumerate(function.__defaults__ or ()))
    yield from ((f".__kwdefaults__[{name!r}]", value) for name, value in (function.__kwdefaults__ or {}).items())
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, (_C.Tensor, Module, types.FunctionType, list, dict)):
            yield f"{_GLOBAL}G[{name!r}]", value
