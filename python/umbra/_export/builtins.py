"""Python's own functions of numbers, which would decide by symbolic ones: while a program is captured they become calls of the program."""
import builtins
import functools
import math

from umbra import _C
from umbra.utils._contextlib import uninterrupted

_SYMBOLIC = (_C.SymInt, _C.SymFloat)
_OF_THE_PROGRAM = (*_SYMBOLIC, _C.Tensor)


def _extreme(plain, of_tensors, of_numbers, clamp):
    def of_two(a, b):
        tensors = isinstance(a, _C.Tensor), isinstance(b, _C.Tensor)
        if all(tensors):
            return of_tensors(a, b)
        if any(tensors):
            tensor, number = (a, b) if tensors[0] else (b, a)
            return clamp(tensor, number) if isinstance(number, (int, float)) else plain(a, b)
        numbers = all(isinstance(value, (int, float, *_SYMBOLIC)) for value in (a, b))
        return of_numbers(a, b) if numbers and any(isinstance(value, _SYMBOLIC) for value in (a, b)) else plain(a, b)

    def extreme(*args, **kwargs):
        if kwargs or len(args) > 2 or not args:  # of three numbers PyTorch's capture takes Python's own
            return plain(*args, **kwargs)
        if len(args) == 2:
            return of_two(*args)
        items = list(args[0])
        return functools.reduce(of_two, items) if any(isinstance(item, _OF_THE_PROGRAM) for item in items) else plain(items)
    return extreme


@uninterrupted
def symbolic_builtins():
    """While it lasts, max and min of two numbers or tensors, or of a list of them, and math.pow, are what the program computes."""
    before = builtins.max, builtins.min, math.pow
    maximum, minimum, clamp = (_C._find_overload(f"aten::{name}") for name in ("maximum", "minimum", "clamp"))
    builtins.max = _extreme(before[0], maximum, _C.sym_max, lambda tensor, number: clamp(tensor, number))
    builtins.min = _extreme(before[1], minimum, _C.sym_min, lambda tensor, number: clamp(tensor, None, number))
    math.pow = lambda x, y: x ** y if isinstance(x, _SYMBOLIC) or isinstance(y, _SYMBOLIC) else before[2](x, y)
    try:
        yield
    finally:
        builtins.max, builtins.min, math.pow = before
