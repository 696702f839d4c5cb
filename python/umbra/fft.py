"""Operators of ATen's `fft_` family under their short names."""
from umbra import _C


def __getattr__(name):
    if name.startswith("__") or not _C._overload_names("aten::fft_" + name):
        raise AttributeError(f"module 'umbra.fft' has no attribute '{name}'")
    function = globals()[name] = _C._find_function("aten::fft_" + name, 1)
    return function
