"""Symbols of captured programs: the environment that knows about them, and policies for sizes."""
import enum
import weakref

from umbra import _C
from umbra._C import (  # noqa: F401
    ConstraintViolationError, GuardOnDataDependentSymNode, SymBool, SymFloat, SymInt)


class DimDynamic(enum.Enum):
    """What becomes of a size: a symbol of its own, one shared by equal sizes, a number."""
    DYNAMIC = 0
    DUCK = 1
    STATIC = 2
    SIZE_LIKE_UNBACKED = 3
    INFER_STRIDE = 4
    OBLIVIOUS_SIZE = 5


class StatelessSymbolicContext:
    """The policies of a tensor's dimensions."""

    def __init__(self, dynamic_sizes, dynamic_strides=None, constraint_sizes=None, constraint_strides=None, view_base_context=None):
        self.dynamic_sizes = dynamic_sizes
        self.constraint_sizes = constraint_sizes or [None] * len(dynamic_sizes)

    def _dimensions(self):
        names = {DimDynamic.DYNAMIC: "dynamic", DimDynamic.DUCK: "duck", DimDynamic.STATIC: "static"}
        return [(names.get(policy, "dynamic"),) for policy in self.dynamic_sizes]


class StatefulSymbolicContext(StatelessSymbolicContext):
    def __init__(self, dynamic_sizes, tensor_source=None, **kwargs):
        super().__init__(dynamic_sizes, **kwargs)
        self.tensor_source = tensor_source


class ShapeGuard:
    def __init__(self, expr, location):
        self.expr, self.stack = expr, location

    def __repr__(self):
        return f"ShapeGuard({self.expr})"


_environments = weakref.WeakValueDictionary()  # the Python object of an environment, by the C++ one


class ShapeEnv:
    """The symbols of one captured program and everything that is known about them."""

    def __init__(self, *, should_record_events=None, tracked_fakes=None, allow_scalar_outputs=True,
                 allow_dynamic_output_shape_ops=True, assume_static_by_default=False, specialize_zero_one=True, duck_shape=True, **_):
        self._env = _C._ShapeEnv(duck_shape, specialize_zero_one)
        self.allow_scalar_outputs = allow_scalar_outputs
        self.allow_dynamic_output_shape_ops = allow_dynamic_output_shape_ops
        _environments[self._env._cdata] = self

    @classmethod
    def _of(cls, env):
        self = _environments.get(env._cdata)
        if self is None:
            self = cls.__new__(cls)
            self._env = env
            self.allow_scalar_outputs = self.allow_dynamic_output_shape_ops = True
            _environments[env._cdata] = self
        return self

    @property
    def guards(self):
        return [ShapeGuard(expression, location) for expression, location in self._env.guards()]

    @property
    def var_to_range(self):
        from umbra.export.exported_program import Symbol, ValueRanges
        return {Symbol(s["name"]): ValueRanges(s["range"][0], s["range"][1] if s["range"][1] < 2**62 else None)
                for s in self._env.symbols()}

    @property
    def var_to_val(self):
        from umbra.export.exported_program import Symbol
        return {Symbol(s["name"]): s["hint"] for s in self._env.symbols() if s["hint"] is not None}

    @property
    def replacements(self):
        from umbra.export.exported_program import Symbol
        return {Symbol(s["name"]): s["replacement"] for s in self._env.symbols() if s["replacement"] is not None}

    def produce_guards_expression(self, *args, **kwargs):
        return " and ".join(self._env.guard_texts()) or None

    def create_unbacked_symint(self):
        return self._env.create_unbacked_symint()

    def create_unbacked_symfloat(self):
        return self._env.create_unbacked_symfloat()

    def create_unbacked_symbool(self):
        return self._env.create_unbacked_symbool()

    def create_symbol(self, val, source="", dynamic_dim=DimDynamic.DUCK, **kwargs):
        names = {DimDynamic.DYNAMIC: "dynamic", DimDynamic.STATIC: "static"}
        return self._env.create_symbol(val, str(source), names.get(dynamic_dim, "duck"))

    def create_symintnode(self, sym, *, hint=None, source=None):
        return sym

    def freeze(self):
        self._env.freeze()

    def format_guards(self, verbose=False):
        return "\n".join(f" - {guard.expr}" for guard in self.guards)


def has_hint(value):
    return not isinstance(value, (SymInt, SymFloat, SymBool)) or _C._sym_has_hint(value)


def hint_int(value, fallback=None):
    if not isinstance(value, SymInt):
        return int(value)
    if not _C._sym_has_hint(value):
        if fallback is None:
            raise GuardOnDataDependentSymNode(f"{value} has no hint")
        return fallback
    return _C._sym_hint(value)


def statically_known_true(value):
    return value if isinstance(value, bool) else _C._sym_statically_known_true(value)


def guard_size_oblivious(value):
    return value if isinstance(value, bool) else _C._sym_guard_or(value, False)


def guard_or_false(value):
    return value if isinstance(value, bool) else _C._sym_guard_or(value, False)


def guard_or_true(value):
    return value if isinstance(value, bool) else _C._sym_guard_or(value, True)


def definitely_true(value):
    return statically_known_true(value)


def guard_int(value):
    return int(value)


def guard_scalar(value):
    if isinstance(value, (bool, SymBool)):
        return bool(value)
    return int(value) if isinstance(value, (int, SymInt)) else float(value)


def is_symbolic(value):
    return isinstance(value, (SymInt, SymFloat, SymBool))


def is_concrete_int(value):
    return isinstance(value, int)


def is_concrete_bool(value):
    return isinstance(value, bool)


def sym_eq(a, b):
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        result = len(a) == len(b)
        for x, y in zip(a, b):
            result = result & sym_eq(x, y) if isinstance(result, SymBool) else sym_eq(x, y) if result else False
        return result
    return a == b


def constrain_range(value, *, min, max=None):
    if isinstance(value, SymInt):
        _C._sym_shape_env(value).constrain_range(value, min, 2**62 if max is None else max)


constrain_range_int = constrain_range


def free_symbols(value):
    import re
    values = value.shape if isinstance(value, _C.Tensor) else value if isinstance(value, (tuple, list)) else [value]
    found = [re.findall(r"\b[suz][f]?\d+\b", str(v)) for v in values if is_symbolic(v)]
    return {name for names in found for name in names}


def free_unbacked_symbols(value):
    return {name for name in free_symbols(value) if name.startswith("u")}
