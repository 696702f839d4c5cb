"""Layers of quantised models: what they are before they are quantised."""
from umbra._modules import lazy_submodules

__getattr__ = lazy_submodules(__name__)
