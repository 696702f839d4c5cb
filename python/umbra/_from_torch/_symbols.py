"""Symbolic numbers of Umbra as torch.SymInt, SymFloat and SymBool: torch asks a node, and the node asks Umbra."""
import math
import operator

import umbra
from umbra.fx.experimental.symbolic_shapes import guard_or_false, guard_or_true, statically_known_true

_UNARY = {"neg": operator.neg, "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc, "abs": abs, "sym_float": umbra.sym_float, "sym_not": umbra.sym_not,
          "sym_int": umbra.sym_int, "pos": operator.pos, "sym_sqrt": umbra.sym_sqrt}
_BINARY = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv, "float_truediv": operator.truediv,
           "int_truediv": operator.truediv, "floordiv": operator.floordiv, "int_floordiv": operator.floordiv, "mod": operator.mod, "pow": operator.pow,
           "float_pow": operator.pow, "pow_by_natural": operator.pow, "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
           "gt": operator.gt, "ge": operator.ge, "and_": operator.and_, "or_": operator.or_, "sym_and": operator.and_, "sym_or": operator.or_,
           "sym_min": umbra.sym_min, "sym_max": umbra.sym_max}


_INTEGERS, _REALS, _TRUTHS, _PLAIN = {int, umbra.SymInt}, {float, umbra.SymFloat}, {bool, umbra.SymBool}, {int, float, bool}


class Node:
    """What torch's C++ and Python code ask of a symbolic number."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    # ---- what it is ----

    def is_int(self):
        return type(self.value) in _INTEGERS

    def is_float(self):
        return type(self.value) in _REALS

    def is_bool(self):
        return type(self.value) in _TRUTHS

    def is_nested_int(self):
        return False

    def is_constant(self):
        return type(self.value) in _PLAIN

    def is_symbolic(self):
        return not self.is_constant()

    def has_hint(self):
        return True

    def nested_int(self):
        return None

    def maybe_as_int(self):
        return self.value if type(self.value) is int else None

    def maybe_as_float(self):
        return self.value if type(self.value) is float else None

    def maybe_as_bool(self):
        return self.value if type(self.value) is bool else None

    constant_int, constant_bool = maybe_as_int, maybe_as_bool

    def clone(self):
        return self

    def str(self):
        return f"{self.value}"

    _graph_repr = __str__ = __repr__ = lambda self: f"{self.value}"

    # ---- questions ----

    def int_(self):
        return int(self.value)

    def bool_(self):
        return bool(self.value)

    def guard_int(self, *_):
        return int(self.value)

    def guard_float(self, *_):
        return float(self.value)

    def guard_bool(self, *_):
        return bool(self.value)

    def guard_size_oblivious(self, *_):
        return bool(self.value)

    def guard_or_false(self, *_):
        return guard_or_false(self.value)

    def guard_or_true(self, *_):
        return guard_or_true(self.value)

    def statically_known_true(self, *_):
        return statically_known_true(self.value)

    def expect_true(self, *_):
        umbra._check(self.value)
        return True

    def expect_size(self, *_):
        umbra._check(self.value >= 0)
        return True

    # ---- arithmetic ----

    def wrap_int(self, value):
        return Node(value)

    wrap_float = wrap_bool = wrap_int

    def round(self, digits=None):
        return Node(round(self.value, digits))

    def sym_ite(self, then, otherwise):
        return then if self.value else otherwise

    # ---- what torch asks of a tensor's sizes and strides as a whole ----

    def is_contiguous(self, sizes, strides):
        return Node(_dense(sizes, strides, range(len(sizes) - 1, -1, -1)))

    def is_channels_last_contiguous_2d(self, sizes, strides):
        return Node(len(sizes) == 4 and _dense(sizes, strides, (1, 3, 2, 0)))

    is_channels_last_strides_2d = is_channels_last_contiguous_2d

    def is_channels_last_contiguous_3d(self, sizes, strides):
        return Node(len(sizes) == 5 and _dense(sizes, strides, (1, 4, 3, 2, 0)))

    is_channels_last_strides_3d = is_channels_last_contiguous_3d

    def is_non_overlapping_and_dense(self, sizes, strides):
        return Node(_dense(sizes, strides, range(len(sizes) - 1, -1, -1)))

    is_non_overlapping_and_dense_indicator = is_non_overlapping_and_dense


def _dense(sizes, strides, order):
    """Whether the dimensions, innermost first, lie behind each other, as far as that is known without asking."""
    expected = 1
    for d in order:
        size, stride = sizes[d].value, strides[d].value
        if not statically_known_true(stride == expected) and not statically_known_true(size == 1):
            return False
        expected = expected * size
    return True


def _unary(function):
    return lambda self: Node(function(self.value))


def _binary(function):
    return lambda self, other: Node(function(self.value, other.value))


for _name, _function in _UNARY.items():
    setattr(Node, _name, _unary(_function))
for _name, _function in _BINARY.items():
    setattr(Node, _name, _binary(_function))


class Symbols:
    def __init__(self, torch):
        self.types = (torch.SymInt, torch.SymFloat, torch.SymBool)
        self._classes = {umbra.SymInt: torch.SymInt, umbra.SymFloat: torch.SymFloat, umbra.SymBool: torch.SymBool}

    def wrap(self, value):
        """A number for torch: plain ones are themselves."""
        made = self._classes.get(type(value))
        return value if made is None else made(Node(value))


_made = {}


def classes(torch):
    if torch not in _made:
        _made[torch] = Symbols(torch)
    return _made[torch]
