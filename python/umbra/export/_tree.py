"""Python's tree specs as the library describes them, (kind, keys, type, children, context), and back."""
import collections
import enum
import json

from umbra import _C
from umbra.utils import _pytree as pytree

_DICTS = {dict, collections.OrderedDict, collections.defaultdict}


def without_enums(leaves):
    """Leaves with what a program has for members of an Enum: their number or text where they are one, else their name."""
    return [leaf if not isinstance(leaf, enum.Enum) else leaf.value if isinstance(leaf, (int, str)) else str(leaf) for leaf in leaves]


def describe(spec):
    """A spec as C++ has it. The last field is what files say of the type besides, as JSON; empty where the keys say it, or where nothing is registered."""
    if spec.is_leaf():
        return None
    children = [describe(child) for child in spec.children_specs]
    if spec.type in (tuple, list):
        return spec.type.__name__, [], "", children, ""
    kind, keys = _kind_and_keys(spec)
    if spec.type is dict and all(type(key) is str for key in spec.context):
        return kind, keys, "", children, ""
    name, context = _serialized(spec)
    return kind, keys, "" if spec.type is dict else name, children, context


def _kind_and_keys(spec):
    if spec.type in _DICTS:
        keys = spec.context[1] if spec.type is collections.defaultdict else spec.context
        return "dict", [str(key) for key in keys]
    if spec.type is collections.namedtuple:
        return "namedtuple", list(spec.context._fields)
    if spec.type is collections.deque:
        return "list", []
    if spec.type is _C.Size or spec.type in _C._return_types.values():
        return "tuple", []
    if pytree.SUPPORTED_NODES[spec.type].flatten_with_keys_fn:
        return "namedtuple", [str(key).lstrip(".").strip("[]'") for key in spec.entries()]
    return "namedtuple", [str(i) for i in range(spec.num_children)]


def _serialized(spec):
    try:
        name, context = pytree._serialized_node(spec)
        return name, json.dumps(context)
    except (NotImplementedError, TypeError):  # saving the program says so
        cls = spec.context if spec.type is collections.namedtuple else spec.type
        return f"{cls.__module__}.{cls.__qualname__}", ""


def restore(description):
    """The spec of a description; containers whose types nobody has registered are tuples."""
    if description is None:
        return pytree.treespec_leaf()
    kind, keys, name, children, context = description
    children = [restore(child) for child in children]
    if name or context:
        try:
            return pytree._deserialized_node(name or "builtins.dict", json.loads(context) if context else json.dumps(keys), children)
        except NotImplementedError:
            pass
    if kind == "dict":
        return pytree.TreeSpec(dict, list(keys), children)
    cls = pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE.get(name)
    if cls is not None and hasattr(cls, "_fields"):
        return pytree.TreeSpec(collections.namedtuple, cls, children)
    return pytree.TreeSpec(list if kind == "list" else tuple, None, children)
