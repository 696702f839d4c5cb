"""Parts of an exported program by the modules and functions of the source that they come from."""
import dataclasses

from umbra.fx.node import Node

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]


@dataclasses.dataclass
class SourcePartition:
    """The nodes of one call of a module or function: those that others use, what they take, and the parameters among that."""
    nodes: list
    source: object
    input_nodes: list = dataclasses.field(default_factory=list)
    output_nodes: list = dataclasses.field(default_factory=list)
    params: list = dataclasses.field(default_factory=list)


def _source_of(node):
    """(which call, module class or function) of the innermost source of a node, or None."""
    stack = node.meta.get("source_fn_stack")
    if stack:
        return stack[-1]
    if node.meta.get("torch_fn"):
        return node.meta["torch_fn"]
    modules = node.meta.get("nn_module_stack")
    if not modules:
        return None
    path, kind = list(modules.values())[-1]
    return path, kind


def _is(kind, wanted):
    if kind is wanted:
        return True
    text = kind if isinstance(kind, str) else None
    return text is not None and isinstance(wanted, type) and text.rpartition(".")[2] == wanted.__name__


def _partition(nodes, source):
    inside = set(nodes)
    inputs, outputs, params = [], [], []
    for node in nodes:
        for used in node.args:
            if isinstance(used, Node) and used not in inside and used not in inputs:
                inputs.append(used)
        if node.op == "get_attr":
            params.append(node)
        if any(user not in inside for user in node.users) and node not in outputs:
            outputs.append(node)
    return SourcePartition(list(nodes), source, inputs, outputs, params)


def get_source_partitions(graph, wanted_sources, filter_fn=None):
    """For each wanted module class or function that the graph has, its calls as partitions."""
    found = {}
    for node in graph.nodes:
        source = _source_of(node) if node.op not in ("placeholder", "output") else None
        wanted = next((w for w in wanted_sources if source is not None and _is(source[1], w)), None)
        if wanted is not None:
            found.setdefault(wanted, {}).setdefault(source[0], []).append(node)
    if filter_fn is not None:
        found = {w: {key: nodes for key, nodes in calls.items() if all(map(filter_fn, nodes))} for w, calls in found.items()}
    return {w: [_partition(nodes, w) for nodes in calls.values()] for w, calls in found.items() if calls}


def check_subgraphs_connected(subgraph1, subgraph2):
    """Whether the second takes what the first gives."""
    return any(node in subgraph1.nodes for node in subgraph2.input_nodes)
