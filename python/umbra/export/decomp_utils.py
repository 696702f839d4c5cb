"""Tables of decompositions: what operators of a program are recorded as."""
from umbra import _C, _ops, library


class _OwnParts:
    """Stands in a table for what the library makes of an operator."""

    def __init__(self, op):
        self._core_operator = op

    def __call__(self, *args, **kwargs):
        return _C._run_core_decomposition(self._core_operator, args, kwargs)

    def __repr__(self):
        return f"<the parts of {self._core_operator}>"


class _LibraryParts(_OwnParts):
    """Stands in a table for what a user's library makes of a composite."""

    def __call__(self, *args, **kwargs):
        return self._core_operator(*args, **kwargs)


# Composites that the core operators of PyTorch have whole.
_CORE_COMPOSITES = ("aten::upsample_nearest2d.vec", "aten::upsample_bilinear2d.vec")


class CustomDecompTable(dict):
    """The operators that `ExportedProgram.run_decompositions` takes apart by default; entries may be added, replaced and taken out."""

    def __init__(self):
        names = [name for name in _C._core_decompositions() if name not in _CORE_COMPOSITES]
        super().__init__((op, _OwnParts(op)) for op in map(_overload, names) if op is not None)
        self.update((op, _LibraryParts(op)) for op in _library_composites())
        self._removed = set()

    has_materialized = True  # it knows all its entries from the start

    def pop(self, op, *default):
        if op not in self and not default:
            raise KeyError(f"{op} is not in the table")
        self._removed.add(op)
        return super().pop(op, *default)

    def __delitem__(self, op):
        super().__delitem__(op)
        self._removed.add(op)

    def copy(self):
        table = CustomDecompTable.__new__(CustomDecompTable)
        dict.__init__(table, self)
        table._removed = set(self._removed)
        return table

    def _with_later_composites(self):
        """The entries, with composites of libraries that were defined after the table was made, unless they were taken out."""
        later = {op: _LibraryParts(op) for op in _library_composites() if op not in self._removed}
        return {**later, **self}

    def materialize(self):
        return dict(self)


def _overload(name):
    space, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    found = getattr(getattr(_ops.ops, space), packet, None)
    return None if found is None else getattr(found, overload or "default", None)


def _library_composites():
    """The composites of users' libraries that give values of their own."""
    registered = library._registered_kernels()
    whole = {name for name, key in registered if key not in ("CompositeImplicitAutograd", "Fake")}
    found = [_overload(name) for name, key in sorted(registered) if key == "CompositeImplicitAutograd" and name not in whole]
    return [op for op in found if op is not None and not any(part.alias_info for part in (*op._schema.arguments, *op._schema.returns))]


def split_table(table):
    """(operators with functions of the user's, names of those that come apart as the library says)."""
    functions = {op: function for op, function in table.items() if not isinstance(function, _OwnParts)}
    return functions, [_name(op) for op, function in table.items() if type(function) is _OwnParts]


def _name(op):
    return op.name() if callable(getattr(op, "name", None)) else str(op)


def kept_composites(table):
    """Whether a composite stays whole: those that are not in the table do."""
    taken_apart = {_name(op) for op in table}
    return lambda name: name not in taken_apart
