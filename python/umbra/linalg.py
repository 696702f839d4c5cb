"""Operators of ATen's `linalg_` family under their short names."""
from umbra._modules import operators_named

__getattr__ = operators_named(__name__, "linalg_")
