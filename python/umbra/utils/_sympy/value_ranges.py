"""The least and the most that a symbolic number may be."""
import dataclasses
import re

from umbra import _C
from umbra.utils._sympy.numbers import Infinity, IntInfinity, NegativeIntInfinity, int_oo

__all__ = ["ValueRanges", "bound_sympy"]


class ValueRangeError(RuntimeError):
    """A range without numbers."""


def _end(value):
    """An end as it is kept. Infinities are those of the integers unless they say that they are floats'."""
    if not isinstance(value, (int, float)):
        raise AssertionError(f"not simple sympy type {type(value)}: {value}")
    if isinstance(value, (bool, Infinity, IntInfinity)):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**126 else int_oo if value > 0 else NegativeIntInfinity()
    return value if abs(value) != float("inf") else int_oo if value > 0 else NegativeIntInfinity()


@dataclasses.dataclass(frozen=True, repr=False)
class ValueRanges:
    """A range of integers, floats or bools, both ends among them. None for the upper end is the integers' own."""
    lower: object
    upper: object

    def __post_init__(self):
        object.__setattr__(self, "lower", _end(self.lower))
        object.__setattr__(self, "upper", _end(int_oo if self.upper is None else self.upper))
        if self.lower > self.upper:
            raise ValueRangeError(f"Invalid ranges [{self.lower}:{self.upper}]")

    ends = property(lambda self: (self.lower, self.upper))

    is_bool = property(lambda self: isinstance(self.lower, bool))
    is_int = property(lambda self: not self.is_bool and all(isinstance(end, (int, IntInfinity)) for end in self.ends))
    is_float = property(lambda self: not self.is_bool and not self.is_int)

    @staticmethod
    def unknown():
        """All floats."""
        return ValueRanges(Infinity("-inf"), Infinity("inf"))

    @staticmethod
    def unknown_int():
        """All integers."""
        return ValueRanges(NegativeIntInfinity(), int_oo)

    @staticmethod
    def unknown_bool():
        """Either."""
        return ValueRanges(False, True)

    @staticmethod
    def wrap(value):
        """A range as it is, and a number as the range that has it alone."""
        return value if isinstance(value, ValueRanges) else ValueRanges(value, value)

    def is_singleton(self):
        return self.lower == self.upper

    def boolify(self):
        """Whether the one bool of the range is true."""
        if not self.is_bool:
            raise AssertionError(f"not bool like {self}")
        return self.lower

    def issubset(self, other):
        return other.lower <= self.lower and self.upper <= other.upper

    def tighten(self, other):
        """What is in both."""
        return self & other

    def _of_one_kind(self, other):
        if (self.is_bool, self.is_int) != (other.is_bool, other.is_int):
            raise AssertionError((self, other))

    def __and__(self, other):
        if other in (ValueRanges.unknown(), ValueRanges.unknown_int()):
            return self
        if self in (ValueRanges.unknown(), ValueRanges.unknown_int()):
            return other
        self._of_one_kind(other)
        return ValueRanges(max(self.lower, other.lower), min(self.upper, other.upper))

    def __or__(self, other):
        self._of_one_kind(other)
        return ValueRanges(min(self.lower, other.lower), max(self.upper, other.upper))

    def __contains__(self, value):
        return ValueRanges.wrap(value).issubset(self)

    @staticmethod
    def increasing_map(value, function):
        """The range of a function that grows."""
        value = ValueRanges.wrap(value)
        return ValueRanges(function(value.lower), function(value.upper))

    @staticmethod
    def decreasing_map(value, function):
        value = ValueRanges.wrap(value)
        return ValueRanges(function(value.upper), function(value.lower))

    @staticmethod
    def monotone_map(value, function):
        """The range of a function that grows or falls."""
        value = ValueRanges.wrap(value)
        ends = function(value.lower), function(value.upper)
        return ValueRanges(min(ends), max(ends))

    @staticmethod
    def convex_min_zero_map(value, function):
        """The range of a function that falls below zero, grows above it, and is 0 there."""
        value = ValueRanges.wrap(value)
        return ValueRanges(0, max(function(value.lower), function(value.upper))) if 0 in value else ValueRanges.monotone_map(value, function)

    @staticmethod
    def coordinatewise_increasing_map(one, other, function):
        one, other = ValueRanges.wrap(one), ValueRanges.wrap(other)
        return ValueRanges(function(one.lower, other.lower), function(one.upper, other.upper))

    @staticmethod
    def coordinatewise_monotone_map(one, other, function):
        values = [function(a, b) for a in ValueRanges.wrap(one).ends for b in ValueRanges.wrap(other).ends]
        return ValueRanges(min(values), max(values))

    def __repr__(self):
        return f"VR[{self.lower}, {self.upper}]"


def _default_range(name):
    """Of a symbol of which nothing is said: sizes are positive."""
    return ValueRanges(1, int_oo) if name.startswith("s") else ValueRanges.unknown_int()


def bound_sympy(expr, ranges=None):
    """The range of an expression, the text of a symbolic number, whose symbols have these ranges: `bound_sympy(x.node.expr, {...})`."""
    if isinstance(expr, (bool, int, float)):
        return ValueRanges.wrap(expr)
    known = {str(name): value for name, value in (ranges or {}).items()}
    # `u0` and `s77` are integers; symbols of floats (zuf0, zf3) have no ranges.
    names = set(re.findall(r"\b[A-Za-z_]\w*\b(?!\()", str(expr))) - {"True", "False"}
    given = {name: known.get(name, _default_range(name)) for name in names if not name.startswith("z")}
    ends = {name: tuple(int(end) if abs(end) < 2**63 else None for end in value.ends) for name, value in given.items()}
    kind, low, high = _C._bound_expression(str(expr), ends)
    if kind == "float":
        return ValueRanges(*(Infinity(end) if abs(end) == float("inf") else end for end in (low, high)))
    return ValueRanges(bool(low), bool(high)) if kind == "bool" else ValueRanges(low, high)
