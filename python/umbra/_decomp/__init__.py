"""Tables of what operators are made of."""
from umbra.export.decomp_utils import CustomDecompTable


def core_aten_decompositions():
    """The operators outside of the core set, and what they are made of."""
    return CustomDecompTable()


def __getattr__(name):
    if name == "decomposition_table":
        return CustomDecompTable()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def get_decompositions(aten_ops):
    """The entries of the core table for these operators; packets stand for all their overloads."""
    table, wanted = CustomDecompTable(), set()
    for op in aten_ops:
        wanted.update(getattr(op, name) for name in op.overloads()) if hasattr(op, "overloads") else wanted.add(op)
    return {op: parts for op, parts in table.items() if op in wanted}


def remove_decompositions(decompositions, aten_ops):
    """Takes operators out of a table, where they are in it."""
    for op in aten_ops:
        for overload in ([getattr(op, name) for name in op.overloads()] if hasattr(op, "overloads") else [op]):
            decompositions.pop(overload, None)
