"""Which sizes of a program's inputs may vary: Dim, and collections of them by example."""
import enum
import re
import warnings

from umbra._C import Tensor
from umbra._dynamo.exc import user_error
from umbra.utils import _pytree as pytree


class _DimHintType(enum.Enum):
    AUTO = "auto"
    STATIC = "static"
    DYNAMIC = "dynamic"


class _DimHint:
    """A size that capture decides about: AUTO, DYNAMIC or STATIC."""

    def __init__(self, type, min=None, max=None, _factory=True):
        self.type, self.min, self.max, self._factory = type, min, max, _factory

    def __call__(self, min=None, max=None):
        if not self._factory:
            raise TypeError(f"'{type(self)}' object is not callable")
        for name, value in (("min", min), ("max", max)):
            if value is not None and value < 0:
                raise AssertionError(f"{name} must be non-negative, got {value}")
        if min is not None and max is not None and min > max:
            raise AssertionError(f"min must be <= max, got min={min}, max={max}")
        return _DimHint(self.type, min, max, _factory=False)

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
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")

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
        bounds = ([f"min={self.min}"] if self.min != 2 else []) + ([f"max={self.max}"] if self.max is not None else [])
        return f"Dim({', '.join([repr(self.__name__), *bounds])})"


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

    def __repr__(self):
        return self.__name__

    @property
    def min(self):
        least = self.root.min * self._scale + self._offset
        if least < 0:
            raise AssertionError(f"Expected derived min value of {self.__name__} to be >= 0. Please specify an appropriate min value for "
                                 f"{self.root.__name__} (currently {self.root.min}).")
        return least

    max = property(lambda self: None if self.root.max is None else self.root.max * self._scale + self._offset)

    def fn(self, root):
        """This dimension where the root is such a number."""
        return root * self._scale + self._offset

    def _describe(self):
        return "named", self.root.__name__, self.root.min, self.root.max, self._scale, self._offset

    def _derive(self, scale, offset):
        return Dim._derive(self.root, self._scale * scale, self._offset * scale + offset)


def dims(*names, min=None, max=None):
    """Several Dims of one range: `batch, length = dims("batch", "length", max=64)`."""
    return tuple(Dim(name, min=min, max=max) for name in names)


class _Constraint:
    """A size of a tensor that may vary between two bounds, which comparisons with integers narrow: `2 <= dynamic_dim(x, 0)`."""

    def __init__(self, t, dim, min=0, max=None):
        self.t, self.dim, self.min, self.max = t, dim, min, max

    def _narrowed(self, min, max):
        upper = [bound for bound in (self.max, max) if bound is not None]
        return _Constraint(self.t, self.dim, self.min if min is None or min < self.min else min, *(sorted(upper)[:1]))

    def __ge__(self, other):
        return self._narrowed(other, None)

    def __gt__(self, other):
        return self._narrowed(other + 1, None)

    def __le__(self, other):
        return self._narrowed(None, other)

    def __lt__(self, other):
        return self._narrowed(None, other - 1)

    def __bool__(self):
        raise TypeError("Cannot determine truth value of _Constraint. If you are trying to combine _Constraint's with logical connectives, you can "
                        "specify them separately instead.")

    @property
    def serializable_spec(self):
        return {"t_id": id(self.t), "dim": self.dim, "min": self.min, "max": float("inf") if self.max is None else self.max}


Constraint = _Constraint


def dynamic_dim(t, index):
    """What PyTorch 2.4 had before Dim: a size that may vary. Export takes Dims alone."""
    warnings.warn("torch.export.dynamic_dim is deprecated: export takes dynamic_shapes, whose sizes are torch.export.Dim", FutureWarning, stacklevel=2)
    if not isinstance(t, Tensor):
        raise user_error("DYNAMIC_DIM", f"Expected tensor as input to dynamic_dim but got {type(t)}")
    if t.dim() < 1:
        raise user_error("DYNAMIC_DIM", "Cannot mark 0-dimension tensors to be dynamic")
    if not 0 <= index < t.dim():
        raise user_error("DYNAMIC_DIM", f"Expected the dimension passed to dynamic_dim to be in the range [0:{t.dim() - 1}] but got {index}, which is "
                                        "out of bounds for the given tensor.")
    return _Constraint(t, index)


class _IntWrapper:
    """An int that shapes can be assigned to: one int cannot be told from an equal one."""

    def __init__(self, val):
        self.val = val
        self.dynamism = None

    def __repr__(self):
        return f"_IntWrapper(val={self.val})"


class ShapesCollection:
    """Dynamic shapes by input: `shapes[x] = {0: batch}`."""

    def __init__(self):
        self._shapes = {}
        self._inputs = {}

    def __setitem__(self, t, shape):
        if not isinstance(t, (Tensor, _IntWrapper)):
            raise AssertionError(f"Cannot assign shape to non-tensor or non-_IntWrapper type {type(t)}")
        key = id(t)
        if key in self._shapes:
            if self._shapes[key] != shape:
                raise AssertionError(f"Shapes assigned to input do not match: expected {self._shapes[key]}, got {shape}")
            return
        self._shapes[key], self._inputs[key] = shape, t

    def __getitem__(self, t):
        return self._shapes.setdefault(id(t), {})

    def __len__(self):
        return len(self._shapes)

    def dynamic_shapes(self, m, args, kwargs=None):
        """The shapes as a tree of the module's arguments, by their names."""
        from umbra.export._shapes import shapes_by_leaf
        from umbra.export._trace import bind_arguments
        used = set()

        def shape_of(leaf):
            if id(leaf) in self._shapes and isinstance(leaf, (Tensor, _IntWrapper)):
                used.add(id(leaf))
                return self._shapes[id(leaf)]
            return None
        result = {name: shapes_by_leaf(shape_of, value) for name, value in bind_arguments(m, args, kwargs or {}).items()}
        if used != set(self._shapes):
            raise ValueError("Some tensors that were assigned shapes were not found in args. Maybe such tensors were copied when passing them as args? "
                             "Maybe such tensors are contained in classes that were not registered with pytree?")
        return result


class AdditionalInputs:
    """Dynamic shapes by example: what differs between calls is dynamic."""

    def __init__(self):
        self._examples = []

    def add(self, args, kwargs=None):
        if not isinstance(args, tuple):
            raise AssertionError(f"Representative args {args} must be a tuple")
        if kwargs is not None and not isinstance(kwargs, dict):
            raise AssertionError(f"Representative kwargs {kwargs} must be None or a dict")
        self._examples.append((args, kwargs))

    def dynamic_shapes(self, m, args, kwargs=None):
        """The shapes as a tree of the module's arguments, by their names."""
        from umbra.export._shapes import shapes_by_leaf
        from umbra.export._trace import bind_arguments
        calls = [bind_arguments(m, given, named or {}) for given, named in [(args, kwargs), *self._examples]]
        return shapes_by_leaf(self._differing, *calls)

    @staticmethod
    def _differing(first, *others):
        leaves = (first, *others)
        if any(type(other) is not type(first) for other in others):
            raise ValueError(f"The following inputs were found to have differing types, so they cannot be marked as dynamic: {leaves}.")
        if isinstance(first, Tensor):
            for other in others:
                if other.dim() != first.dim():
                    raise ValueError(f"Node arity mismatch; expected {first.dim()}, but got {other.dim()}.")
            return tuple(Dim.DYNAMIC if len({leaf.shape[d] for leaf in leaves}) > 1 else None for d in range(first.dim()))
        if all(leaf == first for leaf in leaves):
            return None
        if type(first) is int:
            return Dim.DYNAMIC
        raise ValueError(f"The following inputs were found to have differing values, but they cannot be marked as dynamic: {leaves}.")

    def verify(self, ep):
        """Runs the program with every example that was added: one that it does not take raises."""
        for args, kwargs in self._examples:
            ep._check_leaves(ep._flatten_inputs(args, kwargs or {}), check_guards=False)


def refine_dynamic_shapes_from_suggested_fixes(msg, dynamic_shapes):
    """`dynamic_shapes` with what an error of export suggests: other ranges, derived dimensions, numbers."""
    _, found, fixes = msg.partition("Suggested fixes:")
    if not found:
        raise user_error("INVALID_INPUT", "Suggested fixes not found in error message given to refine_dynamic_shapes_from_suggested_fixes()")
    refined = {}
    for name, text in re.findall(r"^  (\w+) = (.+)$", fixes, flags=re.MULTILINE):
        refined[name] = _suggested(name, text)
    roots = {}
    pytree.tree_map(lambda dim: roots.setdefault(_root(dim).__name__, _root(dim)) if isinstance(dim, Dim) else None, dynamic_shapes,
                    is_leaf=lambda value: isinstance(value, Dim))
    for name, value in refined.items():  # "2*dx" is about the dx that stays what it is
        if isinstance(value, str):
            refined[name] = _derived(value, {**roots, **refined})

    def refine(dim):
        if not isinstance(dim, Dim):
            return dim
        if isinstance(dim, _DerivedDim):
            root = refined.get(dim.root.__name__, dim.root)
            return root * dim._scale + dim._offset if dim._scale != 1 or dim._offset else root
        return refined.get(dim.__name__, dim)
    return pytree.tree_map(refine, dynamic_shapes, is_leaf=lambda value: isinstance(value, Dim))


def _root(dim):
    return dim.root if isinstance(dim, _DerivedDim) else dim


def _suggested(name, text):
    """A Dim of its own range, a number, or (as text) a dimension that follows from another."""
    bounds = re.fullmatch(r"Dim\('\w+'((?:, (?:min|max)=(?:\d+|oo))*)\)", text)
    if bounds:
        implied = {"min": 2} if name.startswith("_") else {}  # of a new root, that others follow from, a bound of 2 goes without saying
        return Dim(name, **{**implied, **{key: int(value) for key, value in re.findall(r"(min|max)=(\d+)", bounds[1])}})
    return int(text) if text.isdigit() else text


def _derived(text, dims):
    scale, name, sign, offset = re.fullmatch(r"(?:(\d+)\*)?(\w+)(?: ([+-]) (\d+))?", text).groups()
    dim = dims.get(name) or Dim(name)
    dim = dim * int(scale) if scale else dim
    return dim + int(sign + offset) if offset else dim
