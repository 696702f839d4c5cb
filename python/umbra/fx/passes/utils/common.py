"""Graphs compared, and parts of them as modules."""
from umbra.fx.graph_module import GraphModule
from umbra.fx.passes.utils.matcher_utils import SubgraphMatcher
from umbra.nn import Module

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(Module):
    """Modules under their names."""

    def __init__(self, d):
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(gm, subgraph, comp_name="", class_name="GraphModule"):
    """A graph that refers to modules and attributes of `gm`, as a module that has these; and where they were (`comp_name`: under which name it is called)."""
    paths = {f"{comp_name}.{node.target}" if comp_name else node.target: node.target for node in subgraph.nodes if node.op in ("call_module", "get_attr")}
    subgraph.owning_module = None
    return GraphModule(gm, subgraph, class_name), paths


def compare_graphs(left, right):
    """Whether two graphs compute the same in the same order of inputs."""
    matches = SubgraphMatcher(left, match_output=True, match_placeholder=True).match(right)
    return len(matches) > 0 and len(left.nodes) == len(right.nodes)
