"""What several passes use."""
from umbra.fx.passes.utils.fuser_utils import topo_sort

__all__ = ["legalize_graph"]


def legalize_graph(gm):
    """Puts the nodes of a graph into an order in which each comes after those that it uses; as few as possible change places."""
    previous = None
    inputs = [node for node in gm.graph.nodes if node.op == "placeholder"]
    others = [node for node in gm.graph.nodes if node.op not in ("placeholder", "output")]
    for node in [*inputs, *topo_sort(others)]:
        if previous is not None:
            previous.append(node)
        previous = node
    return gm
