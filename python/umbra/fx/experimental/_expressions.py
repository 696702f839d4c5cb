"""The expression behind a symbolic number, with which programs compute on."""
import operator

from umbra import _C
from umbra._C import SymBool, SymFloat, SymInt


class Expression(str):
    """Its text, which also computes: `x.node.expr * 2` is `Expression("2*s77")`, and `.free_symbols` is `{"s77"}`."""

    def __new__(cls, number):
        self = super().__new__(cls, _C._sym_expression(number))
        self._number = number
        return self

    def __repr__(self):
        return str(self)

    def __str__(self):
        return str.__str__(self)

    def __getnewargs__(self):
        raise TypeError(f"the expression {self} belongs to its environment and cannot be copied out of it; take its text, str(expression)")

    @property
    def free_symbols(self):
        from umbra.export.exported_program import Symbol
        return {Symbol(name) for name in _C._sym_free_symbols(self._number)}

    @property
    def is_number(self):
        return not _C._sym_free_symbols(self._number)

    @property
    def is_Symbol(self):
        return _C._sym_free_symbols(self._number) == [str(self)]

    is_symbol = is_Symbol

    @property
    def name(self):
        if not self.is_Symbol:
            raise AttributeError(f"{self} is not a symbol and has no name")
        return str(self)

    @property
    def is_integer(self):
        return isinstance(self._number, SymInt)

    def __eq__(self, other):
        if isinstance(other, (int, float)):
            return self.is_number and number_of(self) == other
        return str.__eq__(self, other)

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__

    def __int__(self):
        return int(_as_number(self))

    def __float__(self):
        return float(_as_number(self))


def _as_number(expression):
    if not expression.is_number:
        raise TypeError("Cannot convert symbols to int")
    return number_of(expression)


def number_of(expression):
    """The number that an expression was taken from; a plain number is one already."""
    if isinstance(expression, Expression):
        return expression._number
    if isinstance(expression, (bool, int, float)):
        return expression
    raise TypeError(f"expected the expression of a symbolic number, its `node.expr`, but got {expression!r} of type {type(expression).__name__}")


def expression_of(number):
    """The expression of a number; a plain one is its own."""
    return Expression(number) if isinstance(number, (SymInt, SymFloat, SymBool)) else number


def _operator(function, text=None, reflected=False):
    def compute(self, other):
        if isinstance(other, str) and not isinstance(other, Expression):
            return text(self, other) if text else NotImplemented
        if not isinstance(other, (int, float, Expression)):
            return NotImplemented
        left, right = self._number, number_of(other)
        return expression_of(function(right, left) if reflected else function(left, right))
    return compute


for _name, _function in (("add", operator.add), ("sub", operator.sub), ("mul", operator.mul), ("floordiv", operator.floordiv), ("mod", operator.mod),
                         ("truediv", operator.truediv), ("pow", operator.pow)):
    setattr(Expression, f"__{_name}__", _operator(_function, getattr(str, f"__{_name}__", None)))
    setattr(Expression, f"__r{_name}__", _operator(_function, reflected=True))
for _name in ("lt", "le", "gt", "ge"):
    setattr(Expression, f"__{_name}__", _operator(getattr(operator, _name), getattr(str, f"__{_name}__")))
Expression.__neg__ = lambda self: expression_of(-self._number)
Expression.__abs__ = lambda self: expression_of(abs(self._number))
