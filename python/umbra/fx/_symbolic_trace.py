"""Tracer and symbolic_trace: a Python function run on Proxies, so that what it does becomes a graph."""
import builtins
import collections
import copy
import dataclasses
import enum
import functools
import inspect
import math
import sys
import types
import warnings
from types import FunctionType  # noqa: F401

import umbra
from umbra import _C
from umbra._C import Tensor
from umbra._ops import OpOverload
from umbra.fx._compatibility import compatibility  # noqa: F401
from umbra.fx.graph import Graph
from umbra.fx.graph_module import GraphModule
from umbra.fx.node import Node
from umbra.fx.proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase, find_tracer
from umbra.nn import Module, Parameter, Sequential
from umbra.compiler import _fx_tracing, _is_fx_tracing as is_fx_tracing
from umbra.utils import _pytree as pytree
from umbra.utils._contextlib import uninterrupted

_wrapped = []  # (globals of a module, name): functions that graphs call whole


# What stands in a graph as it is.
_LITERALS = (Node, str, int, float, bool, complex, type(None), type(...), range, enum.Enum, umbra.dtype, umbra.device, umbra.memory_format, umbra.layout,
             umbra.Generator, umbra.SymInt, umbra.SymFloat, umbra.SymBool, OpOverload)


class PHBase:
    """Stands for an input among concrete arguments: `concrete_args={"pair": (PH, PH)}`."""

    def __repr__(self):
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """An input whose node gets the attributes of this object: `node.ph_key`."""

    def __init__(self, ph_key=None):
        self.ph_key = ph_key


class ProxyableClassMeta(type):
    """A metaclass: while a program is traced, making an object of such a class of Proxies is a call in the graph."""

    def __call__(cls, *args, **kwargs):
        tracer = find_tracer(args, kwargs) if is_fx_tracing() else None
        if tracer is not None:
            return tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


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


class _Patcher:
    """Attributes and globals that are others inside of a `with`. Tracers of other packages that trace by themselves make their own."""

    def __init__(self):
        self._undo, self._visited = [], set()

    def patch_method(self, cls, name, new_fn, deduplicate=True):
        """Lets the class have `new_fn`. With `deduplicate`, it stays what a later call finds there."""
        if getattr(getattr(cls, name, None), "__fx_already_patched", False):
            return
        new_fn.__fx_already_patched = deduplicate
        if name in cls.__dict__:
            self._undo.append(functools.partial(setattr, cls, name, cls.__dict__[name]))
        else:
            self._undo.append(functools.partial(delattr, cls, name))
        setattr(cls, name, new_fn)

    def patch(self, frame_dict, name, new_fn, deduplicate=True):
        """Lets the dictionary have `new_fn`. With `deduplicate`, it stays what a later call finds there."""
        if getattr(frame_dict.get(name), "__fx_already_patched", False):
            return
        new_fn.__fx_already_patched = deduplicate
        if name in frame_dict:
            self._undo.append(functools.partial(frame_dict.__setitem__, name, frame_dict[name]))
        else:
            self._undo.append(functools.partial(frame_dict.pop, name, None))
        frame_dict[name] = new_fn

    def visit_once(self, thing):
        """Whether this is the first time that it is asked for the thing."""
        seen = id(thing) in self._visited
        self._visited.add(id(thing))
        return not seen

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()
        self._visited.clear()
        _C._look_up_all_members_in_c()


def _autowrap_check(patcher, frame_dict, function_ids):
    """Functions that a tracer calls whole, where a table of globals has them: `from math import sqrt`."""
    if not patcher.visit_once(frame_dict):
        return
    for name, value in list(frame_dict.items()):
        if not name.startswith("_") and callable(value) and id(value) in function_ids:
            patcher.patch(frame_dict, name, _recorder(value))


def _patch_wrapped_functions(patcher):
    """Functions that `wrap` was called for."""
    for table, name in _wrapped:
        original = table.get(name, getattr(builtins, name, None))
        if original is not None:
            patcher.patch(table, name, _recorder(original))


# Read from here by such tracers, as `compatibility` and FunctionType are.
_orig_module_call, _orig_module_getattr, ScriptObject = Module.__call__, Module.__getattr__, _C._jit_Object


class Tracer(TracerBase):
    """Records a module or function. Subclasses say what is a leaf and what becomes of arguments, calls and attributes."""
    proxy_buffer_attributes = False  # buffers become nodes as parameters do

    def __init__(self, autowrap_modules=(math,), autowrap_functions=(), param_shapes_constant=False):
        self.autowrap_modules = tuple(autowrap_modules)
        self.autowrap_functions = tuple(autowrap_functions)
        self._autowrap_search = list(self.autowrap_modules)
        self._autowrap_function_ids = {id(value) for module in self.autowrap_modules for name, value in vars(module).items()
                                       if not name.startswith("_") and callable(value)}
        self._autowrap_function_ids.update(map(id, self.autowrap_functions))
        self.param_shapes_constant = param_shapes_constant
        self.root = None
        self.traced_func_name = "forward"
        self.module_stack, self.num_calls = collections.OrderedDict(), {}
        self.scope = Scope("", None)
        self.tensor_attrs = {}
        self._attribute_proxies = {}

    def __deepcopy__(self, memo):
        """A tracer with copies of all that it has but modules of Python's, which stay the same."""
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        for key, value in self.__dict__.items():
            shared = key in ("autowrap_modules", "autowrap_functions", "_autowrap_search", "root")
            made.__dict__[key] = value if shared else copy.deepcopy(value, memo)
        return made

    # ---- what may be overridden ----

    def is_leaf_module(self, m, module_qualified_name):
        """Modules of the library are called whole, users' own are traced through."""
        return getattr(m, "_called_whole", False) or m.__module__.startswith(("umbra.nn", "torch.nn")) and not isinstance(m, Sequential)

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
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
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
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(self.create_arg(item) for item in a), {})
        if isinstance(a, (tuple, list)):
            return (list if isinstance(a, list) else tuple)(self.create_arg(item) for item in a)
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
        if isinstance(type(a), ProxyableClassMeta):
            return self.create_node("get_attr", self._object_path(a), (), {})
        if not isinstance(a, _LITERALS):
            raise NotImplementedError(f"argument of type: {type(a)}")
        return a

    def _object_path(self, a):
        """The new attribute of the root that holds an object which the program made of values alone."""
        number = 0
        while hasattr(self.root, f"_{type(a).__name__}_constant_{number}"):
            number += 1
        path = f"_{type(a).__name__}_constant_{number}"
        setattr(self.root, path, a)
        return path

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
        """The function to run, and what to call it with: the module itself, and placeholders for the function's parameters."""
        analysed = inspect.unwrap(root_fn)
        assert isinstance(analysed, types.FunctionType), f"Expected FunctionType, got {type(analysed)}"
        code, parameters = analysed.__code__, inspect.signature(analysed).parameters
        count, has_stars = code.co_argcount + code.co_kwonlyargcount, code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
        if is_module and count == 0:
            raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        args = [self.root] if is_module else []
        if isinstance(concrete_args, tuple) and concrete_args and has_stars and count == 1:
            return root_fn, args + [self._marked(self._placeholder(f"input_{i}"), value) for i, value in enumerate(concrete_args)]
        names, annotations = code.co_varnames[len(args):count], getattr(analysed, "__annotations__", {})
        concrete = concrete_args or {}
        if isinstance(concrete, tuple):
            if len(names) != len(concrete):
                raise RuntimeError(f"Tracing expected {len(names)} arguments but got {len(concrete)} concrete arguments")
            concrete = dict(zip(names, concrete))
        args += [self._argument_for(name, parameters[name].default, concrete, annotations.get(name)) for name in names]
        starred = iter(code.co_varnames[count:])
        for flag, mark in ((inspect.CO_VARARGS, "*"), (inspect.CO_VARKEYWORDS, "**")):
            if code.co_flags & flag:
                args.append(self._placeholder(mark + next(starred)))
        if code.co_kwonlyargcount or has_stars:
            return _by_position(root_fn, len(args)), args
        return root_fn, args

    def _placeholder(self, name, default=inspect.Parameter.empty, type_expr=None):
        return self.create_proxy("placeholder", name, () if default is inspect.Parameter.empty else (default,), {}, type_expr=type_expr)

    @staticmethod
    def _marked(proxy, value):
        """A placeholder whose node has what the user wrote on the object that stood for it; what the node has already stays."""
        if isinstance(value, PHBase):
            for key, attribute in vars(value).items():
                if not hasattr(proxy.node, key):
                    setattr(proxy.node, key, attribute)
        return proxy

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
            return self._marked(self._placeholder(label, default), value)
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
        if isinstance(root, GraphModule) and function in (GraphModule.forward, getattr(type(root), "_forward_of_graph", None)):
            function = root._forward_function()  # whose parameters are the graph's
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs, self._attribute_proxies = {}, {}
        self.module_stack, self.num_calls = collections.OrderedDict(), {}
        is_module = isinstance(root, Module)
        called, args = self.create_args_for_root(function, is_module, concrete_args)
        with _fx_tracing(), self._recording(function):
            result = called(*args)
        given = pytree.tree_flatten(tuple(args[is_module:]))[1]
        if any(not child.is_leaf() for child in given.children()):
            result, results = pytree.tree_flatten(result)
            self.graph._specs = given, results
            code = inspect.unwrap(function).__code__
            self.graph._set_pytree(list(code.co_varnames[is_module:code.co_argcount]), None, True)
        self.create_node("output", "output", (self.create_arg(result),), {}, type_expr=getattr(function, "__annotations__", {}).get("return"))
        return self.graph

    @uninterrupted
    def _recording(self, function):
        original_call, original_getattr = Module.__call__, Module.__getattr__

        def call(module, *args, **kwargs):
            return self.call_module(module, lambda *a, **k: original_call(module, *a, **k), args, kwargs)

        def get_attribute(module, name):
            return self.getattr(name, original_getattr(module, name), self._attribute_proxies)
        with _Patcher() as patcher:
            patcher.patch_method(Module, "__call__", call)
            patcher.patch_method(Module, "__getattr__", get_attribute)
            for module in (umbra.nn.functional, umbra):
                for name, value in list(vars(module).items()):
                    if isinstance(value, types.FunctionType) and not name.startswith("__") and value.__module__.startswith("umbra"):
                        canonical = module is umbra.nn.functional or getattr(umbra.functional, name, None) is value
                        patcher.patch(vars(module), name, _recorder(value, canonical))
            for table in (*map(vars, self._autowrap_search), getattr(inspect.unwrap(function), "__globals__", {}) if function else {}):
                _autowrap_check(patcher, table, self._autowrap_function_ids)
            _patch_wrapped_functions(patcher)
            yield


def _by_position(function, count):
    """A function that takes all by position: what has to be given by name, and `*args` and `**kwargs`, of which each is one Proxy."""
    original = inspect.unwrap(function)
    code = original.__code__
    plain = code.replace(co_argcount=count, co_kwonlyargcount=0, co_posonlyargcount=0, co_flags=code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS))
    return types.FunctionType(plain, original.__globals__, original.__name__, None, original.__closure__)


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
