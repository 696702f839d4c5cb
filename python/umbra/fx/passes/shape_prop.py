"""Shapes and types of every node from one run on data, written to `meta["tensor_meta"]`."""
from typing import Any, NamedTuple

import umbra
from umbra.fx.interpreter import Interpreter
from umbra.fx.node import map_aggregate


class TensorMetadata(NamedTuple):
    shape: umbra.Size
    dtype: umbra.dtype
    requires_grad: bool
    stride: tuple
    memory_format: Any
    is_quantized: bool
    qparams: dict


def _memory_format(tensor):
    """The first of the known orders in memory that a tensor lies in, or None."""
    formats = {4: umbra.channels_last, 5: umbra.channels_last_3d}
    if tensor.is_contiguous():
        return umbra.contiguous_format
    channels_last = formats.get(tensor.dim())
    return channels_last if channels_last is not None and tensor.is_contiguous(memory_format=channels_last) else None


def _extract_tensor_metadata(result, include_contiguity=True):
    memory_format = _memory_format(result) if include_contiguity else None
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), memory_format, False, {})


class ShapeProp(Interpreter):
    """`ShapeProp(module).propagate(*inputs)` runs the graph and notes what each node gave."""

    def run_node(self, n):
        try:
            result = super().run_node(n)
        except Exception as error:
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        found = False

        def describe(value):
            nonlocal found
            if not isinstance(value, umbra.Tensor):
                return value
            found = True
            return _extract_tensor_metadata(value)
        meta = map_aggregate(result, describe)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args):
        return super().run(*args)
