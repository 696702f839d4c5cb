"""Node: one input, attribute, call or output of a graph."""
import collections.abc
import typing

import umbra
from umbra._C import Node, Tensor
from umbra.fx._targets import name_of
from umbra.fx.immutable_collections import immutable_dict, immutable_list

# For annotations: what nodes call, and what they are called with.
Target = typing.Union[typing.Callable[..., typing.Any], str]
BaseArgumentTypes = typing.Union[str, int, float, bool, complex, umbra.dtype, Tensor, umbra.device, umbra.memory_format, umbra.layout, umbra.SymInt,
                                 umbra.SymBool, umbra.SymFloat]
Argument = typing.Optional[typing.Union[typing.Tuple["Argument", ...], typing.Sequence["Argument"], typing.Mapping[str, "Argument"], slice, range, Node,
                                        BaseArgumentTypes]]

_TYPE = "_type_expr"  # kept with the metadata, so that copies have it


class _Meta(collections.abc.MutableMapping, dict):
    """What is known about a node: `val`, `stack_trace`, `nn_module_stack` and what passes put there. A dict to those who ask; what it holds stands
    with the node."""
    __slots__ = ("_node",)

    def __init__(self, node):
        self._node = node
        dict.__setitem__(self, "", None)  # what reads dicts in C (`json`) takes one of size 0 for empty and asks no further

    def __getitem__(self, key):
        if key == "tensor_meta" and self._describes_value():
            from umbra.fx.passes.shape_prop import _extract_tensor_metadata
            return map_aggregate(self._node._meta_get("val"), lambda v: _extract_tensor_metadata(v) if isinstance(v, Tensor) else v)
        if key == "unbacked_bindings" and (bindings := self._bindings()):
            return bindings
        found = self._node._meta_get(key)
        if key == "from_node" and isinstance(found, str):
            from umbra.fx.traceback import read_sources
            return read_sources(found)
        return found

    def _describes_value(self):
        """What a tracer knows of a node's value is there as `tensor_meta` too, unless a pass has put it there."""
        keys = self._node._meta_keys()
        return "tensor_meta" not in keys and "val" in keys and isinstance(self._node._meta_get("val"), Tensor)

    def _bindings(self):
        """The symbols that the node is the first to have, unless a pass has put them there."""
        keys = self._node._meta_keys()
        if "val" not in keys or "unbacked_bindings" in keys:
            return None
        from umbra.fx.experimental._unbacked_bindings import _bindings_of_node
        return _bindings_of_node(self._node)

    def __setitem__(self, key, value):
        _set_entry(self._node, key, value)

    def __delitem__(self, key):
        self._node._meta_delete(key)

    def _keys(self):
        keys = [key for key in self._node._meta_keys() if key != _TYPE]
        keys += ["tensor_meta"] if self._describes_value() else []
        return [*keys, "unbacked_bindings"] if self._bindings() else keys

    def __iter__(self):
        return iter(self._keys())

    def __len__(self):
        return len(self._keys())

    def __contains__(self, key):
        derived = {"tensor_meta": self._describes_value, "unbacked_bindings": self._bindings}
        return key in self._node._meta_keys() or bool(key in derived and derived[key]())

    def copy(self):
        return dict(self)

    def __or__(self, other):
        return dict(self) | other

    def __ror__(self, other):
        return other | dict(self)

    def __ior__(self, other):
        self.update(other)
        return self

    def __reversed__(self):
        return reversed(self._keys())

    def __reduce_ex__(self, protocol):
        return dict, (dict(self),)

    def __repr__(self):
        return repr(dict(self))


def _set_entry(node, key, value):
    if key == "from_node":
        from umbra.fx.traceback import sources_text
        value = sources_text(value) or value
    node._meta_set(key, value)


def _set_meta(self, meta):
    if isinstance(meta, _Meta):
        self._copy_meta(meta._node)
        return
    for key in self._meta_keys():
        if key not in meta and key != _TYPE:
            self._meta_delete(key)
    for key, value in meta.items():
        _set_entry(self, key, value)


def _replace_all_uses_with(self, replace_with, delete_user_cb=None, *, propagate_meta=False):
    """Every user takes `replace_with` instead; gives the users changed."""
    if propagate_meta:
        replace_with.meta = self.meta
    return self._replace_all_uses_with(replace_with, delete_user_cb)


def _insert_arg(self, idx, arg):
    assert 0 <= idx <= len(self.args), f"insert_args index must be between 0 and len(self.args), got {idx}"
    args = list(self.args)
    args.insert(idx, arg)
    self.args = tuple(args)


def _update_arg(self, idx, arg):
    args = list(self.args)
    args[idx] = arg
    self.args = tuple(args)


def named_tuples_by_nodes(graph, arguments):
    """Arguments of a call in which each named tuple is a node of its own that makes it, as a trace has it: arguments know tuples alone."""
    def by_nodes(value):
        if isinstance(value, tuple):
            items = tuple(map(by_nodes, value))
            return graph.create_node("call_function", type(value), items) if hasattr(value, "_fields") else items
        if isinstance(value, list):
            return list(map(by_nodes, value))
        if isinstance(value, dict):
            return {key: by_nodes(item) for key, item in value.items()}
        return value
    return by_nodes(arguments) if _has_named_tuple(arguments) else arguments


def _has_named_tuple(value):
    if isinstance(value, (tuple, list)):
        return hasattr(value, "_fields") or any(map(_has_named_tuple, value))
    return isinstance(value, dict) and any(map(_has_named_tuple, value.values()))


def _setter_of(arguments):
    """Sets a call's arguments, behind the nodes of the named tuples among them."""
    def set_arguments(self, value):
        if self.op.startswith("call_") and _has_named_tuple(value):
            with self.graph.inserting_before(self):
                value = named_tuples_by_nodes(self.graph, value)
        arguments.fset(self, value)
    return set_arguments


def _update_kwarg(self, key, arg):
    self.kwargs = {**self.kwargs, key: arg}


def _pretty_print_target(self, target):
    """What a graph's lines show of a target."""
    if isinstance(target, str):
        return target
    return name_of(target)


_is_impure_call = Node.is_impure
_side_effectful_functions = set()


def has_side_effect(fn):
    """Calls of a function stay in graphs though nobody uses what it gives. May be used as a decorator."""
    _side_effectful_functions.add(fn)
    return fn


def _is_impure(self, impure_random=True):
    """Whether it has to stay though nobody uses its value; `impure_random`: random numbers do. A module's call may go, unless the module says
    otherwise."""
    if not impure_random and any("nondeterministic_seeded" in str(tag) for tag in getattr(self.target, "tags", ())):
        return False
    owner = self.graph.owning_module
    if self.op == "call_function" and self.target in _side_effectful_functions:
        return True
    if self.op != "call_module" or owner is None:
        return _is_impure_call(self)
    module = owner
    for part in self.target.split("."):
        module = getattr(module, part, None)
    return bool(getattr(module, "_is_impure", False))


def map_arg(a, fn):
    """The same nest with every node replaced by what `fn` makes of it."""
    return map_aggregate(a, lambda leaf: fn(leaf) if isinstance(leaf, Node) else leaf)


def map_aggregate(a, fn):
    """The same nest with every leaf replaced by what `fn` makes of it; its lists and dicts cannot be changed."""
    return mapped(a, fn, immutable_list, immutable_dict)


def mapped(a, fn, lists=list, dicts=dict):
    """The same with lists and dicts of these classes."""
    if isinstance(a, tuple):
        items = [mapped(item, fn, lists, dicts) for item in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return lists([mapped(item, fn, lists, dicts) for item in a])
    if isinstance(a, dict):
        return dicts((key, mapped(item, fn, lists, dicts)) for key, item in a.items())
    if isinstance(a, slice):
        return slice(*(mapped(item, fn, lists, dicts) for item in (a.start, a.stop, a.step)))
    return fn(a)


def type_text(value):
    """A type as lines of a graph show it."""
    if isinstance(value, type) and not typing.get_args(value):
        module = value.__module__.replace("umbra", "torch", 1)
        return value.__qualname__ if module == "builtins" else "torch.Tensor" if value is Tensor else f"{module}.{value.__qualname__}"
    return repr(value).replace("umbra.", "torch.")


def _format_node(self, placeholder_names=None, maybe_return_typename=None):
    """The node as a line of its graph, with the type that it was given."""
    if placeholder_names is not None and self.op == "placeholder":
        placeholder_names.append(self.name)
    if maybe_return_typename is not None and self.op == "output" and self.type is not None:
        maybe_return_typename[0] = f" -> {type_text(self.type)}"
    return with_type(self, self._format_node())


def with_type(node, line):
    """A node's line, with its type behind its name."""
    return line if node.type is None or node.op == "output" else line.replace(" : [", f" : {type_text(node.type)} [", 1)


def _tag(self):
    """What passes that take graphs apart call a node's part."""
    if "tag" not in self._meta_keys():
        raise AttributeError("'Node' object has no attribute 'tag'")
    return self._meta_get("tag")


def _position(self):
    return next(i for i, node in enumerate(self.graph.nodes) if node is self)


Node.__lt__ = lambda self, other: _position(self) < _position(other)
Node.__gt__ = lambda self, other: _position(self) > _position(other)
Node.__le__ = lambda self, other: self is other or self < other
Node.__ge__ = lambda self, other: self is other or self > other
Node.meta = property(_Meta, _set_meta)
Node.users = property(lambda self: dict.fromkeys(self._users))
# Beside the first node and the last one stands the root, which is none of the graph's nodes.
Node.next = property(lambda self: self._next or self.graph._root)
Node.prev = property(lambda self: self._previous or self.graph._root)
Node.type = property(lambda self: self._meta_get(_TYPE) if _TYPE in self._meta_keys() else None, lambda self, type_expr: self._meta_set(_TYPE, type_expr))
Node._format_node = Node.format_node
Node.format_node = _format_node
Node.tag = property(_tag, lambda self, tag: self._meta_set("tag", tag))
Node.stack_trace = property(lambda self: self.meta.get("stack_trace"), lambda self, text: self._meta_set("stack_trace", text))
Node._input_nodes = property(lambda self: dict.fromkeys(self.all_input_nodes))
Node.is_impure = _is_impure
Node.replace_all_uses_with = _replace_all_uses_with
Node.insert_arg = _insert_arg
Node.update_arg = _update_arg
Node.update_kwarg = _update_kwarg
Node.args = property(Node.args.fget, _setter_of(Node.args))
Node.kwargs = property(Node.kwargs.fget, _setter_of(Node.kwargs))
Node._pretty_print_target = _pretty_print_target
Node._rename = lambda self, candidate: None if candidate == self.name else setattr(self, "name", candidate)
