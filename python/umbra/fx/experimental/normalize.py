"""Calls written out: every parameter by name, operators by the functions of the package."""
import operator

import umbra
from umbra.fx.interpreter import Transformer
from umbra.fx.node import map_aggregate
from umbra.fx.operator_schemas import create_type_hint, normalize_function, normalize_module

__all__ = ["NormalizeArgs", "NormalizeOperators"]


class NormalizeArgs(Transformer):
    """Arguments of functions and modules of the package by name, defaults written out."""

    def __init__(self, module, normalize_to_only_use_kwargs=True):
        super().__init__(module)
        self.node_map = {}
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs

    def run_node(self, n):
        args, kwargs = self.fetch_args_kwargs_from_env(n)

        def type_of(value):
            return value.meta.get("type") if isinstance(value, umbra.fx.Node) else type(value)
        if n.op == "call_function":
            arg_types = tuple(create_type_hint(t) for t in map_aggregate(n.args, type_of))
            kwarg_types = {key: create_type_hint(map_aggregate(value, type_of)) for key, value in n.kwargs.items()}
            out = self.call_function(n.target, args, kwargs, arg_types, kwarg_types)
        else:
            out = super().run_node(n)
        if n.op != "output":
            self.node_map[out] = n
            out.node.meta = n.meta
            out.node.type = n.type
        return out

    def call_function(self, target, args, kwargs, arg_types=None, kwarg_types=None):
        if not callable(target):
            raise AssertionError(f"Expected callable target, got {type(target)}")
        try:
            written = normalize_function(target, args, kwargs, arg_types, kwarg_types, self.normalize_to_only_use_kwargs)
        except RuntimeError:  # several overloads fit
            written = None
        if written:
            args, kwargs = written
        return super().call_function(target, args, kwargs)

    def call_module(self, target, args, kwargs):
        written = normalize_module(self.module, target, args, kwargs, self.normalize_to_only_use_kwargs)
        if written:
            args, kwargs = written
        return super().call_module(target, args, kwargs)


class NormalizeOperators(NormalizeArgs):
    """Python's arithmetic on tensors as calls of the package's functions."""

    binary_magic_method_remap = {
        umbra.add: operator.add, umbra.mul: operator.mul, umbra.sub: operator.sub, umbra.div: operator.truediv, umbra.floor_divide: operator.floordiv,
        umbra.remainder: operator.mod, umbra.eq: operator.eq, umbra.ne: operator.ne, umbra.lt: operator.lt, umbra.le: operator.le, umbra.gt: operator.gt,
        umbra.ge: operator.ge,
    }

    def call_function(self, target, args, kwargs, arg_types=None, kwarg_types=None):
        if target in self.binary_magic_method_remap and len(args) == 2 and not kwargs:
            target = self.binary_magic_method_remap[target]
            return Transformer.call_function(self, target, args, kwargs)
        return super().call_function(target, args, kwargs, arg_types, kwarg_types)
