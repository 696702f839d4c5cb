"""Graph: a program as a list of nodes."""
import math
import re
import sys
import warnings

from umbra._C import Graph
from umbra._options import not_built
from umbra.fx import node as _node  # noqa: F401  (completes Node)
from umbra.fx._targets import name_of, resolve
from umbra.fx._codegen import CodeGen, code_of, names_of_types, on_generate_code
from umbra.fx.node import map_aggregate, map_arg, named_tuples_by_nodes, with_type
from umbra.utils import _pytree as pytree


class _NodeList:
    """The nodes in order. Nodes may be added and erased while it is walked."""

    def __init__(self, graph, forward=True):
        self.graph, self.forward = graph, forward

    def __len__(self):
        return self.graph._count()

    def __iter__(self):
        node = self.graph._first if self.forward else self.graph._last
        while node is not None:
            if not node._erased:
                yield node
            node = node._next if self.forward else node._previous

    def __reversed__(self):
        return iter(_NodeList(self.graph, not self.forward))


class _InsertionPoint:
    """Takes effect at once; as a context manager it puts the insertion point back to where it was."""

    def __init__(self, graph, node, after):
        if node is not None and node.graph is not graph:
            raise AssertionError(f"Node to insert {'after' if after else 'before'} is not in graph.")
        self.saved = graph._insertion_point()
        graph._set_insertion_point(node, after)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.saved.restore()


class PythonCode:
    """A graph as the source of a function `forward`, and the names that it refers to."""

    def __init__(self, src, globals=None):
        self.src = src
        self.globals = {} if globals is None else globals


def _names_in(graph):
    """What the code of a graph finds by name: the modules that its functions are in, functions of other modules, and what literals and types are
    printed with."""
    import umbra
    from umbra.fx import _pytree as fx_pytree
    names = {"inf": math.inf, "nan": math.nan, "NoneType": type(None), "torch": umbra, "device": umbra.device, "pytree": pytree, "fx_pytree": fx_pytree}
    names.update(names_of_types(graph))
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        name = name_of(node.target)
        root = name.split(".")[0]
        if root == "torch" or root == "builtins":
            continue
        code_name = ("_" + name if root == "operator" else name).replace(".", "_")
        names[code_name] = node.target
        if root in sys.modules:
            names.setdefault(root, sys.modules[root])
    return names


_ALWAYS_THERE = ("inf", "nan", "NoneType", "torch", "device", "pytree", "fx_pytree")


def _python_code(self, root_module="self", *, verbose=False, include_stride=False, include_device=False, colored=False, expanded_def=False,
                 record_func=False, additional_meta=None):
    """The source of the graph, and what it finds by name."""
    not_built("Graph.python_code", colored=(colored, False), expanded_def=(expanded_def, False), record_func=(record_func, False),
              additional_meta=(additional_meta, None))
    source = code_of(self, self._code(verbose, include_stride, include_device))
    if root_module != "self":
        source = re.sub(r"\bself(?=[.,)])", root_module, source)
    words = set(re.findall(r"\w+", source))
    return PythonCode(source, {name: value for name, value in _names_in(self).items() if name in _ALWAYS_THERE or name in words})


_KINDS = ("placeholder", "get_attr", "call_function", "call_module", "call_method", "output")


def create_node(self, op, target, args=None, kwargs=None, name=None, type_expr=None):
    assert op in _KINDS, f"op {op!r} is not in _legal_ops"
    assert callable(target) or isinstance(target, str), f"Expected target to be str, got {type(target)}"
    args, kwargs = () if args is None else args, {} if kwargs is None else kwargs
    assert isinstance(args, tuple), f"args must be a tuple, got {type(args)}"
    assert isinstance(kwargs, dict), f"kwargs must be a dict, got {type(kwargs)}"
    if callable(target) != (op == "call_function"):
        kind, wanted = ("str", "Callable") if isinstance(target, str) else (_typename(target), "str")
        label = name or (target if isinstance(target, str) else getattr(target, "__name__", "function"))
        raise ValueError(f"Node [graph = {self}, name = '{label}'] target {target} has type {kind} but a {wanted} is expected")
    if op.startswith("call_"):
        args, kwargs = named_tuples_by_nodes(self, (args, kwargs))
    return _typed(self._create_node(op, target, args, kwargs, name or ""), type_expr)


def _typed(node, type_expr):
    if type_expr is not None:
        node.type = type_expr
    return node


def _typename(value):
    return f"{getattr(value, '__module__', None) or 'builtins'}.{getattr(value, '__qualname__', type(value).__qualname__)}"


def placeholder(self, name, type_expr=None, default_value=...):
    return _typed(self._placeholder(name) if default_value is ... else self._placeholder_with_default(name, default_value), type_expr)


def get_attr(self, qualified_name, type_expr=None):
    """A node for an attribute of the module; one that its module has not got may be added later, so that is a warning."""
    owner = self.owning_module
    for part in qualified_name.split(".") if owner is not None else ():
        if not hasattr(owner, part):
            warnings.warn("Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! Call GraphModule.add_submodule to add "
                          "the necessary submodule, GraphModule.add_parameter to add the necessary Parameter, or nn.Module.register_buffer to add the "
                          "necessary buffer", stacklevel=2)
            break
        owner = getattr(owner, part)
    return self.create_node("get_attr", qualified_name, type_expr=type_expr)


def call_function(self, the_function, args=None, kwargs=None, type_expr=None, name=None):
    return self.create_node("call_function", the_function, args, kwargs, name, type_expr)


def call_module(self, module_name, args=None, kwargs=None, type_expr=None):
    """A call of a module of the owning module, which has to have it by then."""
    if self.owning_module is not None:
        self.owning_module.get_submodule(module_name)
    return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)


def call_method(self, method_name, args=None, kwargs=None, type_expr=None):
    return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)


def output(self, result, type_expr=None):
    return _typed(self._create_node("output", "output", (result,), {}, "output"), type_expr)


def node_copy(self, node, arg_transform=lambda x: x):
    """Copies a node of this or another graph; `arg_transform` says what stands here for its inputs."""
    return self._copy_node(node, arg_transform)


def graph_copy(self, g, val_map, return_output_node=False):
    """Copies all nodes of `g` here but its output, which is returned in terms of the copies."""
    for node in g.nodes:
        if node in val_map:
            continue
        if node.op == "output":
            result = map_arg(node.args[0], lambda n: val_map[n])
            return (result, node) if return_output_node else result
        val_map[node] = self.node_copy(node, lambda n: val_map[n])


def find_nodes(self, *, op, target=None, sort=True):
    """The nodes of one kind, and of one target; functions are asked for by target."""
    assert op != "call_function" or target is not None, "target must not be None for call_function op"
    return [node for node in self._find_nodes([op]) if target is None or node.target == target]


def lint(self):
    """Raises where the graph does not hold together."""
    for node in self.nodes:
        for used in node.all_input_nodes:
            if used.graph is not self:
                raise RuntimeError(f"Argument '{used}' of Node '{node}' does not belong to this Graph, but was used as an argument! If you are "
                                   "copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() to remap values")
    self._lint()
    from umbra import nn
    owner = getattr(self, "owning_module", None)
    if owner is None:
        return
    for node in self.nodes:
        if node.op in ("get_attr", "call_module"):
            value, parts = owner, node.target.split(".")
            for i, part in enumerate(parts):
                seen, value = ".".join(parts[:i]), getattr(value, part, None)
                if value is None:
                    raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute {part} of {seen}")
                if node.op == "call_module" and not isinstance(value, nn.Module):
                    raise RuntimeError(f"Node {node} target {node.target} {part} of {seen} does not reference an nn.Module")


def _has_effects(owner, node):
    """Whether a node has effects, or calls a graph of its module (a branch of a cond) in which one has."""
    if node.is_impure():
        return True
    if node.op != "call_function" or owner is None:
        return False
    called = [getattr(owner, source.target, None) for source in node.all_input_nodes if source.op == "get_attr"]
    return any(inner.op not in ("placeholder", "output") and _has_effects(part, inner)
               for part in called if isinstance(getattr(part, "graph", None), Graph) for inner in part.graph.nodes)


def eliminate_dead_code(self, is_impure_node=None):
    """Removes what nobody uses and what has no effects; says whether there was any."""
    return self._eliminate_dead_code(is_impure_node or (lambda node: _has_effects(self.owning_module, node)))


def _copy_whole(self):
    """A copy with the form of its source."""
    copy = self._copy()
    if self._own_codegen is not None:
        copy._own_codegen = self._own_codegen
    return copy


def _take_form(self, other):
    """Takes and gives arguments and results in the form of another graph, and is written as that one is."""
    self._own_codegen, self._specs = other._own_codegen, other._specs
    self._take_pytree(other)


def _codegen(self):
    if self._own_codegen is None:
        self._own_codegen = CodeGen()
    return self._own_codegen


def set_codegen(self, codegen):
    """What writes the source of the graph, when it is compiled next. It takes and gives what that generator says, no nests from before."""
    self._own_codegen = codegen
    self._specs = (None, None)
    self._clear_pytree()


class _Reference:
    """A node among pickled arguments, by its place."""

    def __init__(self, place):
        self.place = place


class _Named:
    """A function of the package as a pickled target, by the name that graphs have for it."""

    def __init__(self, name):
        self.name = name


def _stored(target):
    name = None if isinstance(target, str) else name_of(target)
    return _Named(name) if name is not None and name.startswith("torch.") and resolve(name) is target else target


def nodes_of(graph):
    """A graph as plain data, for pickling."""
    places = {node: i for i, node in enumerate(graph.nodes)}
    nodes = []
    for node in graph.nodes:
        args, kwargs = map_arg((node.args, dict(node.kwargs)), lambda n: _Reference(places[n]))
        nodes.append((node.op, _stored(node.target), args, kwargs, node.name, node.type))
    return nodes


def graph_of(nodes):
    """The graph of such data."""
    graph, made = Graph(), []
    for op, target, args, kwargs, label, type_expr in nodes:
        args, kwargs = map_aggregate((args, kwargs), lambda leaf: made[leaf.place] if isinstance(leaf, _Reference) else leaf)
        target = resolve(target.name) if isinstance(target, _Named) else target
        made.append(_typed(graph._create_node(op, target, tuple(args), kwargs, label), type_expr))
    return graph


def _deepcopy(self, memo=None):
    copy = self._copy_whole()
    if self._specs != (None, None):
        copy._specs = self._specs
    if self._tracer_cls is not None:
        copy._tracer_cls = self._tracer_cls
    return copy


Graph._tracer_extras = None
Graph.nodes = property(_NodeList)
Graph.owning_module = None
def output_node(self):
    """The last node, which has to be the output."""
    last = next(iter(reversed(self.nodes)))
    assert last.op == "output", f"Expected output node, got op={last.op}"
    return last


def _text(self):
    """The graph, a line for each node."""
    text = self._untyped_text()
    for node in self.nodes:
        if node.type is not None and node.op != "output":
            line = node._format_node()
            text = text.replace(line, with_type(node, line), 1)
    return text


def process_inputs(self, *args):
    """Arguments of `forward` as the graph's inputs."""
    return self._codegen.process_inputs(*args) if self._specs[0] is None else pytree.tree_leaves(args)


def process_outputs(self, out):
    """The graph's outputs as the result of `forward`."""
    return self._codegen.process_outputs(out) if self._specs[1] is None else pytree.tree_unflatten(out, self._specs[1])


Graph._specs = (None, None)  # the structures of nested arguments and results, where the graph has them flat
# Without a node: after the beginning, and before the end.
Graph.inserting_before = lambda self, n=None: _InsertionPoint(self, n, n is None)
Graph.inserting_after = lambda self, n=None: _InsertionPoint(self, n, n is not None)
Graph.output_node = output_node
Graph._output_node = lambda self: next(reversed(self._find_nodes(["output"])), None)
Graph._untyped_text = Graph.__str__
Graph.__str__ = Graph.__repr__ = _text
Graph.python_code = _python_code
Graph._own_codegen = None
Graph._tracer_cls = None  # the class of the tracer that made it
Graph._codegen = property(_codegen)
Graph._copy_whole = _copy_whole
Graph._take_form = _take_form
Graph.on_generate_code = on_generate_code
Graph.__reduce_ex__ = lambda self, protocol: (graph_of, (nodes_of(self),))
Graph.print_tabular = lambda self: print(self._tabular())
Graph.__deepcopy__ = _deepcopy
for _function in (create_node, placeholder, get_attr, call_function, call_module, call_method, output, node_copy, graph_copy, find_nodes, lint, eliminate_dead_code,
                  set_codegen, process_inputs, process_outputs):
    setattr(Graph, _function.__name__, _function)
