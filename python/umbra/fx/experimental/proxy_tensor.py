"""make_fx: runs a function and records the operators it calls."""
import contextlib
import contextvars
import functools
import inspect
import operator

import umbra
from umbra import _C
from umbra._C import SymBool, SymFloat, SymInt, Tensor
from umbra._options import not_built
from umbra.fx.experimental.symbolic_shapes import ShapeEnv
from umbra.fx.graph_module import GraphModule
from umbra.fx.interpreter import Interpreter
from umbra.fx.node import Node, map_aggregate, map_arg
from umbra.fx.proxy import Proxy, TracerBase
from umbra.fx.traceback import current_annotations, has_preserved_node_meta
from umbra.nn import Parameter
from umbra.nn.modules import _capture as _modules
from umbra.compiler import _fx_tracing
from umbra.utils import _pytree as pytree
from umbra.utils._contextlib import uninterrupted


def is_sym_node(node):
    assert hasattr(node, "meta"), "All nodes traced with proxy_tensor should have meta"
    return "val" in node.meta and isinstance(node.meta["val"], (SymInt, SymFloat, SymBool))


def _own_code(function):
    """The code whose parameters are known one by one; None of a callable object, and of one that takes any number."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return None if code is None or code.co_flags & inspect.CO_VARARGS else code


def _class_name(function):
    return "<lambda>" if _own_code(function) is None else getattr(function, "__name__", type(function).__name__)


def _argument_names(function, count):
    """The names of the function's parameters; arg0, arg1, ... where it takes any number of them."""
    code = _own_code(function)
    if code is None:
        return [f"arg{i}" for i in range(count)]
    names = list(code.co_varnames[:code.co_argcount])
    if inspect.ismethod(function):
        names = names[1:]
    return names[:count] if len(names) >= count else [f"arg{i}" for i in range(count)]


def _check_count(function, args):
    """Every parameter is given an example, those with defaults too: a graph has no defaults."""
    code = _own_code(function)
    if code is None:
        return
    expected = code.co_argcount + code.co_kwonlyargcount - inspect.ismethod(function)
    if expected != len(args):
        raise RuntimeError(f"Tracing expected {expected} arguments but got {len(args)} concrete arguments")


def _is_flat(args):
    return all(pytree.tree_structure(arg).is_leaf() for arg in args)


def _may_be_result(result):
    """Whether a graph can give it: a tensor, a number, a value of the library's own."""
    from umbra.fx._symbolic_trace import _LITERALS
    from umbra.nn import Module
    own = type(result).__module__.split(".")[0] in ("umbra", "torch") and not isinstance(result, Module)
    return own or isinstance(result, (*_LITERALS, Tensor, slice))


def _capture(function, args, options):
    _check_count(function, args)
    leaves, in_spec = pytree.tree_flatten(tuple(args))
    names = []
    for name, arg in zip(_argument_names(function, len(args)), args):
        names += [f"{name}_{i + 1}" for i in range(len(pytree.tree_leaves(arg)))]
    out_spec = None

    def run(flat):
        nonlocal out_spec
        results, out_spec = pytree.tree_flatten(function(*pytree.tree_unflatten(flat, in_spec)))
        for result in results:
            if not _may_be_result(result):
                raise NotImplementedError(f"argument of type: {type(result)}")
        return results

    if current_annotations() and has_preserved_node_meta():
        raise NotImplementedError("make_fx within fx.traceback.annotate is not in Umbra yet")
    handle = _C._make_fx(run, leaves, names, **options)
    flat = _is_flat(args)
    if flat:
        _C._arrange_output(handle, _pattern(out_spec))
    else:
        _C._arrange_output(handle, list(range(out_spec.num_leaves)))
        handle.graph._set_pytree(_argument_names(function, len(args)), None, True)
    handle.class_name = _class_name(function)
    annotation = getattr(function, "__annotations__", {}).get("return")
    if annotation is not None:
        handle.graph.output_node().type = annotation
    module = GraphModule._wrap(handle)
    if not flat:
        object.__setattr__(module, "_specs", (in_spec, out_spec))
        module._in_spec, module._out_spec = in_spec, out_spec
    return module


def _pattern(spec):
    """The output's nest with the position of each leaf in its place; nodes of other classes become lists."""
    counter = iter(range(spec.num_leaves))

    def build(part):
        if part.is_leaf():
            return next(counter)
        children = [build(child) for child in part.children_specs]
        if part.type in (dict,) or "Dict" in part.type.__name__ or "dict" in part.type.__name__:
            keys = part.context[1] if isinstance(part.context, (list, tuple)) and len(part.context) == 2 and isinstance(part.context[1], list) \
                else part.context
            return dict(zip(keys, children))
        return children if part.type is list else tuple(children)
    return build(spec)


def _fake_mode(args, shape_env, allow_non_fake_inputs):
    """The mode of the stand-ins; None where an argument is fake already and brings its own."""
    if any(isinstance(leaf, _C.FakeTensor) for leaf in pytree.tree_leaves(args)):
        return None
    return _C._FakeMode(shape_env, allow_non_fake_inputs=allow_non_fake_inputs, allow_scalar_outputs=True, allow_dynamic_output_shapes=True)


@uninterrupted
def _without_cached_casts():
    """A cast that autocast keeps would be one of another run of the graph."""
    before = umbra.is_autocast_cache_enabled()
    umbra.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        umbra.set_autocast_cache_enabled(before)


@uninterrupted
def _module_paths(root):
    """While it lasts, nodes know the modules of `root` that they come from."""
    if root is None:
        yield
        return
    before = _modules.set_paths(_modules.ModulePaths(root.named_modules(remove_duplicate=False), prefix=""))
    try:
        yield
    finally:
        _modules.set_paths(before)


_table_in_force = contextvars.ContextVar("decompositions of the capture under way", default=None)


def make_fx(f, decomposition_table=None, tracing_mode="real", _allow_non_fake_inputs=False, *, pre_dispatch=False, record_module_stack=False,
            _allow_fake_constant=False, _error_on_data_dependent_ops=True, record_stack_traces=False, proxy_module_inputs=False,
            _disable_torch_fn_metadata_mode=False, dynamic_shapes=None):
    """A function that captures `f` when it is called: `make_fx(f)(*args)` is a GraphModule.

    `tracing_mode`: "real" runs on the arguments themselves, "fake" on stand-ins without data, "symbolic" on stand-ins whose sizes are symbols.
    Numbers that `f` reads from tensors' data are refused in "real" mode, or stay what they are with `_error_on_data_dependent_ops=False`.
    With stand-ins, other tensors that `f` uses are refused unless `_allow_non_fake_inputs`. What only the run tells (a count, a number read from a tensor) is
    a symbol there. A symbolic capture has its `shape_env`, with the guards that it left.
    """
    not_built("make_fx", _allow_fake_constant=(_allow_fake_constant, False), proxy_module_inputs=(proxy_module_inputs, False), dynamic_shapes=(dynamic_shapes, None))
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"tracing_mode must be real/fake/symbolic, got {tracing_mode}")

    @functools.wraps(f) if hasattr(f, "__name__") else lambda g: g
    def wrapped(*args):
        shape_env = None if tracing_mode == "real" else _C._ShapeEnv(True, True)
        fake_mode = None if shape_env is None else _fake_mode(args, shape_env, _allow_non_fake_inputs)
        # A graph has no gradients to cut. Who gives a table, even an empty one, keeps the cuts.
        table = {umbra.ops.aten.detach.default: umbra.ops.aten.alias.default} if decomposition_table is None and not pre_dispatch else decomposition_table
        options = {"mode": tracing_mode, "pre_dispatch": pre_dispatch, "decompositions": table, "fake_mode": fake_mode,
                   "locations": record_stack_traces, "keeps_read_data": not _error_on_data_dependent_ops}
        # A stack of modules is recorded of the module that a function says it wraps, and of nothing else.
        root = getattr(f, "_orig_mod", None) if record_module_stack else None
        outer = _table_in_force.set(decomposition_table)
        try:
            with _fx_tracing(), _module_paths(root), _without_cached_casts():
                module = _capture(f, args, options)
        finally:
            _table_in_force.reset(outer)
        if tracing_mode == "symbolic" and fake_mode is not None:
            module.shape_env = ShapeEnv._of(shape_env)
        return module
    return wrapped


class _RootModule:
    """The module that the graph under way will be of: rules give it subgraphs and tensors, and ask which names are taken."""

    def __init__(self, handle):
        object.__setattr__(self, "_handle", handle)

    def __getattr__(self, name):
        for path, _, value in self._handle.module.attributes():
            if path == name:
                return value
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name, value):
        if isinstance(value, Tensor):
            self._handle.module.set(name, value, "parameter" if isinstance(value, Parameter) else "buffer")
        else:
            self.register_module(name, value)

    def register_module(self, name, module):
        """Gives the graph a subgraph under a name of `get_fresh_qualname`."""
        if not isinstance(module, GraphModule):
            raise NotImplementedError(f"register_module of a {type(module).__name__}: capture the function with make_fx, and register its graph")
        module._update_handle()
        self._handle.module.set(name, module._handle, "module")

    add_module = register_module


class PythonKeyTracer(TracerBase):
    """The graph of a capture that is under way, for rules that make nodes of their own."""

    def __init__(self, handle):
        self._handle, self.graph = handle, handle.graph
        self.root = _RootModule(handle)

    def unwrap_proxy(self, value):
        """What stands in the graph for a tensor or a symbolic number; anything else is itself."""
        if not isinstance(value, (Tensor, SymInt, SymFloat, SymBool)):
            return value
        found = self._handle.argument(value)
        return Proxy(found, self) if isinstance(found, Node) else found

    def get_fresh_qualname(self, prefix):
        return self._handle.unused_path(prefix)

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        self._handle.note_grad_mode()
        return super().create_node(kind, target, args, kwargs, name, type_expr)

    def create_arg(self, a):
        def node_of(leaf):
            if isinstance(leaf, GraphModule):
                return self.graph.get_attr(self._path_of(leaf))
            leaf = self.unwrap_proxy(leaf)
            return leaf.node if isinstance(leaf, Proxy) else leaf
        return map_aggregate(super().create_arg(a), node_of)

    def _path_of(self, module):
        for path, _, value in self._handle.module.attributes():
            if isinstance(value, _C._GraphModule) and value._cdata == module._handle._cdata:
                return path
        raise RuntimeError("a graph is an argument of a node, and was not registered: use tracer.root.register_module")


def track_tensor_tree(inner_res, proxy_res, *, constant=None, tracer):
    """Makes a node stand for a result, and its elements for those of a list or dict. Gives the result."""
    not_built("track_tensor_tree", constant=(constant, None))
    if isinstance(inner_res, (Tensor, SymInt, SymFloat, SymBool)):
        tracer._handle.track(proxy_res.node, inner_res)
    elif isinstance(inner_res, (tuple, list, dict)):
        proxy_res.node.meta["val"] = inner_res
        for key, part in inner_res.items() if isinstance(inner_res, dict) else enumerate(inner_res):
            if part is not None:
                track_tensor_tree(part, tracer.create_proxy("call_function", operator.getitem, (proxy_res, key), {}), tracer=tracer)
    return inner_res


class ProxyTorchDispatchMode:
    """A capture that is under way; rules of operators get it, with `tracer` to make nodes by."""
    enable_tracing = True

    def __init__(self, handle):
        self._handle = handle

    @property
    def tracer(self):
        return PythonKeyTracer(self._handle)

    def __enter__(self):
        self._handle.enter()
        return self

    def __exit__(self, *exception):
        self._handle.leave()

    def __eq__(self, other):
        return isinstance(other, ProxyTorchDispatchMode) and self._handle.module._cdata == other._handle.module._cdata

    def __hash__(self):
        return hash(self._handle.module._cdata)


def get_proxy_mode():
    """What stands for the capture that is under way, or None."""
    handle = _C._active_tracer("PreProxy") or _C._active_tracer("Proxy")
    return None if handle is None else ProxyTorchDispatchMode(handle)


get_innermost_proxy_mode = get_proxy_mode


@contextlib.contextmanager
def disable_proxy_modes_tracing():
    """Within it, nothing is recorded: what is made there is a constant to the capture that is under way."""
    with _C._NoModes(only_tracers=True):
        yield


def get_isolated_graphmodule(func, args, kwargs, tracing_mode="real", decomposition_table=None):
    """The graph of a call that the capture that is under way does not see. Its module takes the leaves of the arguments in a list."""
    leaves, spec = pytree.tree_flatten((args, kwargs))

    def wrapped(flat_args):
        given, named = pytree.tree_unflatten(flat_args, spec)
        return func(*given, **named)
    with disable_proxy_modes_tracing():
        return make_fx(wrapped, decomposition_table=decomposition_table, tracing_mode=tracing_mode)(leaves)


class DecompositionInterpreter(Interpreter):
    """Runs a graph and records it anew in `new_graph`, with the operators of `decomposition_table` as what they are made of."""

    def __init__(self, module, new_graph, decomposition_table=None, **kwargs):
        super().__init__(module, **kwargs)
        self.new_graph, self.decomposition_table = new_graph, decomposition_table or {}

    def run(self, *args, **kwargs):
        recorded = make_fx(lambda *inputs: super(DecompositionInterpreter, self).run(*inputs, **kwargs), self.decomposition_table)(*args)
        self._append(recorded)
        return recorded(*args)

    def _append(self, recorded):
        names = iter(self.graph.find_nodes(op="placeholder"))
        paths = {id(self.fetch_attr(node.target)): node.target for node in self.graph.find_nodes(op="get_attr")}
        values = {}
        for node in recorded.graph.nodes:
            if node.op == "output":
                self.new_graph.output(map_arg(node.args[0], values.__getitem__))
            elif node.op == "placeholder":
                values[node] = self.new_graph.placeholder(next(names).target)
            elif node.op == "get_attr" and id(getattr(recorded, node.target)) in paths:
                values[node] = self.new_graph.get_attr(paths[id(getattr(recorded, node.target))])
            else:
                values[node] = self.new_graph.node_copy(node, values.__getitem__)
            if node in values:
                values[node].meta = node.meta
