"""Tracer and symbolic_trace: a Python function run on Proxies, so that what it does becomes a graph."""
import builtins
import contextlib
import dataclasses
import enum
import functools
import inspect
import math
import sys
import types
import warnings

import umbra
from umbra import _C
from umbra._C import Tensor
from umbra._ops import OpOverload
from umbra.fx.graph import Graph
from umbra.fx.graph_module import GraphModule
from umbra.fx.node import Node
from umbra.fx.proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase, find_tracer
from umbra.nn import Module, Parameter, Sequential
from umbra.compiler import _fx_tracing
from umbra.utils import _pytree as pytree

_wrapped = []  # (globals of a module, name): functions that graphs call whole


# What stands in a graph as it is.
_LITERALS = (Node, str, int, float, bool, complex, type(None), type(...), range, enum.Enum, umbra.dtype, umbra.device, umbra.memory_format, umbra.layout,
             umbra.Generator, umbra.SymInt, umbra.SymFloat, umbra.SymBool, OpOverload)


class PHBase:
    """Stands for an input among concrete arguments: `concrete_args={"pair": (PH, PH)}`."""

    def __repr__(self):
        return "PH"


PH = PHBase()


def _assert_is_none(value, message):
    assert value is None, message


def wrap(fn_or_name):
    """At module scope: the function becomes one node wherever it meets a Proxy. `wrap("len")`, or a decorator."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped.append((frame.f_globals, name))
    return fn_or_name


def _recorder(function, canonical=False):
    """Calls `function`, or records the call where a Proxy is among the arguments."""
    @functools.wraps(function)
    def call(*args, **kwargs):
        tracer = find_tracer(args, kwargs)
        if tracer is None:
            return function(*args, **kwargs)
        if canonical:
            args, kwargs = _canonical(function, args, kwargs)
        proxy = tracer.create_proxy("call_function", function, args, kwargs)
        if not function.__module__.startswith("umbra"):
            proxy.node.meta["is_wrapped"] = True
        return proxy
    return call


def _canonical(function, args, kwargs):
    """Arguments as torch.nn.functional's functions hand them on: what has a default by name, the rest by position."""
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    positional, keywords = [], {}
    for name, parameter in bound.signature.parameters.items():
        value = bound.arguments[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += value
        elif parameter.kind is parameter.VAR_KEYWORD:
            keywords.update(value)
        elif parameter.default is parameter.empty:
            positional.append(value)
        else:
            keywords[name] = value
    return tuple(positional), keywords


class _Patches:
    """Attributes and globals that are others for a while."""

    def __init__(self):
        self.undo = []

    def attribute(self, owner, name, value):
        self.undo.append(functools.partial(setattr, owner, name, owner.__dict__[name]))
        setattr(owner, name, value)

    def entry(self, table, name, value):
        if name in table:
            self.undo.append(functools.partial(table.__setitem__, name, table[name]))
        else:
            self.undo.append(functools.partial(table.pop, name, None))
        table[name] = value

    def close(self):
        for undo in reversed(self.undo):
            undo()


class Tracer(TracerBase):
    """Records a module or function. Subclasses say what is a leaf and what becomes of arguments, calls and attributes."""
    proxy_buffer_attributes = False  # buffers become nodes as parameters do

    def __init__(self, autowrap_modules=(math,), autowrap_functions=(), param_shapes_constant=False):
        self.autowrap_modules = tuple(autowrap_modules)
        self.autowrap_functions = tuple(autowrap_functions)
        self.param_shapes_constant = param_shapes_constant
        self.root = None
        self.traced_func_name = "forward"
        self.module_stack, self.num_calls = {}, {}
        self.scope = Scope("", None)
        self.tensor_attrs = {}
        self._attribute_proxies = {}

    # ---- what may be overridden ----

    def is_leaf_module(self, m, module_qualified_name):
        """Modules of the library are called whole, users' own are traced through."""
        return (m.__module__.startswith(("umbra.nn", "torch.nn"))) and not isinstance(m, Sequential)

    def path_of_module(self, mod):
        for path, module in self.root.named_modules():
            if module is mod:
                return path
        raise NameError("module is not installed as a submodule")

    def call_module(self, m, forward, args, kwargs):
        path = self.path_of_module(m)
        key = self._enter_module(m, path)
        try:
            with ScopeContextManager(self.scope, Scope(path, type(m))):
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
        finally:
            del self.module_stack[key]

    def _enter_module(self, module, path):
        """Notes that a module is running; its key tells one call of it from another."""
        calls = self.num_calls.get(path, 0)
        self.num_calls[path] = calls + 1
        key = path if calls == 0 else f"{path}@{calls}"
        self.module_stack[key] = (path, type(module))
        return key

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        node = super().create_node(kind, target, args, kwargs, name, type_expr)
        if self.module_stack:
            node.meta["nn_module_stack"] = dict(self.module_stack)
        return node

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        named = ()
        if isinstance(attr_val, Parameter):
            named = self.root.named_parameters()
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            named = self.root.named_buffers()
        for path, value in named:
            if value is attr_val:
                if path not in parameter_proxy_cache:
                    factory = (lambda node: ParameterProxy(node, self, path, attr_val)) if self.param_shapes_constant else None
                    parameter_proxy_cache[path] = self.create_proxy("get_attr", path, (), {}, proxy_factory_fn=factory)
                return parameter_proxy_cache[path]
        return attr_val

    def create_arg(self, a):
        """The argument as a graph has it: nodes for Proxies and attributes, literals, and nests of them. Named tuples and dataclasses are made by a
        node of their own."""
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(self.create_arg(item) for item in a), {})
        if isinstance(a, (tuple, list)):
            return type(a)(self.create_arg(item) for item in a) if type(a) in (tuple, list) else tuple(self.create_arg(item) for item in a)
        if isinstance(a, dict):
            return {key: self.create_arg(value) for key, value in super().create_arg(a).items()}
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            fields = {field.name: self.create_arg(getattr(a, field.name)) for field in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), fields)
        return self._leaf_argument(a)

    def _leaf_argument(self, a):
        if isinstance(a, Parameter):
            for path, parameter in self.root.named_parameters():
                if parameter is a:
                    return self.create_node("get_attr", path, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, Tensor):
            for path, buffer in self.root.named_buffers():
                if buffer is a:
                    return self.create_node("get_attr", path, (), {})
            return self.create_node("get_attr", self._constant_path(a), (), {})
        if isinstance(a, Module) and any(module is a for module in self.root.modules()):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        if not isinstance(a, _LITERALS):
            raise NotImplementedError(f"argument of type: {type(a)}")
        return a

    def _constant_path(self, tensor):
        """The attribute of the root that holds a tensor; a new one where there is none."""
        for path, (known, value) in self.tensor_attrs.items():
            if value is tensor and known is self.root:
                return path
        for name, value in self.root.__dict__.items():
            if value is tensor:
                return name
        number = 0
        while hasattr(self.root, f"_tensor_constant{number}"):
            number += 1
        path = f"_tensor_constant{number}"
        self.tensor_attrs[path] = (self.root, tensor)
        setattr(self.root, path, tensor)
        return path

    # ---- tracing ----

    def create_args_for_root(self, root_fn, is_module, concrete_args=None):
        """Placeholders for the function's parameters, after the module itself."""
        code = inspect.unwrap(root_fn).__code__
        parameters = inspect.signature(inspect.unwrap(root_fn)).parameters
        names = list(code.co_varnames[:code.co_argcount + code.co_kwonlyargcount])
        args = [self.root] if is_module else []
        skipped = 1 if is_module else 0
        concrete = concrete_args or {}
        if isinstance(concrete, tuple):
            given = names[skipped:]
            if len(given) != len(concrete):
                raise RuntimeError(f"Tracing expected {len(given)} arguments but got {len(concrete)} concrete arguments")
            concrete = dict(zip(given, concrete))
        keywords, annotations = {}, getattr(inspect.unwrap(root_fn), "__annotations__", {})
        for position, name in enumerate(names[skipped:], skipped):
            value = self._argument_for(name, parameters[name].default, concrete, annotations.get(name))
            if position < code.co_argcount:
                args.append(value)
            else:
                keywords[name] = value
        rest = code.co_argcount + code.co_kwonlyargcount
        starred = None
        if code.co_flags & inspect.CO_VARARGS:
            starred = self._placeholder("*" + code.co_varnames[rest])
            rest += 1
        double_starred = self._placeholder("**" + code.co_varnames[rest]) if code.co_flags & inspect.CO_VARKEYWORDS else None
        return args, keywords, starred, double_starred

    def _placeholder(self, name, default=inspect.Parameter.empty, type_expr=None):
        return self.create_proxy("placeholder", name, () if default is inspect.Parameter.empty else (default,), {}, type_expr=type_expr)

    def _argument_for(self, name, default, concrete, type_expr):
        if name not in concrete:
            return self._placeholder(name, default, type_expr)
        value = concrete[name]
        leaves, spec = pytree.tree_flatten(value)
        if spec.is_leaf():
            return self._concrete_leaf(name, name + "_1", value, default)
        return pytree.tree_unflatten([self._concrete_leaf(name, f"{name}_{i}", leaf) for i, leaf in enumerate(leaves, 1)], spec)

    def _concrete_leaf(self, name, label, value, default=inspect.Parameter.empty):
        if isinstance(value, PHBase):
            return self._placeholder(label, default)
        given = self._placeholder(label, default)
        if not isinstance(value, (int, float, str, bool, type(None))):
            warnings.warn(f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to the user to "
                          "make sure that your inputs match the inputs you specialized the function with.", stacklevel=2)
            return value
        message = f"{name} has been specialized to have value {value} but got another value"
        if value is None:
            self.create_proxy("call_function", _assert_is_none, (given, message), {})
        else:
            self.create_proxy("call_function", umbra._assert, (given == value, message), {})
        return value

    def trace(self, root, concrete_args=None):
        """The graph of a module's forward, or of a function."""
        if isinstance(root, Module):
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}")
            self.root, function = root, getattr(type(root), self.traced_func_name)
        else:
            self.root, function = Module(), root
        self.graph = Graph()
        self.graph._tracer_cls = type(self)
        self.tensor_attrs, self._attribute_proxies = {}, {}
        self.module_stack, self.num_calls = {}, {}
        if isinstance(root, GraphModule) and function is GraphModule.forward:
            return self._trace_again(root)
        args, keywords, starred, double_starred = self.create_args_for_root(function, isinstance(root, Module), concrete_args)
        with _fx_tracing(), self._recording(function):
            result = _call(function, args, keywords, starred, double_starred)
        given = pytree.tree_flatten(tuple(args[isinstance(root, Module):]))[1]
        if any(not child.is_leaf() for child in given.children()):
            result, results = pytree.tree_flatten(result)
            self.graph._specs = given, results
            code = inspect.unwrap(function).__code__
            self.graph._set_pytree(list(code.co_varnames[isinstance(root, Module):code.co_argcount]), None, True)
        self.create_node("output", "output", (self.create_arg(result),), {}, type_expr=getattr(function, "__annotations__", {}).get("return"))
        return self.graph

    def _trace_again(self, module):
        """A graph has its parameters in its placeholders, not in the signature of its class."""
        inputs = [self._placeholder(node.target, *node.args) for node in module.graph.nodes if node.op == "placeholder"]
        with self._recording(None):
            result = module._run_in_python(inputs)
        self.create_node("output", "output", (self.create_arg(result),), {})
        return self.graph

    @contextlib.contextmanager
    def _recording(self, function):
        patches = _Patches()
        original_call, original_getattr = Module.__call__, Module.__getattr__

        def call(module, *args, **kwargs):
            return self.call_module(module, lambda *a, **k: original_call(module, *a, **k), args, kwargs)

        def get_attribute(module, name):
            return self.getattr(name, original_getattr(module, name), self._attribute_proxies)
        try:
            patches.attribute(Module, "__call__", call)
            patches.attribute(Module, "__getattr__", get_attribute)
            self._patch_functions(patches, getattr(inspect.unwrap(function), "__globals__", {}) if function else {})
            yield
        finally:
            patches.close()
            _C._look_up_all_members_in_c()

    def _patch_functions(self, patches, function_globals):
        for module in (umbra.nn.functional, umbra):
            for name, value in list(vars(module).items()):
                if isinstance(value, types.FunctionType) and not name.startswith("__") and value.__module__.startswith("umbra"):
                    patches.attribute(module, name, _recorder(value, canonical=module is umbra.nn.functional))
        for module in self.autowrap_modules:
            for name, value in list(vars(module).items()):
                if callable(value) and not name.startswith("_"):
                    patches.attribute(module, name, _recorder(value))
        for name, value in list(function_globals.items()):
            if isinstance(value, types.FunctionType) and value in self.autowrap_functions:
                patches.entry(function_globals, name, _recorder(value))
        for table, name in _wrapped:
            original = table.get(name, getattr(builtins, name, None))
            if original is not None:
                patches.entry(table, name, _recorder(original))


def _call(function, args, keywords, starred, double_starred):
    """Calls a function whose `*args` and `**kwargs` are one Proxy each."""
    if starred is None and double_starred is None:
        return function(*args, **keywords)
    original = inspect.unwrap(function)
    code = original.__code__
    flags = code.co_flags & ~(inspect.CO_VARARGS if starred is not None else 0) & ~(inspect.CO_VARKEYWORDS if double_starred is not None else 0)
    extra = [value for value in (starred, double_starred) if value is not None]
    names = list(code.co_varnames[:code.co_argcount + code.co_kwonlyargcount + len(extra)])
    values = dict(zip(names, [*args, *keywords.values(), *extra]))
    plain = code.replace(co_argcount=len(names), co_kwonlyargcount=0, co_flags=flags)
    called = types.FunctionType(plain, original.__globals__, original.__name__, None, original.__closure__)
    return called(*[values[name] for name in names])


def symbolic_trace(root, concrete_args=None):
    """The graph module of a module or function, run on Proxies.

        traced = symbolic_trace(lambda x: torch.relu(x).view(-1))
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else getattr(root, "__name__", type(root).__name__)
    module = GraphModule(tracer.root, graph, name)
    if graph._specs != (None, None):
        module._in_spec, module._out_spec = graph._specs
    return module
