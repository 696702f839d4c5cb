"""Passes that rebuild a graph call by call: a pass says what becomes of each call, and the rest is copied."""
import operator

from umbra import _C
from umbra.fx import GraphModule
from umbra.fx.graph import Graph
from umbra.fx.passes.infra.pass_base import PassBase, PassResult
from umbra.utils import _pytree as pytree


class ExportPassBaseError(RuntimeError):
    """A graph that a pass cannot rebuild."""


class NodeMetadata:
    """What is known about a node, as a pass hands it on."""

    def __init__(self, data):
        self.data = dict(data)

    def __contains__(self, key):
        return key in self.data

    def __getitem__(self, key):
        return self.data[key]

    def __setitem__(self, key, value):
        if key in ("val", "nn_module_stack"):
            raise RuntimeError(f"A pass must not set a node's {key}")
        self.data[key] = value

    def copy(self):
        return NodeMetadata(self.data)


class ProxyValue:
    """A value of the graph that is being built: the node that makes it, and what stands for it."""

    def __init__(self, data, node):
        self.data, self.node = data, node

    def to_tensor(self):
        if not isinstance(self.data, _C.Tensor):
            raise AssertionError(f"expected a tensor, got {type(self.data)}")
        return self.data

    def __iter__(self):
        yield from self.data

    def __bool__(self):
        return bool(self.data)


class _ExportPassBaseDeprecatedDoNotUse(PassBase):
    """A pass over programs: `call_operator` is asked for every call of an operator, and may make others, or none."""

    @classmethod
    def _create_dummy_node_metadata(cls):
        return NodeMetadata({})

    # ---- what passes change ----

    def placeholder(self, name, arg, meta):
        node = self._graph.placeholder(name)
        node.meta = {**meta.data, "val": arg}
        return ProxyValue(arg, node)

    def output(self, results, meta):
        node = self._graph.output(self._nodes(results))
        node.meta = dict(meta.data)
        return ProxyValue(results, node)

    def call_operator(self, op, args, kwargs, meta):
        return self._call(op, args, kwargs, meta)

    def call_sym(self, target, args, meta):
        return self._call(target, args, {}, meta)

    def call_getitem(self, value, key, meta):
        return self._call(operator.getitem, (value, key), {}, meta)

    def call_higher_order(self, op, args, kwargs, meta):
        """A call of cond, map and the like, whose graphs have been gone through."""
        return self._record(op, args, kwargs, meta, meta.data.get("val"))

    def call_submodule(self, graph_module, *_):
        """Goes through a graph that the program's graph uses."""
        return self._run(graph_module)

    # ---- the run ----

    def call(self, graph_module):
        return PassResult(self._run(graph_module), True)

    def _run(self, graph_module):
        outer = getattr(self, "_graph", None), getattr(self, "_attributes", None)
        self._graph, self._attributes = Graph(), {}
        values = {}
        try:
            for node in graph_module.graph.nodes:
                values[node] = self._visit(node, graph_module, values)
            module = GraphModule(self._attributes, self._graph)
            module.meta = dict(graph_module.meta)
            return module
        finally:
            self._graph, self._attributes = outer

    def _visit(self, node, graph_module, values):
        meta = NodeMetadata(node.meta)
        if node.op == "placeholder":
            return self.placeholder(node.target, node.meta.get("val"), meta)
        if node.op == "get_attr":
            return self._attribute(node, graph_module)
        args, kwargs = pytree.tree_map(lambda leaf: values[leaf] if leaf in values else leaf, (node.args, node.kwargs),
                                       is_leaf=lambda leaf: hasattr(leaf, "op") and hasattr(leaf, "users"))
        if node.op == "output":
            return self.output(args[0], meta)
        if node.op != "call_function":
            raise ExportPassBaseError(f"a pass over an exported program met {node.op} of {node.target}")
        if node.target is operator.getitem:
            return self.call_getitem(args[0], args[1], meta)
        if isinstance(node.target, _C.OpOverload):
            return self.call_operator(node.target, tuple(args), dict(kwargs), meta)
        if any(isinstance(getattr(value, "data", None), GraphModule) for value in args):
            return self.call_higher_order(node.target, tuple(args), dict(kwargs), meta)
        return self.call_sym(node.target, tuple(args), meta)

    def _attribute(self, node, graph_module):
        value = graph_module
        for part in node.target.split("."):
            value = getattr(value, part)
        if isinstance(value, GraphModule):
            value = self.call_submodule(value)
        self._attributes[node.target] = value
        made = self._graph.get_attr(node.target)
        made.meta = dict(node.meta)
        return ProxyValue(value, made)

    def _call(self, target, args, kwargs, meta):
        plain_args, plain_kwargs = pytree.tree_map(lambda leaf: leaf.data if isinstance(leaf, ProxyValue) else leaf, (args, kwargs),
                                                   is_leaf=lambda leaf: isinstance(leaf, ProxyValue))
        return self._record(target, args, kwargs, meta, target(*plain_args, **plain_kwargs))

    def _record(self, target, args, kwargs, meta, value):
        # An operator's node has the name of all its overloads, as in exported graphs.
        name = target.overloadpacket.__name__.removeprefix("__").removesuffix("__") if isinstance(target, _C.OpOverload) else None
        node = self._graph.create_node("call_function", target, self._nodes(args), self._nodes(kwargs), name=name)
        node.meta = {**meta.data, "val": value}
        return ProxyValue(value, node)

    @staticmethod
    def _nodes(tree):
        return pytree.tree_map(lambda leaf: leaf.node if isinstance(leaf, ProxyValue) else leaf, tree, is_leaf=lambda leaf: isinstance(leaf, ProxyValue))
