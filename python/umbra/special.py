"""Operators of ATen's `special_` family under their short names."""
from umbra._modules import operators_named

__getattr__ = operators_named(__name__, "special_")
