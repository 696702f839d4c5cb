"""Proxy: stands for a value that is not there yet; what is done with it becomes nodes of a graph."""
import copy
import operator
import os
import sys
import traceback

from umbra._C import Tensor
from umbra.fx.graph import Graph
from umbra.fx.node import Node, map_aggregate
from umbra.fx.traceback import current_annotations, get_current_meta, has_preserved_node_meta

_ITERATION = ("Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or **kwargs function argument. "
              "See the torch.fx docs on pytorch.org for a more detailed explanation of what types of control flow can be traced, and check out the "
              "Proxy docstring for help troubleshooting Proxy iteration errors")


# What nodes take over from the one that is being run again (`fx.traceback.preserve_node_meta`).
_INHERITED = ("nn_module_stack", "torch_fn", "source_fn_stack", "original_aten", "recompute", "ac_graph_id", "has_backward_hook", "from_node",
              "quantization_tag", "_numeric_debug_handle", "custom", "partitioner_tag")
_METHOD = type(Tensor.add)  # methods of tensors, also where an operator (`+`) has found them


class TraceError(ValueError):
    pass


class Scope:
    """The module that is traced: its path and its class."""

    def __init__(self, module_path, module_type):
        self.module_path, self.module_type = module_path, module_type


class ScopeContextManager:
    """Makes a scope that of a called module while it runs."""

    def __init__(self, scope, current_scope):
        self._scope, self._before = scope, copy.copy(scope)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type

    def __enter__(self):
        return self._scope

    def __exit__(self, *exception):
        self._scope.module_path, self._scope.module_type = self._before.module_path, self._before.module_type


class TracerBase:
    """Makes nodes, and says what is to happen where a program asks a Proxy for more than a node can give."""
    graph: Graph

    record_stack_traces = False
    check_mutable_operations = False  # whether a function whose schemas write to their arguments is refused

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        if kind == "call_function" and self.check_mutable_operations:
            from umbra.fx.operator_schemas import check_for_mutable_operation  # which knows proxies
            check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        if custom := current_annotations():
            node.meta["custom"] = custom
        if has_preserved_node_meta():
            current = get_current_meta()
            for key in _INHERITED:
                if key in current:
                    node.meta[key] = copy.copy(current[key])
            if current.get("stack_trace"):
                node.stack_trace = current["stack_trace"]
        return node

    def proxy(self, node):
        return Proxy(node, self)

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None):
        node = self.create_node(kind, target, self.create_arg(tuple(args)), self.create_arg(dict(kwargs)), name, type_expr)
        if self.record_stack_traces and node.stack_trace is None:
            node.stack_trace = _users_stack()
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def create_arg(self, a):
        """The argument with Proxies replaced by their nodes."""
        if isinstance(a, dict):
            for key in a:
                if isinstance(key, Proxy):
                    raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key.node}")
        return map_aggregate(a, lambda leaf: leaf.node if isinstance(leaf, Proxy) else leaf)

    def to_bool(self, obj):
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj):
        """Unpacking to a known number of names is the one iteration that can be recorded."""
        count = _unpacked_count(sys._getframe(2))
        if count is None:
            raise TraceError(_ITERATION)
        return (obj[i] for i in range(count))

    def keys(self, obj):
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    def __init__(self, graph):
        self.graph = graph


def _users_stack():
    """The lines of the program that is being traced, outermost first."""
    library = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    frames = [frame for frame in traceback.extract_stack() if not frame.filename.startswith(library)]
    return "".join(traceback.StackSummary.from_list(frames).format()).strip()


def _unpacked_count(frame):
    """How many names `a, b = proxy` has, where that is what the frame is doing."""
    import dis
    instruction = next((i for i in dis.get_instructions(frame.f_code) if i.offset == frame.f_lasti), None)
    return instruction.argval if instruction is not None and instruction.opname == "UNPACK_SEQUENCE" else None


def _proxies(value):
    if isinstance(value, Proxy):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _proxies(item)
    elif isinstance(value, dict):
        yield from _proxies(tuple(value.values()))
    elif isinstance(value, slice):
        yield from _proxies((value.start, value.stop, value.step))


def find_tracer(args, kwargs):
    """The tracer of the first Proxy among a call's arguments, or None."""
    return next((proxy.tracer for proxy in _proxies((args, kwargs))), None)


class Proxy:
    """A value of a program that is being recorded.

        graph = fx.Graph()
        x = fx.Proxy(graph.placeholder("x"))
        graph.output((torch.relu(x) + x.neg()).node)
    """

    def __init__(self, node, tracer=None):
        self.node = node
        self.tracer = tracer if tracer is not None else GraphAppendingTracer(node.graph)

    def __repr__(self):
        return f"Proxy({self.node.name})"

    def __getattr__(self, name):
        if name in ("node", "tracer"):  # not set yet: a copy is being made
            raise AttributeError(name)
        return Attribute(self, name)

    def __deepcopy__(self, memo):
        """A Proxy of the copied node: its whole graph is copied with it."""
        graph = copy.deepcopy(self.node.graph, memo)
        node = next(n for n in graph.nodes if n.name == self.node.name)
        tracer = copy.deepcopy(self.tracer, memo) if not isinstance(self.tracer, GraphAppendingTracer) else None
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        made.node, made.tracer = node, tracer if tracer is not None else GraphAppendingTracer(graph)
        memo[id(self)] = made
        return made

    def __getstate__(self):
        return self.__dict__

    def __setstate__(self, state):
        self.__dict__.update(state)

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self):
        return self.tracer.iter(self)

    def __bool__(self):
        return self.tracer.to_bool(self)

    def __len__(self):
        raise RuntimeError("'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
                           "torch.fx.wrap('len') at module scope")

    def __contains__(self, item):
        raise TraceError(_ITERATION)

    def keys(self):
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tracer = find_tracer(args, kwargs)
        name = getattr(func, "__name__", "")
        if name == "__get__":  # an attribute of a real tensor cannot have met a Proxy
            return tracer.create_proxy("call_function", getattr, (args[0], func.__self__.__name__), {})
        if isinstance(func, _METHOD) or getattr(Tensor, name, None) is func:
            dunder = name.removeprefix("__").removesuffix("__") if name.startswith("__") else None
            if dunder and dunder.removeprefix("r") in _BINARY and not hasattr(operator, dunder):
                return tracer.create_proxy("call_function", _BINARY[dunder.removeprefix("r")], (args[1], args[0]), kwargs)
            if dunder and hasattr(operator, dunder):
                return tracer.create_proxy("call_function", getattr(operator, dunder), args, kwargs)
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy("call_function", func, args, kwargs)


class Attribute(Proxy):
    """`proxy.name`: a method that is about to be called, else a node of its own."""

    def __init__(self, root, attr):
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node = None

    @property
    def node(self):
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


_BINARY = {name: getattr(operator, target) for name, target in (
    ("add", "add"), ("sub", "sub"), ("mul", "mul"), ("floordiv", "floordiv"), ("truediv", "truediv"), ("mod", "mod"), ("pow", "pow"),
    ("lshift", "lshift"), ("rshift", "rshift"), ("and", "and_"), ("or", "or_"), ("xor", "xor"), ("matmul", "matmul"))}
_OTHERS = ("getitem", "eq", "ne", "lt", "gt", "le", "ge", "pos", "neg", "invert")


def _define_operators():
    def forward(function):
        return lambda self, *args: self.tracer.create_proxy("call_function", function, (self, *args), {})

    def backward(function):
        return lambda self, other: self.tracer.create_proxy("call_function", function, (other, self), {})
    for name, function in _BINARY.items():
        setattr(Proxy, f"__{name}__", forward(function))
        setattr(Proxy, f"__r{name}__", backward(function))
    for name in _OTHERS:
        setattr(Proxy, f"__{name}__", forward(getattr(operator, name)))
    Proxy.__abs__ = lambda self: self.tracer.create_proxy("call_function", operator.abs, (self,), {})
    Proxy.__hash__ = object.__hash__


_define_operators()
__all__ = ["Attribute", "GraphAppendingTracer", "Node", "Proxy", "TraceError", "TracerBase"]


class ParameterProxy(Proxy):
    """A parameter whose shape is known while it is recorded."""

    def __init__(self, node, tracer, name, parameter):
        super().__init__(node, tracer)
        self.param, self.name = parameter, name

    def __repr__(self):
        return f"ParameterProxy({self.name})"

    @property
    def shape(self):
        return self.param.shape

    @property
    def ndim(self):
        return self.param.ndim

    def size(self, dim=None):
        return self.param.size() if dim is None else self.param.size(dim)

    def dim(self):
        return self.param.dim()

    def numel(self):
        return self.param.numel()

    def nelement(self):
        return self.param.nelement()
