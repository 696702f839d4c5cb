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


def _extract_tensor_metadata(result, include_contiguity=True):
    memory_format = umbra.contiguous_format if include_contiguity and result.is_contiguous() else None
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), memory_format, False, {})


class ShapeProp(Interpreter):
    """`ShapeProp(module).propagate(*inputs)` runs the graph and notes what each node gave."""

    def run_node(self, n):
        result = super().run_node(n)
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
