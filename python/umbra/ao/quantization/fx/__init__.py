"""Quantisation of captured graphs: its operators are here, its passes are not."""
from umbra._modules import lazy_submodules

__getattr__ = lazy_submodules(__name__)
