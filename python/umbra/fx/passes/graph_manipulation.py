"""Small changes to graphs, and the sizes of what their nodes hold."""
import math
import typing

from umbra.fx.node import map_arg
from umbra.fx.passes.shape_prop import ShapeProp

__all__ = ["get_size_of_all_nodes", "get_size_of_node", "get_tensor_meta", "replace_target_nodes_with", "size_bytes"]


class size_bytes(typing.NamedTuple):
    """Bytes of a node's result, and of that with its parameters."""
    output_size: int
    total_size: int


def replace_target_nodes_with(fx_module, old_op, old_target, new_op, new_target):
    """Replaces every node of one kind and target by one of another, with the same arguments."""
    for node in list(fx_module.graph.nodes):
        if node.op != old_op or node.target != old_target:
            continue
        with fx_module.graph.inserting_before(node):
            other = fx_module.graph.create_node(new_op, new_target, map_arg(node.args, lambda n: n), dict(map_arg(node.kwargs, lambda n: n)), name=None)
        node.replace_all_uses_with(other)
        fx_module.graph.erase_node(node)
    fx_module.recompile()


def get_tensor_meta(node):
    meta = node.meta.get("tensor_meta")
    if not meta:
        raise RuntimeError(f"Node {node} has no tensor metadata associated with it! Check that shape propagation has run.")
    return meta


def get_size_of_node(fx_module, node):
    """The bytes of a node whose metadata are known."""
    parameters = 0
    if node.op == "call_module":
        module = fx_module.get_submodule(node.target)
        parameters = sum(p.numel() * p.element_size() for p in module.parameters())
    meta = get_tensor_meta(node)
    output = math.prod(meta.shape) * meta.dtype.itemsize
    return size_bytes(output, output + parameters)


def get_size_of_all_nodes(fx_module, args=None):
    """Gives each node of a graph its size in bytes, as `node.size_bytes` in its metadata."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op == "output":
            break
        node.meta["size_bytes"] = get_size_of_node(fx_module, node)
