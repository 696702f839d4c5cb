"""Operators of ATen's `special_` family under their short names."""
from umbra import _C


def __getattr__(name):
    if name.startswith("__") or not _C._overload_names("aten::special_" + name):
        raise AttributeError(f"module 'umbra.special' has no attribute '{name}'")
    function = globals()[name] = _C._find_function("aten::special_" + name, 1)
    return function
