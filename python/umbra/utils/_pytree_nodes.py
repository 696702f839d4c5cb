"""The nodes of trees: the keys below which their children stand, the classes that are nodes, and the containers of Python among them."""
import collections
import dataclasses
import importlib
import warnings
from typing import Any, Callable, NamedTuple, Optional

from umbra import _C


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
    _private_register_pytree_node(cls, flatten_fn, unflatten_fn, serialized_type_name=serialized_type_name, to_dumpable_context=to_dumpable_context,
                                  from_dumpable_context=from_dumpable_context, flatten_with_keys_fn=flatten_with_keys_fn)


def _private_register_pytree_node(cls, flatten_fn, unflatten_fn, *, serialized_type_name=None, to_dumpable_context=None,
                                  from_dumpable_context=None, flatten_with_keys_fn=None):
    """The same, but a class that is registered already is registered anew, as `register_dataclass` does."""
    if cls in SUPPORTED_NODES:
        warnings.warn(f"{cls} is already registered as pytree node. Overwriting the previous registration.", stacklevel=3)
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    SUPPORTED_SERIALIZED_TYPES[cls] = _Serialized(serialized_type_name, to_dumpable_context, from_dumpable_context)
    if serialized_type_name is not None:
        SERIALIZED_TYPE_TO_PYTHON_TYPE[serialized_type_name] = cls


def _register_pytree_node(cls, flatten_fn, unflatten_fn, to_str_fn=None, maybe_from_str_fn=None, **kwargs):
    warnings.warn("`torch.utils._pytree._register_pytree_node` is deprecated. Please use `torch.utils._pytree.register_pytree_node` instead.",
                  FutureWarning, stacklevel=2)
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


def register_dataclass(cls, *, field_names=None, drop_field_names=None, serialized_type_name=None, return_none_fields=False):
    """Makes a dataclass a container of its fields. Those that are None are part of the structure, unless `return_none_fields`: then they are leaves."""
    if not field_names and not dataclasses.is_dataclass(cls):
        raise ValueError(f"field_names must be specified with a list of all fields used to initialize {cls}, as it is not a dataclass.")
    names = field_names or [f.name for f in dataclasses.fields(cls) if f.init]
    names = [name for name in names if name not in (drop_field_names or ())]

    def present(obj):
        return [name for name in names if return_none_fields or getattr(obj, name) is not None]

    def flatten(obj):
        kept = present(obj)
        missing = [name for name in names if name not in kept]
        return [getattr(obj, name) for name in kept], [kept, missing]

    def unflatten(values, context):
        kept, missing = context
        return cls(**dict(zip(kept, values)), **dict.fromkeys(missing))

    _private_register_pytree_node(cls, flatten, unflatten, serialized_type_name=serialized_type_name,
                                  flatten_with_keys_fn=lambda obj: ([(GetAttrKey(n), getattr(obj, n)) for n in present(obj)], flatten(obj)[1]))


class ConstantNode(NamedTuple):
    value: Any


def register_constant(cls):
    """Objects of the class are no leaves but part of the structure. They are compared, and stand in tables."""
    if cls.__eq__ is object.__eq__:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__eq__` implementation.")
    if cls.__hash__ is None:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__hash__` implementation.")
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
