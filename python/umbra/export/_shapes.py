"""How dynamic_shapes, in any form that users give, are read."""
import collections
import re

from umbra._C import ConstraintViolationError, Tensor
from umbra._dynamo.exc import user_error
from umbra.export.dynamic_shapes import Dim, _DimHint, _IntWrapper
from umbra.utils import _pytree as pytree

_DIMENSIONS = "an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC"


def _user_error(text):
    end = " " if text.endswith(".") else "\n"
    return user_error("INVALID_INPUT", f"{text}{end}For more information about this error, see: "
                                       "https://pytorch.org/docs/main/generated/exportdb/index.html#dynamic-shapes-validation")


def _mismatch(text):
    return _user_error(f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: {text}")


def read_dynamic_shapes(dynamic_shapes, arguments):
    """{path of an input: {dimension: description}}. `arguments` is an ordered dict by parameter name."""
    if not dynamic_shapes:
        return {}
    if not isinstance(dynamic_shapes, (dict, tuple, list)):
        raise AssertionError(f"expected dynamic_shapes to be dict, tuple, or list, got {type(dynamic_shapes)}")
    names = list(arguments)
    if isinstance(dynamic_shapes, dict):
        if set(dynamic_shapes) != set(names):
            raise _wrong_names(dynamic_shapes, arguments)
        entries = [(name, dynamic_shapes[name], f"[{name!r}]") for name in names]
    else:
        if len(dynamic_shapes) != len(names):
            raise _mismatch(f"`inputs` has {len(names)} elements, but `dynamic_shapes` has {len(dynamic_shapes)} elements")
        entries = [(name, shapes, f"[{i}]") for i, (name, shapes) in enumerate(zip(names, dynamic_shapes))]
    out = {}
    for name, shapes, where in entries:
        _walk(shapes, arguments[name], name, where, out)
    _check_names(out)
    return {path: {position: dim._describe() for position, dim in dims.items()} for path, dims in out.items()}


def _wrong_names(shapes, arguments):
    names = list(arguments)
    single_dict = len(names) == 1 and names[0] not in shapes and isinstance(arguments[names[0]], dict)
    hint = ("Since here `inputs` is a list/tuple enclosing a single dict, maybe you just forgot to enclose `dynamic_shapes` in a list/tuple?"
            if single_dict else
            "Alternatively, you could also ignore arg names entirely and specify `dynamic_shapes` as a list/tuple matching `inputs`.")
    return _user_error(f"When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names {names} of `inputs`, but here they are "
                       f"{list(shapes)}. {hint}")


def _walk(shapes, value, path, where, out):
    """Adds the dimensions of an input and of what is inside it; `path` is what the library calls it."""
    leaf = isinstance(value, Tensor) or pytree.tree_structure(value).is_leaf()
    if leaf and shapes is None:
        return
    if isinstance(value, Tensor):
        dims = _dimensions(shapes, value, path, where)
        if dims:
            out[path] = dims
    elif leaf:
        _walk_number(shapes, value, path, where, out)
    else:
        children = pytree._children_with_keys(value)
        for (key, child), found in zip(children, _children_of(shapes, value, children, where)):
            step = f"['{key.key}']" if isinstance(key, pytree.MappingKey) else str(key)
            _walk(found, child, path + step, where + str(key), out)


def _walk_number(shapes, value, path, where, out):
    if isinstance(value, _IntWrapper) or type(value) is int:
        if isinstance(shapes, Dim):
            raise ValueError("Unable to specify input integers as dynamic through named Dims. Please use Dim.AUTO/DYNAMIC instead.")
        if not isinstance(shapes, (int, _DimHint)):
            raise AssertionError(f"expected dynamic_shape to be None, int, or _DimHint for _IntWrapper, got {type(shapes)}")
        if isinstance(shapes, _DimHint):
            out[path] = {0: shapes}
    elif not (type(value) is bool and shapes == Dim.STATIC):
        raise _user_error(f"Cannot associate shape {shapes} specified at `dynamic_shapes{where}` to non-tensor type {type(value)} at `inputs{where}` "
                          "(expected None)")


_DICTS = (dict, collections.OrderedDict, collections.defaultdict)
_BUILTIN = (list, tuple, *_DICTS, collections.deque, collections.namedtuple)


def _children_of(shapes, value, children, where):
    """The shapes for the children of an input, in their order."""
    kind, given = pytree._node_type(value), pytree._node_type(shapes)
    if kind not in _BUILTIN:
        return _children_of_registered(shapes, children)
    if given not in _BUILTIN:
        raise _mismatch(f"`inputs{where}` is a {type(value)}, but `dynamic_shapes{where}` is not")
    dicts = kind in _DICTS and given in _DICTS
    if not dicts and (given is not kind or kind is collections.namedtuple and type(shapes) is not type(value)):
        raise _mismatch(f"`inputs{where}` is a {type(value)}, but `dynamic_shapes{where}` is a {type(shapes)}")
    if len(shapes) != len(children):
        raise _mismatch(f"`inputs{where}` has {len(children)} elements, but `dynamic_shapes{where}` has {len(shapes)} elements")
    if not dicts:
        return list(shapes)
    if set(shapes) != set(value):
        raise _mismatch(f"`inputs{where}` has keys {list(value)}, but `dynamic_shapes{where}` has keys {list(shapes)}")
    return [shapes[key.key] for key, _ in children]


def _children_of_registered(shapes, children):
    """A registered class has its children's shapes in a list: what an object of it would make of shapes nobody knows."""
    if type(shapes) is not list:
        raise ValueError(f"Node type mismatch; expected <class 'list'>, but got {type(shapes)}.")
    if len(shapes) != len(children):
        raise ValueError(f"Node arity mismatch; expected {len(children)}, but got {len(shapes)}.")
    return shapes


def shapes_by_leaf(shape_of, first, *others):
    """What `shape_of` gives for the leaves of an input, in the form that `dynamic_shapes` has: registered classes become lists."""
    if isinstance(first, Tensor) or pytree.tree_structure(first).is_leaf():
        return shape_of(first, *others)
    all_children = [pytree._children_with_keys(value) for value in (first, *others)]
    for value, children in zip(others, all_children[1:]):
        if type(value) is not type(first) or [str(key) for key, _ in children] != [str(key) for key, _ in all_children[0]]:
            raise ValueError(f"Node structure mismatch; expected {pytree.tree_structure(first)}, but got {pytree.tree_structure(value)}.")
    shapes = [shapes_by_leaf(shape_of, *(child for _, child in places)) for places in zip(*all_children)]
    kind = pytree._node_type(first)
    if kind in _DICTS:
        return {key.key: shape for (key, _), shape in zip(all_children[0], shapes)}
    if kind is collections.namedtuple:
        return type(first)(*shapes)
    return kind(shapes) if kind in _BUILTIN else shapes


def _dimensions(shape, tensor, path, where):
    """One tensor's entry as {dimension: Dim or hint}."""
    if isinstance(shape, dict):
        entries = shape
    elif isinstance(shape, (tuple, list)):
        if len(shape) != tensor.dim():
            raise _user_error(f"Expected dynamic shape spec {shape} specified at `dynamic_shapes{where}` to have the same length as the actual tensor "
                              f"shape {tensor.shape} (expected {tensor.dim()}, but got {len(shape)} instead)")
        entries = dict(enumerate(shape))
    else:
        raise _user_error(f"Unexpected input tensor shape {shape} specified at `dynamic_shapes{where}` (expected either a list/tuple of dimensions, or "
                          f"a dict mapping indices to dimensions, where each dimension is {_DIMENSIONS})")
    out, rank = {}, tensor.dim()
    for position, dim in entries.items():
        if type(position) is not int:
            raise AssertionError(f"Expected index to be int, list, or tuple, got {type(position)}")
        if not (dim is None or isinstance(dim, (Dim, _DimHint, int))):
            place = f"mapped to index {position}" if isinstance(shape, dict) else f"#{position}"
            raise _user_error(f"Unexpected dimension {place} in input tensor shape {shape} specified at `dynamic_shapes{where}` "
                              f"(expected None, {_DIMENSIONS}, {' ' if isinstance(shape, dict) else ''}but got {dim!r} instead)")
        if not 0 <= position < rank and (dim is None or isinstance(dim, _DimHint)):
            continue  # a hint for a dimension that is not there hints at nothing
        if not -rank <= position < rank:
            raise IndexError("list assignment index out of range")
        position %= rank
        size = tensor.shape[position]
        if isinstance(dim, (Dim, _DimHint)):
            out[position] = dim
        elif dim is not None and dim != size:
            raise ConstraintViolationError(f"Static shape constraint of {dim} does not match input size of {size}, for "
                                           f"{_source(path)}.size()[{position}]")
    return out


def _source(path):
    """An input as guards call it: `x[0]` is L['x'][0]."""
    name = re.match(r"\w+", path)[0]
    return f"L[{name!r}]{path[len(name):]}"


def _check_names(shapes):
    """One name is one dimension: with one range, wherever it stands."""
    seen = {}
    for dims in shapes.values():
        for dim in dims.values():
            if isinstance(dim, _DimHint):
                continue
            root = getattr(dim, "root", dim)
            dim.min  # an error where it would be negative
            first = seen.setdefault(root.__name__, root)
            if (first.min, first.max) != (root.min, root.max):
                raise user_error("INVALID_INPUT", f"Found different definitions {first} and {root} for the same symbolic dimension {root}!")
