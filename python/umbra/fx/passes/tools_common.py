"""What several passes use."""
import operator

from umbra._C import Tensor
from umbra.fx.passes.utils.fuser_utils import topo_sort

__all__ = ["CALLABLE_NODE_OPS", "get_acc_ops_name", "get_node_target", "is_node_output_tensor", "legalize_graph", "stable_topological_sort"]

CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_acc_ops_name(k):
    """The name of a function as passes list it: with its module, where that tells more."""
    if isinstance(k, str):
        return k
    if k.__module__ and "acc_ops" in k.__module__:
        return f"acc_ops.{k.__name__}"
    module = (k.__module__ or "").replace("umbra", "torch", 1).replace("torch._ops", "torch.ops")
    return f"{module}.{k.__name__}" if module else k.__name__


def get_node_target(submodules, node):
    """What a node calls, as text: a module's class, a function's name, a method's name."""
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(f"Expect op types of {', '.join(sorted(CALLABLE_NODE_OPS))}, but found {node.op}")
    if node.op == "call_module":
        module = submodules[node.target]
        return get_acc_ops_name(getattr(module, "_base_class_origin", type(module)))
    if node.op == "call_function":
        function = node.target
        return f"_operator.{function.__name__}" if function.__module__ == operator.add.__module__ else get_acc_ops_name(function)
    return node.target


def is_node_output_tensor(node):
    """Whether a node's value is a tensor, by the type that was noted."""
    kind = node.meta.get("type")
    return kind is not None and issubclass(kind, Tensor)


def stable_topological_sort(gm):
    """Puts the nodes of a graph into an order in which each comes after those that it uses; as few as possible change places."""
    output = gm.graph._output_node()
    inputs = [node for node in gm.graph.nodes if node.op == "placeholder"]
    others = [node for node in gm.graph.nodes if node.op not in ("placeholder", "output")]
    previous = None
    for node in [*inputs, *topo_sort(others), *([] if output is None else [output])]:
        if previous is not None:
            previous.append(node)
        previous = node
    return gm


def legalize_graph(gm):
    """The same, and the module runs in that order."""
    stable_topological_sort(gm)
    gm.recompile()
    return gm
