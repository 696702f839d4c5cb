"""Replacing one subgraph by another, wherever it is found."""
import collections
import copy
import dataclasses

from umbra._C import Graph, Node
from umbra.fx._symbolic_trace import symbolic_trace
from umbra.fx.graph_module import GraphModule
from umbra.fx.passes.utils.matcher_utils import SubgraphMatcher
from umbra.nn import Module

Match = collections.namedtuple("Match", ["anchor", "nodes_map"])


@dataclasses.dataclass
class ReplacedPatterns:
    """A place that was replaced: the last node that was found, what stood for the pattern's nodes, and the nodes that stand there now."""
    anchor: object
    nodes_map: dict
    replacements: list


def replace_pattern(gm, pattern, replacement):
    """Replaces what looks like `pattern` by `replacement`, both functions of the same arguments, modules or graphs; gives the matches.

        replace_pattern(traced, lambda x: torch.relu(x.neg()), lambda x: torch.sin(x))
    """
    return [Match(match.anchor, match.nodes_map) for match in _replace(gm, pattern, replacement)]


def replace_pattern_with_filters(gm, pattern, replacement=None, match_filters=None, ignore_literals=False, replacement_callback=None,
                                 node_name_match=""):
    """The same for matches that all filters `filter(match, graph, pattern)` accept; `replacement_callback(match, graph, pattern)` gives a graph for
    each match instead of one for all."""
    return _replace(gm, pattern, replacement, match_filters, ignore_literals, replacement_callback, node_name_match)


def _graph_of(what):
    if isinstance(what, Graph):
        return what
    return what.graph if isinstance(what, GraphModule) else symbolic_trace(what).graph


def _replace(gm, pattern, replacement, match_filters=None, ignore_literals=False, replacement_callback=None, node_name_match=""):
    original, pattern_graph = gm.graph, _graph_of(pattern)
    matches = SubgraphMatcher(pattern_graph, ignore_literals=ignore_literals).match(original, node_name_match)
    matches = [m for m in matches if all(keep(m, original, pattern_graph) for keep in match_filters or [])]
    common = None
    if replacement is not None:
        common = _graph_of(replacement)
    elif replacement_callback is None:
        raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
    renamed, replaced = {}, []  # nodes that an earlier match was made of, and what stands for them now
    for match in matches:
        graph = common if common is not None else replacement_callback(match, original, pattern_graph)
        replaced.append(_replace_one(original, match, graph, renamed))
    gm.recompile()
    if isinstance(replacement, Module):
        _take_attributes(gm, replacement)
    return replaced


def _replace_one(original, match, graph, renamed):
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    if len(placeholders) != len(match.placeholder_nodes):
        raise AssertionError(f"Placeholder count mismatch: {len(match.placeholder_nodes)} vs {len(placeholders)}")
    values = {p: _current(value, renamed) for p, value in zip(placeholders, match.placeholder_nodes)}
    users = {user for node in match.returning_nodes for user in node.users}
    first = next((node for node in original.nodes if node in users), match.returning_nodes[0])
    before = set(original.nodes)
    with original.inserting_before(first):
        result = original.graph_copy(graph, values)
    results = [result] if isinstance(result, Node) else list(result)
    if len(results) != len(match.returning_nodes):
        raise AssertionError(f"Returning nodes count mismatch: {len(match.returning_nodes)} vs {len(results)}")
    for old, new in zip(match.returning_nodes, results):
        if isinstance(new, Node):
            old.replace_all_uses_with(new)
            renamed[old] = new
    inside = {n for p, n in match.nodes_map.items() if p.op not in ("placeholder", "output") and isinstance(n, Node)}
    for node in reversed(original.nodes):
        if node in inside and not node.users:
            original.erase_node(node)
    return ReplacedPatterns(match.anchors[0], match.nodes_map, [n for n in original.nodes if n not in before])


def _current(value, renamed):
    while isinstance(value, Node) and value in renamed:
        value = renamed[value]
    return value


def _take_attributes(gm, replacement):
    """Modules and tensors that the replacement brought along."""
    gm.delete_all_unused_submodules()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        here, there = gm, replacement
        *path, name = node.target.split(".")
        for part in node.target.split("."):
            here, there = getattr(here, part, None), getattr(there, part, None)
        if here is not None:
            continue
        if there is None:
            raise RuntimeError(f'Attempted to create a "{node.op}" node during subgraph rewriting with target {node.target}, but the referenced '
                               "attribute does not exist in the replacement GraphModule")
        if isinstance(there, Module):
            gm.add_submodule(node.target, copy.deepcopy(there))
        else:
            owner = gm.get_submodule(".".join(path))
            setattr(owner, name, copy.deepcopy(there))
    gm.graph.lint()
