"""What stands behind a symbolic number."""
from umbra import _C
from umbra._C import SymBool, SymFloat, SymInt
from umbra.fx.experimental import symbolic_shapes
from umbra.fx.experimental._expressions import Expression

_TYPES = {SymInt: int, SymFloat: float, SymBool: bool}


class SymNode:
    """The expression of a symbolic number, its environment, and its value in the run that was captured."""

    def __init__(self, value):
        self._value = value

    @property
    def expr(self):
        return Expression(self._value)

    _expr = expr

    @property
    def shape_env(self):
        return symbolic_shapes.ShapeEnv._of(_C._sym_shape_env(self._value))

    @property
    def pytype(self):
        return _TYPES[type(self._value)]

    @property
    def hint(self):
        return _C._sym_hint(self._value) if self.has_hint() else None

    def has_hint(self):
        return _C._sym_has_hint(self._value)

    def require_hint(self, fallback=None):
        if self.has_hint() or fallback is None:
            return _C._sym_hint(self._value)
        return fallback

    def is_int(self):
        return type(self._value) is SymInt

    def is_float(self):
        return type(self._value) is SymFloat

    def is_bool(self):
        return type(self._value) is SymBool

    def is_symbolic(self):
        return True

    def is_constant(self):
        return self.maybe_as_int() is not None

    def maybe_as_int(self):
        """The value of an integer that has become a number since, by a guard on its value; None of any other."""
        return int(self._value) if self.is_int() and not _C._sym_free_symbols(self._value) else None

    def maybe_as_bool(self):
        """The truth of a condition that is known; None of any other."""
        known = self.is_bool() and not _C._sym_free_symbols(self._value)
        return bool(self._value) if known else None

    def maybe_as_float(self):
        """The value of a float that has become a number since; None of any other."""
        known = self.is_float() and not _C._sym_free_symbols(self._value)
        return float(self._value) if known else None

    def is_nested_int(self):
        return False

    # ---- questions; `file` and `line` are where they are asked, which is found out anyway ----

    def guard_int(self, file, line):
        return symbolic_shapes.guard_int(self._value)

    def guard_float(self, file, line):
        return symbolic_shapes.guard_float(self._value)

    def guard_bool(self, file, line):
        return symbolic_shapes.guard_bool(self._value)

    def guard_size_oblivious(self, file, line):
        return symbolic_shapes.guard_size_oblivious(self._value)

    def guard_or_false(self, file, line):
        return symbolic_shapes.guard_or_false(self._value)

    def guard_or_true(self, file, line):
        return symbolic_shapes.guard_or_true(self._value)

    def expect_true(self, file, line):
        return symbolic_shapes.expect_true(self._value)

    def statically_known_true(self, file, line):
        return symbolic_shapes.statically_known_true(self._value)

    def __str__(self):
        return str(self.expr)

    __repr__ = __str__
