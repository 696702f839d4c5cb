"""What several passes use."""
import collections
import heapq
import operator

from umbra._C import Tensor

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


# Assertions and what they are made of come as early as they can, ahead of what rests on them.
_EARLY = tuple(getattr(operator, name) for name in ("add", "mul", "sub", "floordiv", "truediv", "mod", "le", "lt", "ge", "gt", "eq", "ne")) + (
    "aten.sym_constrain_range.default", "aten.sym_constrain_range_for_size.default", "aten._assert_async.msg", "aten.scalar_tensor.default",
    "aten._assert_scalar.default")


def _by_readiness(graph):
    """The nodes in the order in which they can run: what waits for nothing first, then the users of each."""
    waits = {node: len(node.all_input_nodes) for node in graph.nodes}
    ready = collections.deque(node for node, count in waits.items() if count == 0)
    while ready:
        node = ready.popleft()
        yield node
        for user in node.users:
            waits[user] -= 1
            if waits[user] == 0:
                early = user.op == "call_function" and (user.target in _EARLY or str(user.target) in _EARLY)
                (ready.appendleft if early else ready.append)(user)


def _put_in_order(gm, ordered):
    """The nodes in this order, the output last; the module runs in it."""
    if len(ordered) < len(gm.graph.nodes):
        raise RuntimeError(f"Input graph has cycles, unable to add {[node for node in gm.graph.nodes if node not in set(ordered)]}")
    output = gm.graph._output_node()
    ordered = [node for node in ordered if node is not output] + ([] if output is None else [output])
    for before, node in zip(ordered, ordered[1:]):
        before.append(node)
    gm.recompile()
    return gm


def legalize_graph(gm):
    """Puts the nodes of a graph into the order in which they can run, inputs and attributes first; the module runs in that order."""
    return _put_in_order(gm, list(_by_readiness(gm.graph)))


def stable_topological_sort(gm):
    """Puts the nodes of a graph into an order in which each comes after those that it uses: of those that can run, the first in the order
    that was. The module runs in that order."""
    places = {node: place for place, node in enumerate(gm.graph.nodes)}
    waits = {node: len(node.all_input_nodes) for node in places}
    ready = [(place, node) for node, place in places.items() if not waits[node]]
    ordered = []
    while ready:
        ordered.append(heapq.heappop(ready)[1])
        for user in ordered[-1].users:
            waits[user] -= 1
            if not waits[user]:
                heapq.heappush(ready, (places[user], user))
    return _put_in_order(gm, ordered)
