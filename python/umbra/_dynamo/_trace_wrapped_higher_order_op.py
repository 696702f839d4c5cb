"""Indexing by tensors, kept as an operator where it would be a question for numbers."""
from umbra._C import Tensor
from umbra.overrides import TorchFunctionMode


class TransformGetItemToIndex(TorchFunctionMode):
    """Inside, `x[i, j]` by tensors alone is the operator index, so that vmap may batch scalars `i` and `j`."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        import umbra
        if func in (Tensor.__getitem__,):
            places = args[1] if isinstance(args[1], (tuple, list)) else (args[1],)
            if places and all(isinstance(place, Tensor) for place in places):
                return umbra.ops.aten.index.Tensor(args[0], list(places))
        return func(*args, **(kwargs or {}))
