"""Which of PyTorch's functions a program called for a node: the nodes' `torch_fn`."""
import umbra
from umbra import _C
from umbra.overrides import TorchFunctionMode

# What PyTorch's functions and methods are, which are of classes of their own here.
_KINDS = {type(_C.Tensor.add): "method_descriptor", type(umbra.relu): "builtin_function_or_method", type(umbra.tensor): "builtin_function_or_method"}


class NotedFunctions(TorchFunctionMode):
    """While it lasts, nodes are told of the function that they are part of; of functions inside of functions the outermost."""

    def __enter__(self):
        _C._forget_called_functions()
        return super().__enter__()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kind = type(func)
        _C._set_called_function(func, _KINDS.get(kind) or kind.__name__)
        try:
            return func(*args, **kwargs) if kwargs else func(*args)
        finally:
            _C._set_called_function(None)
