"""Where values have the symbols that only the run tells."""
import dataclasses

import umbra
from umbra import _C
from umbra._options import not_built
from umbra.fx.experimental._size_questions import expect_true, free_unbacked_symbols, is_symbolic
from umbra.utils import _pytree as pytree


@dataclasses.dataclass(frozen=True)
class CallMethodKey:
    """A step to a symbol inside of a value: what a method gives."""
    name: str

    def __str__(self):
        return f".{self.name}()"

    def get(self, o):
        return getattr(o, self.name)()


def _paths(value, path=()):
    """(steps, number) of all numbers in a value."""
    if isinstance(value, _C.Tensor):
        strided = value.layout is umbra.strided
        for name, numbers in (("size", value.shape), ("stride", value.stride() if strided else ())):
            yield from ((path + (CallMethodKey(name), pytree.SequenceKey(i)), number) for i, number in enumerate(numbers))
        if strided:
            yield path + (CallMethodKey("storage_offset"),), value.storage_offset()
    elif isinstance(value, (tuple, list)):
        for i, item in enumerate(value):
            yield from _paths(item, path + (pytree.SequenceKey(i),))
    else:
        yield path, value


def _binds(example_value):
    """Where a value has symbols that only the run tells: {u0: steps}."""
    from umbra.export.exported_program import Symbol
    found = {}
    for path, number in _paths(example_value):
        name = str(number) if is_symbolic(number) else ""
        if name.startswith(("u", "zuf")) and name.isidentifier():
            found.setdefault(Symbol(name), path)
    return found


def _bindings_of_node(node):
    """The symbols that a call is the first of its graph to have, and where its value has them."""
    found = _binds(node.meta.get("val")) if node.op == "call_function" else {}
    for other in node.graph.nodes:
        if not found or other is node:
            break
        found = {name: path for name, path in found.items() if name not in _free_unbacked_symbols_of(other)}
    return found


def _free_unbacked_symbols_of(node):
    return set().union(*(free_unbacked_symbols(number) for _, number in _paths(node.meta.get("val"))))


def resolve_unbacked_bindings(shape_env, bindings):
    """Bindings under the names that symbols have now."""
    return bindings


def rebind_unbacked(shape_env, n, result):
    """A call of a graph has been run again: the symbols of its new result are those of the node."""
    if shape_env is None:
        return
    for path in (n.meta.get("unbacked_bindings") or {}).values():
        old, new = pytree.key_get(n.meta["val"], path), pytree.key_get(result, path)
        if old is not new:
            expect_true(new == old)


def compute_unbacked_bindings(shape_env, example_value, old_example_value=None, peek=False):
    """Where a value has the symbols that it is the first to have: {u0: steps}; None where there are none. `peek`: it is not counted as their first."""
    not_built("compute_unbacked_bindings", old_example_value=(old_example_value, None))
    if shape_env is None:
        return None
    bound = shape_env._bound()
    found = {name: path for name, path in _binds(example_value).items() if name not in bound}
    if not peek:
        bound.update(found)
    return found or None
