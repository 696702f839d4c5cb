"""Graphs as pictures, by pydot where it is installed."""
from umbra.fx.graph_module import GraphModule

__all__ = ["FxGraphDrawer"]

try:
    import pydot
    HAS_PYDOT = True
except ImportError:
    HAS_PYDOT = False

_COLORS = {"placeholder": "AliceBlue", "call_module": "LemonChiffon1", "get_attr": "LightGrey", "output": "PowderBlue", "call_function": "CadetBlue",
           "call_method": "LightSteelBlue"}


class FxGraphDrawer:
    """The pictures of a graph module and of the modules that it calls."""

    def __init__(self, graph_module, name, ignore_getattr=False, ignore_parameters_and_buffers=False, skip_node_names_in_args=True,
                 parse_stack_trace=False, dot_graph_shape=None, normalize_args=False):
        if not HAS_PYDOT:
            raise RuntimeError("FXGraphDrawer requires the pydot package to be installed. Please install pydot through your favorite Python package manager.")
        from umbra._options import not_built
        not_built("FxGraphDrawer", skip_node_names_in_args=(skip_node_names_in_args, True), parse_stack_trace=(parse_stack_trace, False),
                  normalize_args=(normalize_args, False))
        self._name, self._shape = name, dot_graph_shape or "record"
        self._leave_out = {"get_attr"} if ignore_getattr or ignore_parameters_and_buffers else set()
        self._dot_graphs = {name: self._draw(graph_module, name)}
        for node in graph_module.graph.nodes:
            part = graph_module.get_submodule(node.target) if node.op == "call_module" else None
            if isinstance(part, GraphModule):
                self._dot_graphs[f"{name}_{node.target}"] = self._draw(part, f"{name}_{node.target}")

    def get_dot_graph(self, submod_name=None):
        """The picture of the module itself, or of one of its parts."""
        return self._dot_graphs[self._name if submod_name is None else submod_name]

    def get_main_dot_graph(self):
        return self._dot_graphs[self._name]

    def get_submod_dot_graph(self, submod_name):
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self):
        return self._dot_graphs

    def _draw(self, module, name):
        drawn = pydot.Dot(name, rankdir="TB")
        for node in module.graph.nodes:
            if node.op in self._leave_out:
                continue
            label = f"{{name=%{node.name}|op_code={node.op}\\n|target={getattr(node.target, '__name__', node.target)}\\n}}"
            drawn.add_node(pydot.Node(node.name, label=label, shape=self._shape, fillcolor=_COLORS[node.op], style='"filled,rounded"', fontcolor="#000000"))
            for used in node.all_input_nodes:
                if used.op not in self._leave_out:
                    drawn.add_edge(pydot.Edge(used.name, node.name))
        return drawn
