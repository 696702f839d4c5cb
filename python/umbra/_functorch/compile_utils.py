"""What compilers of graphs share."""
import copy

__all__ = ["fx_graph_cse", "get_aten_target", "get_outputs", "get_placeholders", "strip_overloads"]


def get_aten_target(node):
    """What a node calls, without the overload."""
    return getattr(node.target, "overloadpacket", node.target)


def fx_graph_cse(fx_g):
    """A copy of a graph without calls that compute once more what is there. Random numbers and what writes stay."""
    graph = copy.deepcopy(fx_g)
    graph._eliminate_common_subexpressions()
    return graph


def strip_overloads(gm):
    """Makes every call of an overload one of its operator: `aten.add.Tensor` becomes `aten.add`."""
    for node in gm.graph.nodes:
        if node.op == "call_function":
            node.target = get_aten_target(node)
    gm.recompile()


def get_placeholders(graph):
    return graph.find_nodes(op="placeholder")


def get_outputs(graph):
    """The outputs of a graph, out of their nest."""
    from umbra.utils import _pytree as pytree
    return pytree.tree_leaves(graph.output_node().args[0])
