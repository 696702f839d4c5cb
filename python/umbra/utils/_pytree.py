"""Nested containers as trees: their leaves in a list, their structure in a spec, and back.

    leaves, spec = tree_flatten({"a": [1, 2], "b": (3,)})     # [1, 2, 3], TreeSpec(dict, ['a', 'b'], ...)
    tree_unflatten(leaves, spec)                              # {"a": [1, 2], "b": (3,)}
"""
import collections
import enum
import json
import sys
from typing import Any

from umbra import _C
from umbra.utils._pytree_nodes import (  # noqa: F401  (one module in PyTorch, whose names programs use)
    BUILTIN_TYPES, ConstantNode, GetAttrKey, MappingKey, NodeDef, SERIALIZED_TYPE_TO_PYTHON_TYPE, SUPPORTED_NODES,
    SUPPORTED_SERIALIZED_TYPES, SequenceKey, _INDEXED, _NAMED, _Serialized, _deregister_pytree_node, _dict_flatten, _dict_flatten_with_keys,
    _dict_unflatten, _dump_defaultdict, _dump_namedtuple, _flatten_defaultdict, _flatten_dict, _flatten_list, _get_node_type, _list_flatten,
    _list_flatten_with_keys, _list_unflatten, _load_defaultdict, _load_namedtuple, _namedtuple_flatten, _namedtuple_unflatten, _node_type,
    _private_register_pytree_node, _register_namedtuple, _register_pytree_node, _register_return_type, _tuple_flatten,
    _tuple_flatten_with_keys, _tuple_unflatten, _unflatten_defaultdict, _with_indices, _with_names, is_constant_class, is_namedtuple,
    is_namedtuple_class, is_namedtuple_instance, is_structseq, is_structseq_class, is_structseq_instance, key_get, keystr,
    register_constant, register_dataclass, register_pytree_node)

Context = Any
PyTree = Any
KeyPath = tuple


# ---- specs ----

class TreeSpec:
    """The structure of a tree: a node's type, what it needs to be rebuilt, and its children."""
    __slots__ = ("type", "_context", "_children", "num_nodes", "num_leaves", "num_children")

    def __init__(self, type, context, children_specs):
        self.type = type
        self._context = context
        self._children = list(children_specs)
        self.num_children = len(self._children)
        self.num_nodes = 1 + sum(child.num_nodes for child in self._children)
        self.num_leaves = sum(child.num_leaves for child in self._children) if type is not None else 1

    @property
    def context(self):
        return self._context

    @property
    def children_specs(self):
        return self._children

    def children(self):
        return list(self._children)

    def child(self, index):
        return self._children[index]

    def is_leaf(self):
        return self.type is None

    def __repr__(self, indent=0):
        inner = indent + 2
        children = [child.__repr__(inner) for child in self._children]
        return f"TreeSpec({self.type.__name__}, {self._context}, [" + (",\n" + " " * inner).join(children) + "])"

    def __eq__(self, other):
        if self is other:
            return True
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return self.type is other.type and self._context == other._context and self._children == other._children

    def __hash__(self):
        context = self._context
        context = tuple(context) if isinstance(context, list) else context
        try:
            return hash((self.type, context, tuple(self._children)))
        except TypeError:  # a context that cannot be hashed, such as a defaultdict's
            return hash((self.type, tuple(self._children)))

    def unflatten(self, leaves):
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that holds "
                             f"{self.num_leaves} items ({self}).")
        return self._build(iter(leaves))

    def _build(self, leaves):
        return SUPPORTED_NODES[self.type].unflatten_fn([child._build(leaves) for child in self._children], self._context)

    def flatten_up_to(self, tree):
        """The subtrees of `tree` that stand where this spec has its leaves."""
        out = []
        self._flatten_up_to(tree, out)
        return out

    def _flatten_up_to(self, tree, out):
        node_type = _node_type(tree)
        if node_type is None:
            raise ValueError(f"Type mismatch; expected {self.type!r}, but got {type(tree)!r}.")
        both_dicts = {node_type, self.type} <= {dict, collections.OrderedDict, collections.defaultdict}
        if node_type is not self.type and not both_dicts:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {node_type!r}.")
        values, context = SUPPORTED_NODES[node_type].flatten_fn(tree)
        if len(values) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(values)}.")
        if both_dicts:
            keys = self._context[1] if self.type is collections.defaultdict else self._context
            if set(keys) != set(tree):
                raise ValueError(f"Node keys mismatch; expected {list(keys)}, but got {list(tree)}.")
            values = [tree[key] for key in keys]
        elif context != self._context:
            raise ValueError(f"Node context mismatch for node type {self.type!r}: {context!r} != {self._context!r}.")
        for child, value in zip(self._children, values):
            child._flatten_up_to(value, out)

    def entries(self):
        node = SUPPORTED_NODES[self.type]
        return [key for key, _ in node.flatten_with_keys_fn(node.unflatten_fn(list(range(self.num_children)), self._context))[0]]


class LeafSpec(TreeSpec):
    __slots__ = ()

    def __init__(self):
        super().__init__(None, None, [])

    def __repr__(self, indent=0):
        return "*"

    def _build(self, leaves):
        return next(leaves)

    def _flatten_up_to(self, tree, out):
        out.append(tree)


PyTreeSpec = TreeSpec
_LEAF_SPEC = LeafSpec()


def treespec_leaf():
    return _LEAF_SPEC


def treespec_tuple(iterable=()):
    return TreeSpec(tuple, None, list(iterable))


def treespec_dict(mapping=(), **kwargs):
    items = dict(mapping, **kwargs)
    return TreeSpec(dict, list(items), list(items.values()))


# ---- flatten and map ----

def _is_leaf(tree, is_leaf=None):
    return (is_leaf is not None and is_leaf(tree)) or _node_type(tree) is None


tree_is_leaf = _is_leaf


def _flatten(tree, leaves, is_leaf):
    node_type = _node_type(tree)
    if node_type is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return _LEAF_SPEC
    values, context = SUPPORTED_NODES[node_type].flatten_fn(tree)
    return TreeSpec(node_type, context, [_flatten(value, leaves, is_leaf) for value in values])


def tree_flatten(tree, is_leaf=None):
    leaves = []
    spec = _flatten(tree, leaves, is_leaf)
    return leaves, spec


def tree_unflatten(leaves, treespec):
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of PyTreeSpec but got item of type "
                        f"{type(treespec)}.")
    return treespec.unflatten(leaves)


def tree_iter(tree, is_leaf=None):
    node_type = _node_type(tree)
    if node_type is None or (is_leaf is not None and is_leaf(tree)):
        yield tree
        return
    for value in SUPPORTED_NODES[node_type].flatten_fn(tree)[0]:
        yield from tree_iter(value, is_leaf)


def tree_leaves(tree, is_leaf=None):
    return list(tree_iter(tree, is_leaf))


def arg_tree_leaves(*args, **kwargs):
    return [leaf for value in (*args, *kwargs.values()) for leaf in tree_iter(value)]


def tree_structure(tree, is_leaf=None):
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves] + [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(map(func, *columns))


def tree_map_(func, tree, *rests, is_leaf=None):
    leaves, spec = tree_flatten(tree, is_leaf)
    for values in zip(leaves, *[spec.flatten_up_to(rest) for rest in rests]):
        func(*values)
    return tree


def map_only(type_or_types, /):
    is_wanted = type_or_types if callable(type_or_types) and not isinstance(type_or_types, (type, tuple)) else \
        lambda value: isinstance(value, type_or_types)

    def decorator(func):
        return lambda value: func(value) if is_wanted(value) else value
    return decorator


def tree_map_only(type_or_types, /, func, tree, is_leaf=None):
    return tree_map(map_only(type_or_types)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types, /, func, tree, is_leaf=None):
    return tree_map_(map_only(type_or_types)(func), tree, is_leaf=is_leaf)


def tree_all(predicate, tree, is_leaf=None):
    return all(map(predicate, tree_iter(tree, is_leaf)))


def tree_any(predicate, tree, is_leaf=None):
    return any(map(predicate, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types, /, predicate, tree, is_leaf=None):
    return all(predicate(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types, /, predicate, tree, is_leaf=None):
    return any(predicate(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def _children_with_keys(tree):
    """Pairs of a key and a child of a node."""
    node_type = _node_type(tree)
    with_keys = SUPPORTED_NODES[node_type].flatten_with_keys_fn
    if with_keys is None:
        raise ValueError(f"Did not find a flatten_with_keys_fn for type: {node_type}. Please pass a flatten_with_keys_fn argument to "
                         "register_pytree_node.")
    return with_keys(tree)[0]


def _with_paths(path, tree, is_leaf):
    if _node_type(tree) is None or (is_leaf is not None and is_leaf(tree)):
        yield path, tree
        return
    for key, value in _children_with_keys(tree):
        yield from _with_paths((*path, key), value, is_leaf)


def tree_flatten_with_path(tree, is_leaf=None):
    return list(_with_paths((), tree, is_leaf)), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree, is_leaf=None):
    return list(_with_paths((), tree, is_leaf))


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [[path for path, _ in pairs], [leaf for _, leaf in pairs]] + [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(map(func, *columns))


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
    """The leaves of `tree` repeated to fit a spec that it is a prefix of; None where it is none."""
    if _is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or _node_type(tree) is not treespec.type:
        return None
    values, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    if len(values) != treespec.num_children or context != treespec.context:
        return None
    out = []
    for value, child in zip(values, treespec.children_specs):
        part = _broadcast_to_and_flatten(value, child, is_leaf)
        if part is None:
            return None
        out += part
    return out


# ---- specs as text ----

_PROTOCOL = 1


def _enum_to_json(value):
    if not isinstance(value, enum.Enum):
        raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
    return {"__enum__": True, "fqn": f"{type(value).__module__}:{type(value).__qualname__}", "name": value.name}


def _enum_from_json(found):
    """A member of an enum that this process has: to read a spec imports nothing."""
    if found.get("__enum__") is not True:
        return found
    module, _, path = found["fqn"].partition(":")
    cls = sys.modules.get(module)
    for part in path.split("."):
        cls = getattr(cls, part, None)
    if not (isinstance(cls, type) and issubclass(cls, enum.Enum)):
        raise NotImplementedError(f"the spec has a member of the enum {found['fqn']}, which is not there: import its module first")
    return cls[found["name"]]


def _serialized_node(spec):
    """The type of a spec that is no leaf by the name it has in files, and what it keeps besides, as files have it."""
    serialized = SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    if serialized is None or serialized.name is None:
        raise NotImplementedError(f"No registered serialization name for {spec.type} found. Please update your "
                                  "_register_pytree_node call with a `serialized_type_name` kwarg.")
    if serialized.to_json is not None:
        return serialized.name, serialized.to_json(spec.context)
    try:
        return serialized.name, json.dumps(spec.context, default=_enum_to_json)
    except TypeError as error:
        raise TypeError("Unable to serialize context. Please make the context json dump-able, or register a custom serializer using "
                        "_register_pytree_node.") from error


def _to_json(spec):
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    name, context = _serialized_node(spec)
    return {"type": name, "context": context, "children_spec": [_to_json(child) for child in spec.children_specs]}


def _deserialized_node(name, context, children):
    """The spec whose type has this name in files."""
    if name.startswith("torch.return_types."):
        _C._make_return_type(name.rpartition(".")[2])  # it may be the first one here
        for cls in _C._return_types.values():
            if cls.__name__ == name.rpartition(".")[2] and cls not in SUPPORTED_NODES:
                _register_return_type(cls)
    if name not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f'Deserializing `{name}` in pytree is not registered.')
    cls = SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
    from_json = SUPPORTED_SERIALIZED_TYPES[cls].from_json
    return TreeSpec(cls, from_json(context) if from_json is not None else json.loads(context, object_hook=_enum_from_json), children)


def _from_json(data):
    if data["type"] is None and data["context"] is None and not data["children_spec"]:
        return _LEAF_SPEC
    return _deserialized_node(data["type"], data["context"], [_from_json(child) for child in data["children_spec"]])


def treespec_dumps(treespec, protocol=None):
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"treespec_dumps(treespec, protocol): Expected `treespec` to be instance of PyTreeSpec but got item of type "
                        f"{type(treespec)}.")
    if protocol not in (None, _PROTOCOL):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{_PROTOCOL}]")
    return json.dumps((_PROTOCOL, _to_json(treespec)))


def treespec_loads(serialized):
    protocol, data = json.loads(serialized)
    if protocol != _PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{_PROTOCOL}]")
    return _from_json(data)


def treespec_pprint(treespec):
    return repr(treespec)
