"""Samples in pinned memory."""
import collections.abc
import copy

from umbra._C import Tensor


def pin_memory(data, device=None):
    """The data with its tensors pinned: those in containers, and objects that have a `pin_memory` of their own."""
    if isinstance(data, Tensor):
        return data.pin_memory()
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, collections.abc.Mapping):
        return _like(data, {key: pin_memory(value, device) for key, value in data.items()}, dict)
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(value, device) for value in data))
    if isinstance(data, tuple):
        return [pin_memory(value, device) for value in data]
    if isinstance(data, collections.abc.Sequence):
        return _like(data, [pin_memory(value, device) for value in data], list)
    return data


def _like(data, pinned, plain):
    """`pinned` in a container of the type of `data`, or in a plain one where that cannot be."""
    try:
        if isinstance(data, (collections.abc.MutableMapping, collections.abc.MutableSequence)):
            result = copy.copy(data)
            for place, value in pinned.items() if plain is dict else enumerate(pinned):
                result[place] = value
            return result
        return type(data)(pinned)
    except TypeError:
        return pinned
