"""Types of elements, from the types of what they are elements of."""
import operator
import typing

__all__ = ["annotate_getitem_nodes"]


def _element_type(container, index):
    """The type of an element of a list, tuple or named tuple; None where the type does not tell."""
    if hasattr(container, "_fields") and typing.get_type_hints(container):
        hints = typing.get_type_hints(container)
        return hints.get(container._fields[index]) if isinstance(index, int) and index < len(container._fields) else None
    origin, parts = typing.get_origin(container), typing.get_args(container)
    if origin is list and parts:
        return parts[0]
    if origin is tuple and parts:
        if len(parts) == 2 and parts[1] is Ellipsis:
            return parts[0]
        return parts[index] if isinstance(index, int) and -len(parts) <= index < len(parts) else None
    return None


def annotate_getitem_nodes(graph):
    """Gives `getitem` nodes of typed containers the type of the element."""
    for node in graph.nodes:
        if node.target is not operator.getitem or getattr(node.args[0], "type", None) is None:
            continue
        found = _element_type(node.args[0].type, node.args[1])
        if found is not None:
            node.type = found
