"""Tables of decompositions: what operators of a program are recorded as."""
from umbra import _C, _ops


class _OwnParts:
    """Stands in a table for what the library makes of an operator."""

    def __init__(self, op):
        self._core_operator = op

    def __call__(self, *args, **kwargs):
        return _C._run_core_decomposition(self._core_operator, args, kwargs)

    def __repr__(self):
        return f"<the parts of {self._core_operator}>"


# Composites that the core operators of PyTorch have whole.
_CORE_COMPOSITES = ("aten::upsample_nearest2d.vec", "aten::upsample_bilinear2d.vec")


class CustomDecompTable(dict):
    """The operators that `ExportedProgram.run_decompositions` takes apart by default; entries may be added, replaced and taken out."""

    def __init__(self):
        names = [name for name in _C._core_decompositions() if name not in _CORE_COMPOSITES]
        super().__init__((op, _OwnParts(op)) for op in map(_overload, names) if op is not None)

    def copy(self):
        table = CustomDecompTable.__new__(CustomDecompTable)
        dict.__init__(table, self)
        return table

    def materialize(self):
        return dict(self)


def _overload(name):
    space, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    found = getattr(getattr(_ops.ops, space), packet, None)
    return None if found is None else getattr(found, overload or "default", None)


def split_table(table):
    """(operators with functions of the user's, names of those that come apart as the library says)."""
    functions = {op: function for op, function in table.items() if not isinstance(function, _OwnParts)}
    return functions, [_name(op) for op, function in table.items() if isinstance(function, _OwnParts)]


def _name(op):
    return op.name() if callable(getattr(op, "name", None)) else str(op)


def kept_composites(table):
    """Whether a composite stays whole: those that are not in the table do."""
    taken_apart = {_name(op) for op in table}
    return lambda name: name not in taken_apart
