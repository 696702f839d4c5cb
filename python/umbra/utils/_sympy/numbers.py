"""The ends of the integers."""
import math


class IntInfinity(float):
    """An end of the integers, which no integer reaches."""
    __slots__ = ()

    def __new__(cls, value="inf"):
        return super().__new__(cls, value)

    def __repr__(self):
        return "int_oo" if self > 0 else "-int_oo"

    __str__ = __repr__


class NegativeIntInfinity(IntInfinity):
    """The lower end."""
    __slots__ = ()

    def __new__(cls):
        return super().__new__(cls, "-inf")


class Infinity(float):
    """An end of the floats."""
    __slots__ = ()

    def __repr__(self):
        return "oo" if self > 0 else "-oo"

    __str__ = __repr__


def _kept(operation):
    """The operation of floats, whose infinite results are ends of the integers again where the other number is one."""
    def of(self, *others):
        result = operation(self, *others)
        if not isinstance(result, float) or not math.isinf(result) or any(type(other) is float for other in others):
            return result
        return int_oo if result > 0 else NegativeIntInfinity()
    return of


for _name in ("__neg__", "__abs__", "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__pow__"):
    setattr(IntInfinity, _name, _kept(getattr(float, _name)))
del _name

int_oo = IntInfinity()


def is_infinite(value):
    """Whether a number is an end of the integers or of the floats."""
    return isinstance(value, float) and math.isinf(value)
