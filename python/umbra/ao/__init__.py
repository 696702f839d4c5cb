"""Quantisation in training: the classes are there to be asked for."""
from umbra._modules import lazy_submodules

__getattr__ = lazy_submodules(__name__)
