"""Ahead-of-time autograd and function transforms."""
from umbra._modules import lazy_submodules

__getattr__ = lazy_submodules(__name__)
