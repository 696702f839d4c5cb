"""Running a graph node by node in Python: every step may be overridden."""
from umbra.fx._symbolic_trace import Tracer
from umbra.fx.graph import Graph
from umbra.fx.graph_module import GraphModule
from umbra.fx.node import Node, map_arg, mapped
from umbra.fx.proxy import Proxy
from umbra.fx.traceback import has_preserved_node_meta, preserve_node_meta, set_current_meta
from umbra.utils import _pytree as pytree


def attribute_at(module, path):
    value = module
    for i, part in enumerate(path.split(".")):
        if not hasattr(value, part):
            raise RuntimeError(f"Node referenced nonexistent target {'.'.join(path.split('.')[:i + 1])}")
        value = getattr(value, part)
    return value


class Interpreter:
    """Runs a graph node by node. Classes derived from it see each node in the method of its kind."""
    def __init__(self, module, garbage_collect_values=True, graph=None):
        self.module = module
        self.graph = graph if graph is not None else module.graph
        self.env = {}
        self.args_iter = iter(())
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self._done_after = self._last_uses() if garbage_collect_values else {}

    def _last_uses(self):
        """The nodes whose values nothing needs any more after a node has run."""
        done, seen = {}, set()
        for node in reversed(self.graph.nodes):
            for used in node.all_input_nodes:
                if used not in seen:
                    seen.add(used)
                    done.setdefault(node, []).append(used)
        return done

    def run(self, *args, initial_env=None, enable_io_processing=True):
        """The graph's result for these arguments. A graph that was captured with nested arguments takes and gives nests, unless
        `enable_io_processing` is off."""
        in_spec, _ = self._specs(enable_io_processing)
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter = iter(args if in_spec is None else pytree.tree_leaves(args))
        return self._run_all(initial_env, enable_io_processing)

    def _specs(self, enabled):
        """How arguments and results nest, where the module knows and the graph is its own."""
        if not enabled or self.graph is not getattr(self.module, "graph", None):
            return None, None
        return getattr(self.module, "_specs", (None, None))

    def _run_all(self, initial_env, enable_io_processing=True):
        _, out_spec = self._specs(enable_io_processing)
        self.env = dict(initial_env or {})
        for node in self.graph.nodes:
            if node in self.env:
                continue
            self.env[node] = self._run_explained(node)
            for used in self._done_after.get(node, ()):
                self.env.pop(used, None)
            if node.op == "output":
                result = self.env[node]
                if out_spec is not None:
                    return pytree.tree_unflatten(list(result), out_spec)
                return self.graph.process_outputs(result) if enable_io_processing else result

    def _run_explained(self, node):
        """Runs a node; an error says which one it was."""
        try:
            return self.run_node(node)
        except Exception as error:
            if not self.extra_traceback:
                raise
            said = f"{error.args[0]}\n\n" if error.args else ""
            where = f"{said}While executing {node.format_node()}\nOriginal traceback:\n{node.stack_trace}"
            if isinstance(self.module, GraphModule):
                where += "\nUse tlparse to see full graph. (https://github.com/pytorch/tlparse?tab=readme-ov-file#tlparse-parse-structured-pt2-logs)"
            error.args = (where, *error.args[1:])
            if isinstance(error, KeyError):
                raise RuntimeError(*error.args) from error
            raise

    @property
    def user_to_last_uses(self):
        """The nodes whose values nothing needs any more after a node has run."""
        return self._done_after

    @property
    def submodules(self):
        """The modules of the module that is run, by path."""
        return dict(self.module.named_modules())

    def boxed_run(self, args_list):
        """The same for a list with a value for every placeholder, which is emptied so that nothing else keeps the values."""
        placeholders = self.graph.find_nodes(op="placeholder")
        if len(args_list) != len(placeholders):
            detail = "extra arguments" if len(args_list) > len(placeholders) else "missing arguments"
            raise RuntimeError(f"Interpreter.boxed_run expected {len(placeholders)} arguments for placeholders but received {len(args_list)} ({detail})")
        values = dict(zip(placeholders, args_list))
        args_list.clear()
        self.args_iter = iter(())
        return self._run_all(values)

    def run_node(self, n):
        with set_current_meta(n, f"Interpreter_{type(self).__name__}"):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return n._call_here(has_preserved_node_meta(), getattr(self, n.op), n.target, args, kwargs)

    def placeholder(self, target, args, kwargs):
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(f"Expected positional argument for parameter {target}, but one was not passed in!") from None

    def get_attr(self, target, args, kwargs):
        return self.fetch_attr(target)

    def call_function(self, target, args, kwargs):
        return target(*args, **kwargs)

    def call_method(self, target, args, kwargs):
        instance, *rest = args
        return getattr(instance, target)(*rest, **kwargs)

    def call_module(self, target, args, kwargs):
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target, args, kwargs):
        return args[0]

    def fetch_attr(self, target):
        return attribute_at(self.module, target)

    def fetch_args_kwargs_from_env(self, n):
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args, n):
        return map_arg(args, lambda node: self.env[node])


class SourceInterpreter(Interpreter):
    """Runs a graph as its source would run: lists and dicts are made anew for each call, and may be changed; errors are those of the calls."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.extra_traceback = False

    def map_nodes_to_values(self, args, _):
        return mapped(args, lambda leaf: self.env[leaf] if isinstance(leaf, Node) else leaf)


class Transformer(Interpreter):
    """Runs a graph on Proxies, which records it anew, step by step as its methods say.

        class Swap(fx.Transformer):
            def call_function(self, target, args, kwargs):
                return torch.tanh(*args) if target is torch.sigmoid else super().call_function(target, args, kwargs)
        changed = Swap(traced).transform()
    """

    def __init__(self, module):
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph._take_form(self.graph)
        self.tracer = _TransformerTracer(self.new_graph, module)

    def placeholder(self, target, args, kwargs):
        return Proxy(self.new_graph.placeholder(target, default_value=args[0] if args else ...), self.tracer)

    def get_attr(self, target, args, kwargs):
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_function(self, target, args, kwargs):
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target, args, kwargs):
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def call_module(self, target, args, kwargs):
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def transform(self):
        """The module with the graph that was recorded; nodes have the metadata of those that they come from."""
        with preserve_node_meta():
            result = self.run(enable_io_processing=False)
        output, old = self.new_graph.output(self.tracer.create_arg(result)), self.graph.output_node()
        if old is not None:
            output.meta = dict(old.meta)
        return GraphModule(self.module, self.new_graph)


class _TransformerTracer(Tracer):
    """Every module is a leaf: the graph is taken as it is."""

    def __init__(self, graph, root):
        super().__init__()
        self.graph, self.root = graph, root

    def is_leaf_module(self, m, module_qualified_name):
        return True
