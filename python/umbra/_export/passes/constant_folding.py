"""What a graph computes of its attributes alone is computed once.

    module = program.module()
    constant_fold(module)
"""
import itertools

from umbra import _C
from umbra.utils import _pytree as pytree
from umbra.utils._python_dispatch import _disable_current_modes


def constant_fold(gm, constraint_fn=None):
    """Replaces calls of tensors that are attributes by attributes that hold their results, and removes what is not used any more. `constraint_fn(node)`: whether
    a call may go. Attributes that the graph writes are no constants, nor are random numbers and what is made of no tensor."""
    with _disable_current_modes():
        values = _constants(gm)
    for node, value in values.items():
        needed = any(user not in values for user in node.users)
        if node.op == "call_function" and needed and (constraint_fn is None or constraint_fn(node)):
            replace_node_with_constant(gm, node, value)
    read = _read_attributes(gm)
    gm.graph.eliminate_dead_code()
    for path in read - _read_attributes(gm):
        owner, _, name = path.rpartition(".")
        delattr(_attribute(gm, owner) if owner else gm, name)
    gm.graph.lint()
    gm.recompile()


def replace_node_with_constant(gm, node, constant, name=None):
    """The node's users take a buffer that holds `constant` instead."""
    name = name or next(free for i in itertools.count() if not hasattr(gm, free := f"_frozen_param{i}"))
    gm.register_buffer(name, constant)
    with gm.graph.inserting_before(node):
        read = gm.graph.get_attr(name)
    read.meta = dict(node.meta)
    node.replace_all_uses_with(read)
    gm.graph.erase_node(node)


def _constants(gm):
    """The tensors that are known without the inputs, by their nodes."""
    written = {argument.target for node in gm.graph.nodes if node.op == "call_function" and node.is_impure() for argument in node.all_input_nodes
               if argument.op == "get_attr"}
    values = {}
    for node in gm.graph.nodes:
        if node.op == "get_attr" and node.target not in written:
            value = _attribute(gm, node.target)
        elif node.op == "call_function" and node.all_input_nodes and all(given in values for given in node.all_input_nodes) and not node.is_impure():
            args, kwargs = pytree.tree_map(lambda leaf: values.get(leaf, leaf) if hasattr(leaf, "all_input_nodes") else leaf, (node.args, dict(node.kwargs)),
                                           is_leaf=lambda leaf: hasattr(leaf, "all_input_nodes"))
            value = node.target(*args, **kwargs)
        else:
            continue
        if isinstance(value, _C.Tensor) and not value.is_meta:
            values[node] = value.detach()
    return values


def _attribute(gm, path):
    for part in path.split("."):
        gm = getattr(gm, part)
    return gm


def _read_attributes(gm):
    return {node.target for node in gm.graph.find_nodes(op="get_attr")}
