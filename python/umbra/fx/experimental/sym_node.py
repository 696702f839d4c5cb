"""What stands behind a symbolic number."""
from umbra import _C
from umbra._C import SymBool, SymFloat, SymInt
from umbra.fx.experimental.symbolic_shapes import ShapeEnv

_TYPES = {SymInt: int, SymFloat: float, SymBool: bool}


class SymNode:
    """The expression of a symbolic number, its environment, and its value in the run that was captured."""

    def __init__(self, value):
        self._value = value

    @property
    def expr(self):
        return _C._sym_expression(self._value)

    _expr = expr

    @property
    def shape_env(self):
        return ShapeEnv._of(_C._sym_shape_env(self._value))

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
        return int(self.expr) if self.is_int() and not _C._sym_free_symbols(self._value) else None

    def __str__(self):
        return self.expr

    __repr__ = __str__
