"""What packages decorate functions with that tell torch's older exporter how to write an operator.

The exporter here writes captured programs and calls no such functions: what it does not know it refuses by name.
"""
import functools
import sys
import types
from importlib.machinery import ModuleSpec


def parse_args(*arg_descriptors):
    """Says how the arguments of such a function are read; it stays as it is."""
    def decorate(function):
        function._arg_descriptors = arg_descriptors
        return function
    return decorate


def quantized_args(*arg_q_descriptors, scale=None, zero_point=None, quantize_output=True):
    """Says which arguments of such a function are quantised; it stays as it is."""
    def decorate(function):
        function._quantized_args = arg_q_descriptors, scale, zero_point, quantize_output
        return function
    return decorate


def _refused(name, *args, **kwargs):
    raise NotImplementedError(f"{name}, which writes operators for torch's older ONNX exporter, is not in Umbra")


class _SymbolicFunctions(types.ModuleType):
    """torch's own functions of this sort, for one version of ONNX's operators."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return functools.partial(_refused, f"{self.__name__.replace('umbra', 'torch', 1)}.{name}")


for _version in range(7, 24):
    _name = f"umbra.onnx.symbolic_opset{_version}"
    _module = sys.modules[_name] = _SymbolicFunctions(_name)
    _module.__spec__ = ModuleSpec(_name, None)
    setattr(sys.modules["umbra.onnx"], f"symbolic_opset{_version}", _module)
