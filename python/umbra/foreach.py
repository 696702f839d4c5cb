"""Operators over lists of tensors: what the operator of the same name does, at each place of the lists.

    parameters = torch.foreach.add(parameters, gradients, alpha=-0.1)      # a tuple of new tensors
    torch.foreach.mul_(moments, 0.9)                                       # writes, and gives the list back
"""
import functools

import umbra
from umbra.overrides import handle_torch_function, has_torch_function, heard

__all__ = []


def _relevant(arguments):
    """The arguments, lists taken apart: those that may overrule a call by `__torch_function__`."""
    return [part for a in arguments for part in (a if isinstance(a, (list, tuple)) else (a,))]


def _public(function):
    """Gives a function of this module its name, and to tensor classes their say."""
    @heard
    @functools.wraps(function)
    def call(*args, **kwargs):
        relevant = _relevant(args)
        if has_torch_function(relevant):
            return handle_torch_function(call, relevant, *args, **kwargs)
        return function(*args, **kwargs)
    __all__.append(call.__name__)
    globals()[call.__name__] = call
    return call


def _define(name, make):
    """The function `name`, and where there is one the function that writes to its inputs and gives them back."""
    for written in (name, name + "_"):
        operator = getattr(umbra, "_foreach_" + written, None)
        if operator is None:
            continue
        in_place = written.endswith("_")
        function = make(operator, (lambda inputs, results: inputs) if in_place else (lambda inputs, results: tuple(results)))
        function.__name__ = function.__qualname__ = written
        function.__doc__ = f"`Tensor.{written}` of every tensor of a list, which is given back." if in_place else f"`torch.{name}` of every tensor of a list, as a tuple."
        _public(function)


def _unary(operator, give):
    def function(inputs, /):
        return give(inputs, operator(inputs))
    return function


def _binary(operator, give):
    def function(inputs, other, /):
        return give(inputs, operator(inputs, other))
    return function


_NO_ALPHA = object()


def _sum(operator, give):
    # Numbers take no alpha: it is handed on only where the caller wrote one.
    def function(inputs, other, /, *, alpha=_NO_ALPHA):
        return give(inputs, operator(inputs, other) if alpha is _NO_ALPHA else operator(inputs, other, alpha=alpha))
    return function


def _product_added(operator, give):
    def function(inputs, tensor1, tensor2, /, *, value=1):
        return give(inputs, operator(inputs, tensor1, tensor2, value))
    return function


def _lerp(operator, give):
    def function(inputs, end, weight, /):
        return give(inputs, operator(inputs, end, weight))
    return function


for _name in ("abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 max neg reciprocal round "
              "rsqrt sigmoid sign sin sinh sqrt tan tanh trunc").split():
    _define(_name, _unary)
for _name in ("clamp_max", "clamp_min", "div", "maximum", "minimum", "mul", "pow"):
    _define(_name, _binary)
for _name in ("add", "sub"):
    _define(_name, _sum)
for _name in ("addcdiv", "addcmul"):
    _define(_name, _product_added)
_define("lerp", _lerp)
del _name


@_public
def clone(inputs, /, *, memory_format=None):
    """A copy of every tensor of a list, as a tuple."""
    return tuple(umbra._foreach_clone(inputs, memory_format=memory_format))


@_public
def copy_(inputs, src, /, *, non_blocking=False):
    """Writes every tensor of `src` to that of `inputs` at its place, and gives `inputs` back."""
    umbra._foreach_copy_(inputs, src, non_blocking)
    return inputs


@_public
def mm(inputs, mat2, /):
    """The products of the matrices of two lists, as a tuple."""
    if not isinstance(mat2, (list, tuple)):
        raise TypeError(f"_foreach_mm(): argument 'mat2' (position 2) must be tuple of Tensors, not {type(mat2).__name__}")
    if not inputs or not mat2:
        raise RuntimeError("_foreach_mm requires non-empty tensor lists")
    if len(inputs) != len(mat2):
        raise RuntimeError("_foreach_mm: self and mat2 must have the same number of tensors")
    return tuple(umbra.mm(a, b) for a, b in zip(inputs, mat2))


@_public
def norm(inputs, /, *, ord=2, dtype=None):
    """The norm of every tensor of a list, as a tuple."""
    return tuple(umbra._foreach_norm(inputs, ord, dtype=dtype))


@_public
def zero_(inputs, /):
    """Fills every tensor of a list with zeros, and gives the list back."""
    umbra._foreach_zero_(inputs)
    return inputs


__all__.sort()
