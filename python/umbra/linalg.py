"""Operators of ATen's `linalg_` family under their short names."""
from umbra import _C


def __getattr__(name):
    if name.startswith("__") or not _C._overload_names("aten::linalg_" + name):
        raise AttributeError(f"module 'umbra.linalg' has no attribute '{name}'")
    function = globals()[name] = _C._find_function("aten::linalg_" + name, 1)
    return function
