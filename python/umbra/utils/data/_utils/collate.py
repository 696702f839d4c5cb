"""Batches from samples, by the type of the samples; a table of one's own teaches it other types.

    collate([Image(...), Image(...)], collate_fn_map={Image: stack_images, **default_collate_fn_map})
"""
import collections.abc
import copy
import re

import umbra
from umbra._C import Tensor

default_collate_err_msg_format = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
np_str_obj_array_pattern = re.compile(r"[SaUO]")


def collate_tensor_fn(batch, *, collate_fn_map=None):
    if batch[0].layout is not umbra.strided and batch[0].layout is not umbra.jagged:
        raise RuntimeError("Batches of sparse tensors are not currently supported by the default collate_fn; please provide a custom collate_fn to "
                           "handle them appropriately.")
    return umbra.stack(list(batch))


def collate_numpy_array_fn(batch, *, collate_fn_map=None):
    if np_str_obj_array_pattern.search(batch[0].dtype.str) is not None:
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    return collate([umbra.as_tensor(sample) for sample in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch, *, collate_fn_map=None):
    return umbra.stack([umbra.as_tensor(sample) for sample in batch])


def collate_float_fn(batch, *, collate_fn_map=None):
    return umbra.tensor(batch, dtype=umbra.float64)


def collate_int_fn(batch, *, collate_fn_map=None):
    return umbra.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    return batch


default_collate_fn_map = {Tensor: collate_tensor_fn}
try:
    import numpy as np
    default_collate_fn_map[np.ndarray] = collate_numpy_array_fn
    default_collate_fn_map[np.bool_, np.number, np.object_] = collate_numpy_scalar_fn
except ImportError:  # samples cannot be NumPy's then
    np = None
default_collate_fn_map.update({float: collate_float_fn, int: collate_int_fn, str: collate_str_fn, bytes: collate_str_fn})


def _function_for(kind, table):
    """That of the type itself, or of the first type in the table that it is derived from."""
    return table.get(kind) or next((function for base, function in table.items() if issubclass(kind, base)), None)


def _like(first, places, values, plain):
    """A container of the first sample's type, with other values: a changed copy, or a new one, or a plain one where neither can be."""
    try:
        if isinstance(first, (collections.abc.MutableMapping, collections.abc.MutableSequence)):
            result = copy.copy(first)
            for place, value in zip(places, values):
                result[place] = value
            return result
        return type(first)(plain(places, values))
    except TypeError:
        return plain(places, values)


def collate(batch, *, collate_fn_map=None):
    """Samples to a batch. `collate_fn_map`: functions of (samples, collate_fn_map=...) by type; containers are gone into."""
    first = batch[0]
    function = _function_for(type(first), collate_fn_map or {})
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, collections.abc.Mapping):
        parts = [collate([sample[key] for sample in batch], collate_fn_map=collate_fn_map) for key in first]
        return _like(first, list(first), parts, lambda keys, values: dict(zip(keys, values)))
    if isinstance(first, collections.abc.Sequence) and not isinstance(first, (str, bytes)):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [collate(samples, collate_fn_map=collate_fn_map) for samples in zip(*batch)]
        if hasattr(first, "_fields"):
            return type(first)(*parts)
        return parts if isinstance(first, tuple) else _like(first, range(len(parts)), parts, lambda _, values: list(values))
    raise TypeError(default_collate_err_msg_format.format(type(first)))


def default_collate(batch):
    """Samples to a batch: tensors are stacked, numbers become a tensor, containers are gone into.

        default_collate([{"x": 1}, {"x": 2}])      # {"x": tensor([1, 2])}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def default_convert(data):
    """A sample as it is given without batches: NumPy's arrays become tensors, in containers too."""
    if isinstance(data, Tensor):
        return data
    if type(data).__module__ == "numpy" and type(data).__name__ not in ("str_", "string_", "bytes_"):
        is_text = type(data).__name__ == "ndarray" and np_str_obj_array_pattern.search(data.dtype.str) is not None
        return data if is_text else umbra.as_tensor(data)
    if isinstance(data, collections.abc.Mapping):
        return _like(data, list(data), map(default_convert, data.values()), lambda keys, values: dict(zip(keys, values)))
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, (str, bytes)):
        try:
            return type(data)(map(default_convert, data))
        except TypeError:
            return [default_convert(value) for value in data]
    return data
