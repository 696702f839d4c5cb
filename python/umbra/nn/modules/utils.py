"""Numbers for each dimension."""
import collections
import types
from itertools import repeat


def own_constructors(*classes):
    """Gives classes the constructor that they inherit as one of their own: errors about its arguments name the class that was called."""
    for cls in classes:
        inherited = cls.__init__
        own = types.FunctionType(inherited.__code__, inherited.__globals__, "__init__", inherited.__defaults__, inherited.__closure__)
        own.__kwdefaults__, own.__annotations__ = inherited.__kwdefaults__, inherited.__annotations__
        own.__qualname__, own.__module__, own.__doc__ = f"{cls.__qualname__}.__init__", cls.__module__, inherited.__doc__
        cls.__init__ = own


def _ntuple(n, name="parse"):
    def parse(x):
        return tuple(x) if isinstance(x, collections.abc.Iterable) else tuple(repeat(x, n))
    parse.__name__ = name
    return parse


_single, _pair, _triple, _quadruple = _ntuple(1, "_single"), _ntuple(2, "_pair"), _ntuple(3, "_triple"), _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t, n):
    """Each element `n` times, the last one first."""
    return tuple(x for x in reversed(t) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict, prefix):
    """Takes a prefix off the names of a state dict, in place."""
    for key in list(state_dict.keys()):
        if key.startswith(prefix):
            state_dict[key[len(prefix):]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    for key in list(metadata or ()):
        if key and key.startswith(prefix.rstrip(".")):
            metadata[key[len(prefix):]] = metadata.pop(key)
