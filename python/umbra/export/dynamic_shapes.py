"""Which sizes of a program's inputs may vary: Dim, and how dynamic_shapes are read."""
import enum

from umbra._C import Tensor
from umbra._dynamo.exc import user_error
from umbra.utils import _pytree as pytree


class _DimHintType(enum.Enum):
    AUTO = "auto"
    STATIC = "static"
    DYNAMIC = "dynamic"


class _DimHint:
    """A size that capture decides about: AUTO, DYNAMIC or STATIC."""

    def __init__(self, type, min=None, max=None):
        self.type, self.min, self.max = type, min, max

    def __call__(self, min=None, max=None):
        return _DimHint(self.type, min, max)

    def __repr__(self):
        bounds = [f"{name}={value}" for name, value in (("min", self.min), ("max", self.max)) if value is not None]
        return f"DimHint({', '.join([self.type.name, *bounds])})"

    def __eq__(self, other):
        return isinstance(other, _DimHint) and (self.type, self.min, self.max) == (other.type, other.min, other.max)

    def __hash__(self):
        return hash((self.type, self.min, self.max))

    def _describe(self):
        return self.type.value, "", self.min or 0, self.max, 1, 0


class _DimMeta(type):
    AUTO = _DimHint(_DimHintType.AUTO)
    STATIC = _DimHint(_DimHintType.STATIC)
    DYNAMIC = _DimHint(_DimHintType.DYNAMIC)


class Dim(metaclass=_DimMeta):
    """A dimension that may vary: `Dim("batch", max=4096)`; `2 * batch + 1` follows from it."""

    def __init__(self, name, *, min=None, max=None):
        self.__name__ = name
        self.min = 0 if min is None else min
        self.max = max
        if max is not None and max <= self.min:
            raise AssertionError(f"Cannot create Dim with inconsistent min={self.min}, max={max}")
        if not name.isidentifier():
            raise _user_error(f"Dim name must be a valid identifier, got {name}")

    def _describe(self):
        return "named", self.__name__, self.min, self.max, 1, 0

    def _derive(self, scale, offset):
        if not isinstance(scale, int) or scale <= 0:
            raise NotImplementedError(f"Attempted to multiply {scale} with {self.__name__}, where a positive integer was expected. (Only increasing "
                                      "linear operations with integer coefficients are supported.)")
        return _DerivedDim(self, scale, offset)

    def __add__(self, other):
        return self._derive(1, _integer(other, self, "added", "to"))

    __radd__ = __add__

    def __sub__(self, other):
        return self._derive(1, -_integer(other, self, "subtracted", "from"))

    def __rsub__(self, other):
        raise NotImplementedError(f"Attempted to negate {self.__name__}. (Only increasing linear operations with integer coefficients are supported.)")

    def __mul__(self, other):
        return self._derive(other, 0)

    __rmul__ = __mul__

    def __repr__(self):
        return f"Dim('{self.__name__}', min={self.min}, max={self.max})" if self.max is not None else f"Dim('{self.__name__}', min={self.min})"


def _integer(value, dim, verb, preposition):
    if type(value) is not int:
        raise NotImplementedError(f"Attempted to {verb.removesuffix('ed')} {value} {preposition} {dim.__name__}, where an integer was expected. "
                                  "(Only increasing linear operations with integer coefficients are supported.)")
    return value


class _DerivedDim(Dim):
    """A dimension that follows from another: scale * root + offset."""

    def __init__(self, root, scale, offset):
        self.root, self._scale, self._offset = root, scale, offset
        text = root.__name__ if scale == 1 else f"{scale}*{root.__name__}"
        self.__name__ = text + (f" + {offset}" if offset > 0 else f" - {-offset}" if offset < 0 else "")

    min = property(lambda self: self.root.min * self._scale + self._offset)
    max = property(lambda self: None if self.root.max is None else self.root.max * self._scale + self._offset)

    def _describe(self):
        return "named", self.root.__name__, self.root.min, self.root.max, self._scale, self._offset

    def _derive(self, scale, offset):
        return Dim._derive(self.root, self._scale * scale, self._offset * scale + offset)


def dims(*names, min=None, max=None):
    return tuple(Dim(name, min=min, max=max) for name in names)


class ShapesCollection:
    """Dynamic shapes by tensor: `shapes[x] = {0: batch}`."""

    def __init__(self):
        self._shapes = {}
        self._tensors = {}

    def __setitem__(self, tensor, shape):
        assert isinstance(tensor, Tensor), f"Cannot assign shape to non-tensor type {type(tensor)}"
        key = id(tensor)
        if key in self._shapes:
            assert self._shapes[key] == shape, f"Shapes assigned to tensor do not match: expected {self._shapes[key]}, got {shape}"
            return
        self._shapes[key], self._tensors[key] = shape, tensor

    def __getitem__(self, tensor):
        return self._shapes.setdefault(id(tensor), {})

    def __len__(self):
        return len(self._shapes)

    def dynamic_shapes(self, m, args, kwargs=None):
        from umbra.export._trace import bind_arguments
        used = set()

        def shape_of(leaf):
            if isinstance(leaf, Tensor) and id(leaf) in self._shapes:
                used.add(id(leaf))
                return self._shapes[id(leaf)]
            return None
        result = {name: pytree.tree_map(shape_of, value) for name, value in bind_arguments(m, args, kwargs or {}).items()}
        if used != set(self._shapes):
            raise ValueError("Some tensors that were assigned shapes were not found in args. Maybe such tensors were copied when passing them as args? "
                             "Maybe such tensors are contained in classes that were not registered with pytree?")
        return result


def _user_error(text):
    return user_error("INVALID_INPUT", text)


def _is_shape(value, tensor):
    if value is None:
        return True
    if isinstance(value, dict):
        return all(isinstance(key, int) for key in value)
    return isinstance(value, (tuple, list)) and all(d is None or isinstance(d, (int, Dim, _DimHint)) for d in value) \
        and isinstance(tensor, Tensor)


def _shape_entries(shape, tensor, where):
    """One tensor's entry as {dimension: description}."""
    if isinstance(shape, (tuple, list)):
        if len(shape) != tensor.dim():
            raise _user_error(f"Expected dynamic shape spec {shape} specified at `dynamic_shapes{where}` to have the same length as the actual tensor "
                              f"shape {tensor.shape} (expected {tensor.dim()}, but got {len(shape)} instead)")
        entries = dict(enumerate(shape))
    else:
        entries = dict(shape)
    out = {}
    for position, dim in entries.items():
        if isinstance(dim, (Dim, _DimHint)):
            out[position] = dim._describe()
        elif isinstance(dim, int):
            if dim != tensor.shape[position]:
                from umbra._C import ConstraintViolationError
                raise ConstraintViolationError(f"Static shape constraint of {dim} does not match input size of {tensor.shape[position]}, for "
                                               f"`dynamic_shapes{where}[{position}]`")
        elif dim is not None:
            raise _user_error(f"Unexpected dimension mapped to index {position} in input tensor shape {shape} specified at `dynamic_shapes{where}` "
                              f"(expected None, an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC,  but got {dim} instead)")
    return out


def _walk(shapes, value, name, where, out):
    if shapes is None:
        return
    if isinstance(value, Tensor):
        if not _is_shape(shapes, value):
            raise _user_error(f"Unexpected dynamic_shape {shapes} of type {type(shapes)} at `dynamic_shapes{where}`")
        entries = _shape_entries(shapes, value, where)
        if entries:
            out[name] = entries
        return
    if pytree.tree_structure(value).is_leaf():
        if shapes is None or shapes == {}:
            return
        if type(value) is int and isinstance(shapes, (_DimHint, Dim)):
            if isinstance(shapes, Dim):
                raise ValueError("Unable to specify input integers as dynamic through named Dims. Please use Dim.AUTO/DYNAMIC instead.")
            out[name] = {0: shapes._describe()}
            return
        if type(value) is bool and shapes == Dim.STATIC:
            return
        raise _user_error(f"Cannot associate shape {shapes} specified at `dynamic_shapes{where}` to non-tensor type {type(value)} at "
                          f"`inputs{where}` (expected None)")
    children, _ = pytree.SUPPORTED_NODES[pytree._node_type(value)].flatten_with_keys_fn(value)
    given = _children_of(shapes, value, len(children), where)
    for key, child in children:
        found = given(key)
        _walk(found, child, name + str(key), where + str(key), out)


def _children_of(shapes, value, count, where):
    if isinstance(shapes, dict):
        keys = set(shapes)
        if isinstance(value, dict) and keys != set(value):
            raise _user_error(f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs{where}` has keys {list(value)}, but "
                              f"`dynamic_shapes{where}` has keys {list(shapes)}")
        return lambda key: shapes.get(getattr(key, "key", getattr(key, "name", getattr(key, "idx", None))))
    if isinstance(shapes, (tuple, list)):
        if len(shapes) != count:
            raise _user_error(f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs{where}` has {count} elements, but "
                              f"`dynamic_shapes{where}` has {len(shapes)} elements")
        values = list(shapes)
        position = iter(values)
        return lambda key: next(position)
    if type(shapes) is type(value):  # a registered class with shapes in the places of its tensors
        entries = iter(pytree.SUPPORTED_NODES[pytree._node_type(value)].flatten_fn(shapes)[0])
        return lambda key: next(entries)
    raise _user_error(f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs{where}` is a {type(value)}, but "
                      f"`dynamic_shapes{where}` is a {type(shapes)}")


def read_dynamic_shapes(dynamic_shapes, arguments):
    """{path of a tensor: {dimension: description}}, from any form that users give. `arguments` is an ordered dict by parameter name."""
    if not dynamic_shapes:
        return {}
    out = {}
    names = list(arguments)
    if isinstance(dynamic_shapes, (tuple, list)):
        if len(dynamic_shapes) != len(names):
            raise _user_error(f"Expected dynamic_shapes to have {len(names)} entries, one for each of {names}, but got {len(dynamic_shapes)}")
        entries = dict(zip(names, dynamic_shapes))
    else:
        if set(dynamic_shapes) != set(names):
            single_dict = len(names) == 1 and isinstance(arguments[names[0]], dict)
            hint = ("Since here `inputs` is a list/tuple enclosing a single dict, maybe you just forgot to enclose `dynamic_shapes` in a "
                    "list/tuple?" if single_dict else
                    "Alternatively, you could also ignore arg names entirely and specify `dynamic_shapes` as a list/tuple matching `inputs`.")
            raise _user_error(f"When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names {names} of `inputs`, but "
                              f"here they are {list(dynamic_shapes)}. {hint}")
        entries = {name: dynamic_shapes[name] for name in names}
    for name, shapes in entries.items():
        _walk(shapes, arguments[name], name, f"['{name}']", out)
    _check_names(out)
    return out


def _check_names(shapes):
    """One name is one dimension: with one range, wherever it stands."""
    seen = {}
    for entries in shapes.values():
        for hint, name, least, most, _, _ in entries.values():
            if hint == "named" and seen.setdefault(name, (least, most)) != (least, most):
                first, second = (_dim_text(name, *bounds) for bounds in (seen[name], (least, most)))
                raise _user_error(f"Found different definitions {first} and {second} for the same symbolic dimension Dim('{name}')!")


def _dim_text(name, least, most):
    bounds = ([f"min={least}"] if least else []) + ([f"max={most}"] if most is not None else [])
    return f"Dim({', '.join([repr(name), *bounds])})"
