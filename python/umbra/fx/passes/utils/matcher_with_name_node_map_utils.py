"""Matches of a pattern whose nodes have names."""
from umbra._options import not_built
from umbra.fx.graph_module import GraphModule
from umbra.fx.passes.utils.matcher_utils import SubgraphMatcher
from umbra.utils import _pytree as pytree

__all__ = ["SubgraphMatcherWithNameNodeMap"]


def _split_off_names(pattern):
    """The pattern without the last of its results, a dict from names to nodes, and that dict with the nodes' own names."""
    structure = getattr(pattern, "_out_spec", None)  # of a program, whose graph gives its results flat
    pattern = GraphModule(pattern, pattern.graph)
    results = pattern.graph.output_node().args[0]
    *results, names = results if structure is None else pytree.tree_unflatten(list(results), structure)
    pattern.graph.output_node().args = (tuple(results) if len(results) != 1 else results[0],)
    pattern.recompile()
    return pattern, {name: node.name for name, node in names.items()}


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """The pattern gives, as its last result, a dict from names to values; matches say in `name_node_map` which nodes these are."""

    def __init__(self, pattern_gm, match_output=False, match_placeholder=False, remove_overlapping_matches=True, ignore_literals=False):
        pattern, self.name_to_pattern = _split_off_names(pattern_gm)
        self.pattern_gm = pattern
        super().__init__(pattern.graph, match_output, match_placeholder, remove_overlapping_matches, ignore_literals)

    def match(self, graph, node_name_match=""):
        not_built("SubgraphMatcherWithNameNodeMap.match", node_name_match=(node_name_match, ""))
        matches = super().match(graph)
        by_name = {node.name: node for node in self.pattern_gm.graph.nodes}
        for match in matches:
            match.name_node_map = {name: match.nodes_map[by_name[own]] for name, own in self.name_to_pattern.items()}
        return matches
