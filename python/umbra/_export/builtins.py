"""Python's own functions of numbers, which would decide by symbolic ones: while a program is captured they become calls of the program."""
import builtins
import contextlib
import math

from umbra import _C

_SYMBOLIC = (_C.SymInt, _C.SymFloat)


def _extreme(plain, of_tensors, of_numbers, clamp):
    def extreme(*args, **kwargs):
        pair = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
        if kwargs or len(pair) != 2:
            return plain(*args, **kwargs)
        tensors = [isinstance(value, _C.Tensor) for value in pair]
        if all(tensors):
            return of_tensors(*pair)
        if any(tensors):
            tensor, number = pair if tensors[0] else reversed(pair)
            return clamp(tensor, number) if isinstance(number, (int, float)) else plain(*args)
        numbers = all(isinstance(value, (int, float, *_SYMBOLIC)) for value in pair)
        return of_numbers(*pair) if numbers and any(isinstance(value, _SYMBOLIC) for value in pair) else plain(*args)
    return extreme


@contextlib.contextmanager
def symbolic_builtins():
    """While it lasts, max and min of two numbers or tensors, and math.pow, are what the program computes."""
    before = builtins.max, builtins.min, math.pow
    maximum, minimum, clamp = (_C._find_overload(f"aten::{name}") for name in ("maximum", "minimum", "clamp"))
    builtins.max = _extreme(before[0], maximum, _C.sym_max, lambda tensor, number: clamp(tensor, number))
    builtins.min = _extreme(before[1], minimum, _C.sym_min, lambda tensor, number: clamp(tensor, None, number))
    math.pow = lambda x, y: x ** y if isinstance(x, _SYMBOLIC) or isinstance(y, _SYMBOLIC) else before[2](x, y)
    try:
        yield
    finally:
        builtins.max, builtins.min, math.pow = before
