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


def _source_of(node, wanted):
    """(which of the wanted sources, which call of it) made a node, or None: a function by the name that a program calls it, else the innermost module."""
    if stack := node.meta.get("source_fn_stack"):
        call, source = stack[-1]
        return (source, call) if source in wanted else None
    if node.meta.get("torch_fn"):
        call, function = node.meta["torch_fn"]
        if (name := function.split(".")[1]) in wanted:
            return name, call
    if node.op != "call_function" or not node.meta.get("nn_module_stack"):
        return None
    path, kind = list(node.meta["nn_module_stack"].values())[-1]
    found = next((source for source in wanted if _is(kind, source)), None)
    return None if found is None else (found, path)


def _is(kind, wanted):
    if not isinstance(wanted, type) or not isinstance(kind, (str, type)):
        return kind == wanted
    if isinstance(kind, type):
        return issubclass(kind, wanted)
    return kind == f"{wanted.__module__}.{wanted.__qualname__}".replace("umbra.", "torch.", 1)


def _partition(nodes, source):
    inside = set(nodes)
    inputs, outputs, params = [], [], []
    for node in nodes:
        for used in node.args:
            if isinstance(used, Node) and used not in inside and used.op != "get_attr" and used not in inputs:
                inputs.append(used)
        if node.op == "get_attr":
            params.append(node)
        elif any(user not in inside for user in node.users) and node not in outputs:
            outputs.append(node)
    return SourcePartition(list(nodes), source, inputs, outputs, params)


def get_source_partitions(graph, wanted_sources, filter_fn=None):
    """For each wanted module class or function that the graph has, its calls as partitions."""
    found = {}
    for node in graph.nodes:
        if source := _source_of(node, wanted_sources):
            found.setdefault(source[0], {}).setdefault(source[1], []).append(node)
    if filter_fn is not None:
        found = {w: {key: nodes for key, nodes in calls.items() if all(map(filter_fn, nodes))} for w, calls in found.items()}
    return {w: [_partition(nodes, w) for nodes in calls.values()] for w, calls in found.items() if calls}


def check_subgraphs_connected(subgraph1, subgraph2):
    """Whether the second takes what the first gives."""
    return any(node in subgraph1.nodes for node in subgraph2.input_nodes)
