"""Ranges and kinds of symbolic numbers. Expressions are texts here: there is no sympy."""
from umbra._modules import lazy_submodules

__getattr__ = lazy_submodules(__name__)
