"""Operators of ATen's `special_` family under their short names."""
from umbra._modules import operators_named as _operators_named

__getattr__, __dir__ = _operators_named(__name__, "special_")
