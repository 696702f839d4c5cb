"""Out-of-place calls made in-place ones, where nothing can tell the difference."""
import itertools

import umbra
from umbra._C import Node, Tensor
from umbra.fx.node import map_arg
from umbra.utils._pytree import tree_leaves

__all__ = ["reinplace"]

aten = umbra.ops.aten

# A scatter, and the view that it writes to: `slice_scatter(base, source, *place)` puts source where `slice(base, *place)` is.
_VIEWS_OF_SCATTERS = {aten.diagonal_scatter.default: aten.diagonal.default, aten.select_scatter.default: aten.select.int,
                      aten.slice_scatter.default: aten.slice.Tensor, aten.as_strided_scatter.default: aten.as_strided.default}


def _inplace_form(op):
    """The overload that writes its first argument and takes the same others; None where there is none."""
    if not isinstance(op, umbra._ops.OpOverload) or op._schema.is_mutable:
        return None
    packet = getattr(getattr(umbra.ops, op.namespace), op._schema.name.split("::")[1] + "_", None)
    if packet is None:
        return None
    for name in packet.overloads():
        candidate = getattr(packet, name)
        same = [(a.name, str(a.type)) for a in candidate._schema.arguments] == [(a.name, str(a.type)) for a in op._schema.arguments]
        if same and candidate._schema.arguments[0].alias_info is not None:
            return candidate
    return None


class _Memory:
    """What each node's value shares memory with, and when each is read, as the graph is."""

    def __init__(self, gm, args):
        self.values, self.order = {}, {}
        given = iter(args)

        def value_of(node):
            return self.values[node]
        for i, node in enumerate(gm.graph.nodes):
            self.order[node] = i
            if node.op == "placeholder":
                self.values[node] = next(given)
            elif node.op == "get_attr":
                value = gm
                for part in node.target.split("."):
                    value = getattr(value, part)
                self.values[node] = value
            elif node.op == "call_function":
                self.values[node] = node.target(*map_arg(node.args, value_of), **map_arg(node.kwargs, value_of))
            elif node.op == "output":
                self.values[node] = map_arg(node.args[0], value_of)
            else:
                raise AssertionError(f"reinplace() takes graphs of operators; {node.format_node()} is none")
        self.by_storage = {}
        for node, value in self.values.items():
            for storage in self.storages(node):
                self.by_storage.setdefault(storage, set()).add(node)

    def storages(self, node):
        return {t.untyped_storage()._cdata for t in tree_leaves(self.values[node]) if isinstance(t, Tensor)}

    def is_outside(self, node):
        """Whether a value lies in the memory of an input or attribute, which is the caller's."""
        return any(other.op in ("placeholder", "get_attr") for storage in self.storages(node) for other in self.by_storage[storage])

    def later_uses(self, node, position):
        """The nodes after a position that use what shares memory with a node's value."""
        aliases = set(itertools.chain.from_iterable(self.by_storage[storage] for storage in self.storages(node)))
        return {user for alias in aliases if not alias._erased for user in alias.users if self.order[user] > position}

    def join(self, one, other):
        """From here on the values of two nodes share memory."""
        merged = set()
        for storage in self.storages(one) | self.storages(other):
            merged |= self.by_storage[storage]
        for storage in {storage for node in merged for storage in self.storages(node)}:
            self.by_storage[storage] = merged

    def place_beside(self, node, other):
        """A node that was added stands where another one does."""
        self.order[node] = self.order[other]


def _is_plain(value):
    """Whether every element has a place of its own."""
    return isinstance(value, Tensor) and not any(stride == 0 and size > 1 for size, stride in zip(value.shape, value.stride()))


def _same_look(a, b):
    return isinstance(a, Tensor) and isinstance(b, Tensor) and a.shape == b.shape and a.dtype == b.dtype


def _reinplace_scatter(gm, node, memory):
    """base, with source in the place of a view of it: that view is written instead, where nothing else looks at the base as it was."""
    base, source, *place = node.args
    if memory.is_outside(base) or not _is_plain(memory.values[base]) or memory.storages(base) & memory.storages(source):
        return
    if memory.later_uses(base, memory.order[node]):
        return
    with gm.graph.inserting_before(node):
        view = gm.graph.call_function(_VIEWS_OF_SCATTERS[node.target], (base, *place), dict(node.kwargs))
        view.meta = node.meta
        write = gm.graph.call_function(aten.copy_.default, (view, source))
    for added in (view, write):
        memory.place_beside(added, node)
    memory.join(node, base)
    node.replace_all_uses_with(base)
    gm.graph.erase_node(node)


def _reinplace_call(node, memory):
    inplace = _inplace_form(node.target)
    if inplace is None or not node.args or not isinstance(node.args[0], Node):
        return
    target = node.args[0]
    value, result = memory.values[target], memory.values[node]
    if memory.is_outside(target) or not _is_plain(value) or not _same_look(value, result):
        return
    if any(user is not node for user in memory.later_uses(target, memory.order[node])):
        return
    # Reading the same memory by another argument while it is written gives other numbers.
    if any(memory.storages(other) & memory.storages(target) for other in node.all_input_nodes if other is not target):
        return
    node.target = inplace
    memory.join(node, target)
    node.replace_all_uses_with(target)


def reinplace(gm, *sample_args):
    """Rewrites a functional graph so that values which nothing reads afterwards are written in place; inputs and outputs stay as they are.

    `sample_args` are inputs of the graph: it is run on them, on tensors without data, to find what shares memory."""
    from umbra._subclasses.fake_tensor import FakeTensorMode
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode:
        fakes = [mode.from_tensor(a) if isinstance(a, Tensor) and not isinstance(a, umbra._C.FakeTensor) else a for a in sample_args]
        memory = _Memory(gm, fakes)
    for node in list(gm.graph.nodes):
        if node.op != "call_function" or node._erased:
            continue
        if node.target in _VIEWS_OF_SCATTERS:
            _reinplace_scatter(gm, node, memory)
        else:
            _reinplace_call(node, memory)
    gm.recompile()
    return gm
