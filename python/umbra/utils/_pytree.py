"""Nested containers as trees: their leaves in a list, their structure in a spec, and back.

    leaves, spec = tree_flatten({"a": [1, 2], "b": (3,)})     # [1, 2, 3], TreeSpec(dict, ['a', 'b'], ...)
    tree_unflatten(leaves, spec)                              # {"a": [1, 2], "b": (3,)}
"""
import collections
import dataclasses
import importlib
import json
import warnings
from typing import Any, Callable, NamedTuple, Optional

from umbra import _C

Context = Any
PyTree = Any
KeyPath = tuple


# ---- keys: where a leaf stands ----

@dataclasses.dataclass(frozen=True)
class SequenceKey:
    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"

    def get(self, sequence):
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    key: Any

    def __str__(self):
        return f"[{self.key!r}]"

    def get(self, mapping):
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    name: str

    def __str__(self):
        return f".{self.name}"

    def get(self, obj):
        return getattr(obj, self.name)


def keystr(path):
    return "".join(str(key) for key in path)


def key_get(obj, path):
    for key in path:
        obj = key.get(obj)
    return obj


# ---- the registry of node types ----

class NodeDef(NamedTuple):
    type: type
    flatten_fn: Callable
    unflatten_fn: Callable
    flatten_with_keys_fn: Optional[Callable]


class _Serialized(NamedTuple):
    name: Optional[str]
    to_json: Optional[Callable]
    from_json: Optional[Callable]


SUPPORTED_NODES = {}
SUPPORTED_SERIALIZED_TYPES = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE = {}
BUILTIN_TYPES = frozenset()


def register_pytree_node(cls, flatten_fn, unflatten_fn, *, serialized_type_name=None, to_dumpable_context=None,
                         from_dumpable_context=None, flatten_with_keys_fn=None):
    """Makes a class a node: `flatten_fn(obj) -> (children, context)`, `unflatten_fn(children, context) -> obj`."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    SUPPORTED_SERIALIZED_TYPES[cls] = _Serialized(serialized_type_name, to_dumpable_context, from_dumpable_context)
    if serialized_type_name is not None:
        SERIALIZED_TYPE_TO_PYTHON_TYPE[serialized_type_name] = cls


_private_register_pytree_node = register_pytree_node


def _register_pytree_node(cls, flatten_fn, unflatten_fn, to_str_fn=None, maybe_from_str_fn=None, **kwargs):
    if to_str_fn is not None or maybe_from_str_fn is not None:
        warnings.warn("`to_str_fn` and `maybe_from_str_fn` is deprecated. Please use `to_dumpable_context` and `from_dumpable_context` instead.",
                      FutureWarning, stacklevel=2)
    register_pytree_node(cls, flatten_fn, unflatten_fn, **kwargs)


def _deregister_pytree_node(cls):
    SUPPORTED_NODES.pop(cls, None)
    name = SUPPORTED_SERIALIZED_TYPES.pop(cls, _Serialized(None, None, None)).name
    SERIALIZED_TYPE_TO_PYTHON_TYPE.pop(name, None)


def _register_namedtuple(cls, *, serialized_type_name):
    SUPPORTED_SERIALIZED_TYPES[cls] = _Serialized(serialized_type_name, None, None)
    SERIALIZED_TYPE_TO_PYTHON_TYPE[serialized_type_name] = cls


def register_dataclass(cls, *, field_names=None, drop_field_names=None, serialized_type_name=None):
    if not field_names and not dataclasses.is_dataclass(cls):
        raise ValueError(f"field_names must be specified with a list of all fields used to initialize {cls}, as it is not a dataclass.")
    names = field_names or [f.name for f in dataclasses.fields(cls) if f.init]
    names = [name for name in names if name not in (drop_field_names or ())]

    def present(obj):
        return [name for name in names if getattr(obj, name) is not None]

    def flatten(obj):
        kept = present(obj)
        missing = [name for name in names if name not in kept]
        return [getattr(obj, name) for name in kept], [kept, missing]

    def unflatten(values, context):
        kept, missing = context
        return cls(**dict(zip(kept, values)), **dict.fromkeys(missing))

    register_pytree_node(cls, flatten, unflatten, serialized_type_name=serialized_type_name,
                         flatten_with_keys_fn=lambda obj: ([(GetAttrKey(n), getattr(obj, n)) for n in present(obj)], flatten(obj)[1]))


class ConstantNode(NamedTuple):
    value: Any


def register_constant(cls):
    """Objects of the class are no leaves but part of the structure."""
    register_pytree_node(cls, lambda obj: ([], ConstantNode(obj)), lambda values, context: context.value,
                         flatten_with_keys_fn=lambda obj: ([], ConstantNode(obj)))


def is_constant_class(cls):
    node = SUPPORTED_NODES.get(cls)
    return node is not None and node.flatten_fn.__qualname__.startswith("register_constant")


# ---- the containers of Python ----

def is_namedtuple_class(cls):
    return (isinstance(cls, type) and issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)
            and all(type(field) is str for field in cls._fields) and callable(getattr(cls, "_make", None)))


def is_namedtuple_instance(obj):
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj):
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls):
    return isinstance(cls, type) and cls.__bases__ == (tuple,) and isinstance(getattr(cls, "n_fields", None), int)


def is_structseq_instance(obj):
    return is_structseq_class(type(obj))


def is_structseq(obj):
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _with_indices(flatten):
    def with_keys(obj):
        values, context = flatten(obj)
        return [(SequenceKey(i), value) for i, value in enumerate(values)], context
    return with_keys


def _with_names(flatten, names, key):
    def with_keys(obj):
        values, context = flatten(obj)
        return [(key(name), value) for name, value in zip(names(context), values)], context
    return with_keys


def _flatten_dict(obj):
    return list(obj.values()), list(obj.keys())


def _flatten_defaultdict(obj):
    return list(obj.values()), [obj.default_factory, list(obj.keys())]


def _unflatten_defaultdict(values, context):
    return collections.defaultdict(context[0], zip(context[1], values))


def _dump_defaultdict(context):
    factory = context[0]
    return {"default_factory_module": factory.__module__, "default_factory_name": factory.__qualname__, "dict_context": context[1]}


def _load_defaultdict(dumped):
    module = importlib.import_module(dumped["default_factory_module"])
    return [getattr(module, dumped["default_factory_name"]), dumped["dict_context"]]


def _namedtuple_flatten(obj):
    return list(obj), type(obj)


def _namedtuple_unflatten(values, cls):
    return cls(*values)


def _dump_namedtuple(cls):
    serialized = SUPPORTED_SERIALIZED_TYPES.get(cls)
    if serialized is None or serialized.name is None:
        raise NotImplementedError(f"Can't serialize TreeSpec of namedtuple class {cls} because we didn't register a "
                                  "serialized_type_name. Please register using `_register_namedtuple`.")
    return serialized.name


def _load_namedtuple(name):
    if name not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Can't deserialize TreeSpec of namedtuple class {name} because we couldn't find a "
                                  "serialized_type_name.")
    return SERIALIZED_TYPE_TO_PYTHON_TYPE[name]


def _flatten_list(obj):
    return list(obj), None


_INDEXED = _with_indices(_flatten_list)
_NAMED = _with_names(_flatten_dict, lambda context: context, MappingKey)
register_pytree_node(tuple, _flatten_list, lambda values, _: tuple(values), serialized_type_name="builtins.tuple",
                     flatten_with_keys_fn=_INDEXED)
register_pytree_node(list, _flatten_list, lambda values, _: list(values), serialized_type_name="builtins.list",
                     flatten_with_keys_fn=_INDEXED)
register_pytree_node(dict, _flatten_dict, lambda values, keys: dict(zip(keys, values)), serialized_type_name="builtins.dict",
                     flatten_with_keys_fn=_NAMED)
register_pytree_node(collections.namedtuple, _namedtuple_flatten, _namedtuple_unflatten,
                     serialized_type_name="collections.namedtuple", to_dumpable_context=_dump_namedtuple,
                     from_dumpable_context=_load_namedtuple,
                     flatten_with_keys_fn=_with_names(_namedtuple_flatten, lambda cls: cls._fields, GetAttrKey))
register_pytree_node(collections.OrderedDict, _flatten_dict, lambda values, keys: collections.OrderedDict(zip(keys, values)),
                     serialized_type_name="collections.OrderedDict", flatten_with_keys_fn=_NAMED)
register_pytree_node(collections.defaultdict, _flatten_defaultdict, _unflatten_defaultdict,
                     serialized_type_name="collections.defaultdict", to_dumpable_context=_dump_defaultdict,
                     from_dumpable_context=_load_defaultdict,
                     flatten_with_keys_fn=_with_names(_flatten_defaultdict, lambda context: context[1], MappingKey))
register_pytree_node(collections.deque, lambda obj: (list(obj), obj.maxlen), lambda values, n: collections.deque(values, maxlen=n),
                     serialized_type_name="collections.deque", flatten_with_keys_fn=_with_indices(lambda o: (list(o), o.maxlen)))
register_pytree_node(_C.Size, _flatten_list, lambda values, _: tuple(values), serialized_type_name="torch.Size",
                     flatten_with_keys_fn=_INDEXED)
BUILTIN_TYPES = frozenset(SUPPORTED_NODES)

# PyTorch's names for how plain containers come apart, which other packages use for their own.
_list_flatten = _tuple_flatten = _flatten_list
_list_flatten_with_keys = _tuple_flatten_with_keys = _INDEXED
_dict_flatten, _dict_flatten_with_keys = _flatten_dict, _NAMED
_list_unflatten, _tuple_unflatten, _dict_unflatten = (SUPPORTED_NODES[cls].unflatten_fn for cls in (list, tuple, dict))


def _node_type(obj):
    cls = type(obj)
    if cls in SUPPORTED_NODES:
        return cls
    if isinstance(obj, tuple):
        if is_namedtuple_class(cls):
            return collections.namedtuple
        if cls in _C._return_types.values():
            _register_return_type(cls)
            return cls
    return None


_get_node_type = _node_type


def _register_return_type(cls):
    register_pytree_node(cls, _flatten_list, lambda values, _: cls(values),
                         serialized_type_name=f"torch.return_types.{cls.__name__}", flatten_with_keys_fn=_INDEXED)


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


def _serialized_node(spec):
    """The type of a spec that is no leaf by the name it has in files, and what it keeps besides, as files have it."""
    serialized = SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    if serialized is None or serialized.name is None:
        raise NotImplementedError(f"No registered serialization name for {spec.type} found. Please update your "
                                  "_register_pytree_node call with a `serialized_type_name` kwarg.")
    if serialized.to_json is not None:
        return serialized.name, serialized.to_json(spec.context)
    try:
        return serialized.name, json.dumps(spec.context)
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
    return TreeSpec(cls, from_json(context) if from_json is not None else json.loads(context), children)


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
