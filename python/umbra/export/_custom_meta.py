"""What users have noted of nodes (`node.meta["custom"]`) and of graphs, in programs that are made of other programs."""


def carry_over(program, graph_module, names=None):
    """Notes of a graph that was run to make the program. A call has those of the call that it was made in. Inputs and outputs have those of the nodes of their
    names; where there are `names`, weights have those of the nodes that it gives for them, and other inputs none."""
    notes = {node.name: node.meta["custom"] for node in graph_module.graph.nodes if "custom" in node.meta}
    if "custom" in graph_module.meta:
        program.graph_module.meta["custom"] = graph_module.meta["custom"]
    if not notes:
        return
    for node in program.graph.nodes:
        origin = _origin(node, names)
        if origin in notes and "custom" not in node.meta:
            node.meta["custom"] = notes[origin]


def _origin(node, names):
    """The name of the node that this one was made of, or None."""
    if node.op in ("placeholder", "output"):
        return node.name if names is None else names.get(node.name)
    sources = node.meta.get("from_node")
    return sources[-1].name if sources else None


def nodes_of_weights(program, graph_module):
    """{placeholder of a weight: the node of a module's graph that reads it}."""
    read = {node.target: node.name for node in graph_module.graph.nodes if node.op == "get_attr"}
    return {spec.arg.name: read[spec.target] for spec in program.graph_signature.input_specs if spec.target in read}
