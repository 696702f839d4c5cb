"""The backend that `torch.compile` takes where none is named: its modes and options.

PyTorch's generates code. Here graphs are cut by the min-cut partitioner and run operator by operator, which gives the same numbers; what modes and options
say of generated code has nothing to act on. They are checked all the same, and those that would change the program (passes of the user's) are refused.
"""
import functools
import os

_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
_TYPES = {"bool": bool, "int": int, "float": float, "str": str}


@functools.lru_cache(maxsize=None)
def known_options():
    """The type that each option's value has to have, None for any, by name."""
    with open(os.path.join(os.path.dirname(__file__), "_inductor_options.txt")) as file:
        lines = [line.split() for line in file]
    return {name: _TYPES[wanted[0]] if wanted else None for name, *wanted in lines}


def check(mode, options):
    """Refuses what PyTorch refuses, and options that are a program of the user's."""
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    for given, value in (options or {}).items():
        name = given.replace("-", "_")
        if name not in known_options():
            raise RuntimeError(f"Unexpected optimization option {given}, known options are {list(known_options())}")
        wanted = known_options()[name]
        if wanted is not None and type(value) is not wanted:
            raise RuntimeError(f"Unexpected type of attr {given}, got {type(value).__name__} should be {wanted.__name__}")
        if not isinstance(value, (bool, int, float, str, type(None))):
            raise NotImplementedError(f"torch.compile: the option {given} of the backend 'inductor' is not in Umbra yet: it would change the graphs")
