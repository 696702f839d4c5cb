"""Tables of what operators are made of."""
import collections.abc

from umbra._decomp.decompositions import FUNCTIONS
from umbra._options import not_built
from umbra.export.decomp_utils import CustomDecompTable

#: What the library makes of operators, and what `register_decomposition` has added.
decomposition_table = CustomDecompTable()
for _op, _function in FUNCTIONS.items():
    decomposition_table.setdefault(_op, _function)


def core_aten_decompositions():
    """The operators outside of the core set, and what they are made of."""
    return CustomDecompTable()


def _overloads(op):
    """A packet stands for all its overloads."""
    return [getattr(op, name) for name in op.overloads()] if hasattr(op, "overloads") else [op]


def register_decomposition(aten_op, registry=None, *, type="post_autograd", unsafe=False):
    """A decorator: the function is what the operator, or each of several, is made of in the table."""
    not_built("register_decomposition", type=(type, "post_autograd"), unsafe=(unsafe, False))
    table = decomposition_table if registry is None else registry
    ops = aten_op if isinstance(aten_op, collections.abc.Sequence) else [aten_op]

    def register(function):
        for overload in [overload for op in ops for overload in _overloads(op)]:
            if overload in table:
                raise RuntimeError(f"double registrations for {overload}")
            table[overload] = function
        return function

    return register


def get_decompositions(aten_ops):
    """The entries of the table for these operators; packets stand for all their overloads."""
    wanted = [overload for op in aten_ops for overload in _overloads(op)]
    return {op: decomposition_table[op] for op in wanted if op in decomposition_table}


def remove_decompositions(decompositions, aten_ops):
    """Takes operators out of a table, where they are in it."""
    for op in aten_ops:
        for overload in _overloads(op):
            decompositions.pop(overload, None)
