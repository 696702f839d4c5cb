"""Helpers: pytrees, dispatch modes, devices."""
from umbra._modules import lazy_submodules


def set_module(obj, mod):
    """Sets the module that a class or function says it is of."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


__getattr__ = lazy_submodules(__name__)
