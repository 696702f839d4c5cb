"""Which of PyTorch's functions a program called for a node: the nodes' `torch_fn`."""
import umbra
from umbra import _C
from umbra.overrides import TorchFunctionMode


class NotedFunctions(TorchFunctionMode):
    """While it lasts, nodes are told of the function that they are part of; of functions inside of functions the outermost.

    What it does at a call stands in the binding (call_noted), since every call of a program comes through it.
    """

    def __enter__(self):
        _C._forget_called_functions()
        return super().__enter__()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return _C._call_noted(func, args, kwargs)


# With what PyTorch's functions and methods are, which are of classes of their own here.
_C._note_functions_by(NotedFunctions, {
    type(_C.Tensor.add): "method_descriptor",
    type(umbra.relu): "builtin_function_or_method",
    type(umbra.tensor): "builtin_function_or_method",
})
