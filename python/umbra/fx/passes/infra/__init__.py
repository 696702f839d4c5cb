"""Passes as objects, and how they are run one after the other."""
from umbra._modules import lazy_submodules

__getattr__ = lazy_submodules(__name__)
