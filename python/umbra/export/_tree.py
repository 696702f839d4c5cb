"""Python's tree specs as the library describes them, (kind, keys, type, children), and back."""
import collections

from umbra.utils import _pytree as pytree

_DICTS = {dict, collections.OrderedDict, collections.defaultdict}


def describe(spec):
    if spec.is_leaf():
        return None
    children = [describe(child) for child in spec.children_specs]
    if spec.type is tuple:
        return "tuple", [], "", children
    if spec.type is list:
        return "list", [], "", children
    if spec.type in _DICTS:
        keys = spec.context[1] if spec.type is collections.defaultdict else spec.context
        return "dict", [str(key) for key in keys], "", children
    if spec.type is collections.namedtuple:
        cls = spec.context
        return "namedtuple", list(cls._fields), f"{cls.__module__}.{cls.__qualname__}", children
    keys = [str(key).lstrip(".").strip("[]'") for key in spec.entries()] if pytree.SUPPORTED_NODES[spec.type].flatten_with_keys_fn else None
    name = pytree.SUPPORTED_SERIALIZED_TYPES[spec.type].name or f"{spec.type.__module__}.{spec.type.__qualname__}"
    return ("namedtuple", keys, name, children) if keys else ("list", [], "", children)


def restore(description):
    if description is None:
        return pytree.treespec_leaf()
    kind, keys, name, children = description
    children = [restore(child) for child in children]
    if kind == "dict":
        return pytree.TreeSpec(dict, list(keys), children)
    if kind == "namedtuple":
        cls = pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE.get(name)
        if cls is not None and hasattr(cls, "_fields"):
            return pytree.TreeSpec(collections.namedtuple, cls, children)
        return pytree.TreeSpec(tuple, None, children)
    return pytree.TreeSpec(list if kind == "list" else tuple, None, children)
