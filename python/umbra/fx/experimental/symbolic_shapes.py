"""Symbols of captured programs: the environment that knows about them, and policies for sizes."""
import contextlib
import dataclasses
import re
import typing
import weakref

from umbra import _C
from umbra._C import (  # noqa: F401
    ConstraintViolationError, GuardOnDataDependentSymNode, SymBool, SymFloat, SymInt)
from umbra._options import not_built
from umbra.fx.experimental._expressions import expression_of, number_of
from umbra.fx.experimental._size_questions import (  # noqa: F401
    canonicalize_bool_expr, cast_symbool_to_symint_guardless, constrain_range, constrain_range_int, constrain_unify, definitely_true,
    expect_true, free_symbols, free_unbacked_symbols, guard_bool, guard_float, guard_int, guard_or_false, guard_or_true, guard_scalar,
    guard_size_oblivious, guarding_hint_or_throw, has_free_symbols, has_free_unbacked_symbols, has_guarding_hint, has_hint,
    has_static_value, has_symbolic_sizes_strides, hint_int, is_concrete_bool, is_concrete_float, is_concrete_int, is_nested_int, is_symbolic,
    optimization_hint, statically_known_false, statically_known_true, sym_and, sym_eq, sym_or, _constrain_range_for_size)
from umbra.fx.experimental._symbolic_contexts import (  # noqa: F401
    Constraint, DimDynamic, RelaxedUnspecConstraint, StatefulSymbolicContext, StatelessSymbolicContext, StrictMinMaxConstraint,
    SubclassSymbolicContext, SymbolicContext, _policy)
from umbra.fx.experimental._unbacked_bindings import (  # noqa: F401
    CallMethodKey, compute_unbacked_bindings, rebind_unbacked, resolve_unbacked_bindings)


class RuntimeAssert(typing.NamedTuple):
    """A condition that a program checks when it runs."""
    expr: str
    msg: str
    stack: str


class ShapeGuard:
    def __init__(self, expr, location):
        self.expr, self.stack = expr, location

    def __repr__(self):
        return f"ShapeGuard({self.expr})"


_environments = weakref.WeakValueDictionary()  # the Python object of an environment, by the C++ one


@dataclasses.dataclass
class ShapeEnvSettings:
    """What a shape environment was told when it was made."""
    allow_scalar_outputs: bool
    allow_dynamic_output_shape_ops: bool
    assume_static_by_default: bool
    specialize_zero_one: bool
    duck_shape: bool
    prefer_deferred_runtime_asserts_over_guards: bool
    trace_asserts: bool


class ShapeEnv:
    """The symbols of one captured program and everything that is known about them."""

    def __init__(self, *, should_record_events=None, tracked_fakes=None, **settings):
        not_built("ShapeEnv", should_record_events=(should_record_events or None, None), tracked_fakes=(tracked_fakes or None, None))
        self._init(**settings)

    def _init(self, *, allow_scalar_outputs=True, allow_dynamic_output_shape_ops=True, assume_static_by_default=False,
              specialize_zero_one=True, duck_shape=None, prefer_deferred_runtime_asserts_over_guards=False, trace_asserts=False):
        # assume_static_by_default is for compilers that choose policies; a conversion without a context goes by duck_shape, as in PyTorch.
        not_built("ShapeEnv", trace_asserts=(trace_asserts, False),
                  prefer_deferred_runtime_asserts_over_guards=(prefer_deferred_runtime_asserts_over_guards, False))
        duck_shape = True if duck_shape is None else duck_shape
        self._env = _C._ShapeEnv(duck_shape, specialize_zero_one)
        self.frozen = False
        self.settings = ShapeEnvSettings(allow_scalar_outputs, allow_dynamic_output_shape_ops, assume_static_by_default, specialize_zero_one,
                                         duck_shape, prefer_deferred_runtime_asserts_over_guards, trace_asserts)
        _environments[self._env._cdata] = self

    def __deepcopy__(self, memo):
        """A copied graph has the symbols of the one that it was copied from."""
        return self

    @property
    def allow_scalar_outputs(self):
        return self.settings.allow_scalar_outputs

    @property
    def allow_dynamic_output_shape_ops(self):
        return self.settings.allow_dynamic_output_shape_ops

    @property
    def assume_static_by_default(self):
        return self.settings.assume_static_by_default

    @property
    def specialize_zero_one(self):
        return self.settings.specialize_zero_one

    @property
    def duck_shape(self):
        return self.settings.duck_shape

    @classmethod
    def _of(cls, env):
        self = _environments.get(env._cdata)
        if self is None:
            self = cls.__new__(cls)
            self._env = env
            self.frozen = False
            self.settings = ShapeEnvSettings(True, True, False, True, True, False, False)
            _environments[env._cdata] = self
        return self

    @property
    def guards(self):
        return [ShapeGuard(expression, location) for expression, location in self._env.guards()]

    @property
    def var_to_range(self):
        from umbra.export.exported_program import Symbol
        from umbra.utils._sympy.value_ranges import ValueRanges
        return {Symbol(s["name"]): ValueRanges(*s["range"]) for s in self._env.symbols()}

    def bound_sympy(self, expr, size_oblivious=False):
        """The range of an expression, by what is known of its symbols. `size_oblivious`: sizes that only the run tells are two or more."""
        from umbra.utils._sympy.value_ranges import ValueRanges, bound_sympy
        ranges = self.var_to_range
        if size_oblivious:
            ranges.update({name: ranges[name] & ValueRanges(2, None) for name in self.size_like})
        return bound_sympy(expr, ranges)

    @property
    def size_like(self):
        """The symbols that only the run tells and that are sizes."""
        from umbra.export.exported_program import Symbol
        return {Symbol(s["name"]) for s in self._env.symbols() if s["size_like"]}

    @property
    def var_to_sources(self):
        """Where symbols come from, by their names: sources that are called `L['x'].size()[0]`."""
        from umbra._dynamo.source import ConstantSource
        from umbra.export.exported_program import Symbol
        return {Symbol(s["name"]): [ConstantSource(name) for name in s["sources"]] for s in self._env.symbols() if s["sources"]}

    @property
    def deferred_runtime_asserts(self):
        """What is checked when the program runs, by the last symbol that only the run tells in it."""
        from umbra.export.exported_program import Symbol
        asserts = {}
        for condition, message in self._env.runtime_asserts():
            names = [s["name"] for s in self._env.symbols() if not s["backed"] and re.search(rf"\b{s['name']}\b", condition)]
            asserts.setdefault(Symbol(names[-1]) if names else None, []).append(RuntimeAssert(condition, message, ""))
        return asserts

    @property
    def num_deferred_runtime_asserts(self):
        return len(self._env.runtime_asserts())

    def is_unbacked_symint(self, symbol):
        """Whether a symbol is an integer that only the run tells."""
        return any(s["name"] == str(symbol) and not s["backed"] for s in self._env.symbols()) and str(symbol).startswith("u")

    @property
    def var_to_val(self):
        from umbra.export.exported_program import Symbol
        return {Symbol(s["name"]): s["hint"] for s in self._env.symbols() if s["hint"] is not None}

    @property
    def backed_var_to_val(self):
        """The example's values of symbols."""
        return self.var_to_val

    @property
    def replacements(self):
        from umbra.export.exported_program import Symbol
        return {Symbol(s["name"]): _number_or_text(s["replacement"]) for s in self._env.symbols() if s["replacement"] is not None}

    # ---- guards over other inputs

    def _guards(self, numbers, ignore_static, simplified=False):
        """The guards as Python code over named numbers: equal ones first, then what the program asked, then ranges."""
        names, same, ranges = {}, [], []
        for text, number, kept in numbers:
            key = str(number)
            if not isinstance(number, SymInt):
                same += [f"{text} == {number}"] if kept or not ignore_static else []
            elif key in names or not key.isidentifier():
                same.append((text, number))
            else:
                names[key] = text
        for entry in self._env.symbols():
            if entry["name"] in names:
                (low, high), text = entry["range"], names[entry["name"]]
                parts = ([f"{low} <= {text}"] if low > (2 if simplified else -2**126) else []) + ([f"{text} <= {high}"] if high < 2**126 else [])
                ranges += [" and ".join(parts)] if parts else []
        code = lambda entry: entry if isinstance(entry, str) else f"{entry[0]} == {self._env.number_code(entry[1], names)}"  # noqa: E731
        return ([] if simplified else [code(entry) for entry in same]) + self._env.guard_code(names) + ranges

    def produce_guards_expression(self, placeholders, *, guards=None, ignore_static=True):
        """The guards as Python code over inputs t0, t1, ... in the places of these fake tensors; None where there are none."""
        if guards is not None:
            raise NotImplementedError("produce_guards_expression(guards=...) is not in Umbra yet")
        return " and ".join(self._guards(_numbers_of_all(placeholders), ignore_static)) or None

    def produce_guards(self, placeholders, sources, *, source_ref=lambda source: source.name, ignore_static=True, _simplified=False, **options):
        """The guards as Python code over the sources of these tensors and integers, one text for each; `_simplified`: those that the program asked for."""
        not_built("ShapeEnv.produce_guards", **{name: (value, None) for name, value in options.items()})
        names = [f"L[{source!r}]" if isinstance(source, str) else source_ref(source) for source in sources]
        numbers = [entry for value, name in zip(placeholders, names, strict=True) for entry in _numbers_of(value, name)]
        return self._guards(numbers, ignore_static, _simplified)

    def evaluate_guards_expression(self, code, args):
        """Whether the inputs keep guards that produce_guards_expression wrote."""
        return code is None or _C._evaluate_guard_code(code, {text: int(number) for text, number, _ in _numbers_of_all(args)})

    def evaluate_guards_for_args(self, placeholders, args, *, ignore_static=True):
        """Whether other inputs could have been given in the places of these fake tensors: they keep the guards."""
        expected, actual = list(_numbers_of_all(placeholders)), [int(number) for _, number, _ in _numbers_of_all(args)]
        if len(expected) != len(actual) or any(kept and number != now for (_, number, kept), now in zip(expected, actual)):
            return False
        return self._env.accepts([number for _, number, _ in expected], actual, not ignore_static)

    # ---- questions about expressions, such as `x.shape[0].node.expr`

    def evaluate_expr(self, expr, hint=None):
        """The value of an expression, which becomes a guard: `env.evaluate_expr((n > 4).node.expr)`."""
        not_built("ShapeEnv.evaluate_expr", hint=(hint, None))
        return guard_scalar(number_of(expr))

    def simplify(self, expr):
        """The expression by what is known now."""
        return expression_of(number_of(expr))

    replace = simplify

    def size_hint(self, expr, *, allow_none=False):
        """The value of an expression in the run that was captured."""
        number = number_of(expr)
        if allow_none and not has_hint(number):
            return None
        return guarding_hint_or_throw(number)

    guarding_hint_or_throw = size_hint

    def has_guarding_hint(self, expr):
        return has_hint(number_of(expr))

    @contextlib.contextmanager
    def suppress_guards(self):
        """Inside, questions are answered by the example and leave no guards."""
        before = self._env.suppress_guards(True)
        try:
            yield
        finally:
            self._env.suppress_guards(before)

    # ---- symbols

    @contextlib.contextmanager
    def ignore_fresh_unbacked_symbols(self):
        """Symbols that are made inside are nobody's to bind."""
        before = {s["name"] for s in self._env.symbols()}
        try:
            yield
        finally:
            self._bound().update(s["name"] for s in self._env.symbols() if not s["backed"] and s["name"] not in before)

    def _bound(self):
        """The symbols that some value has been found to bind."""
        return self.__dict__.setdefault("_bound_symbols", set())

    def create_unbacked_symint(self):
        return self._env.create_unbacked_symint()

    def _unbacked_size(self, low=0, high=None):
        """A size that only the run tells."""
        size = self.create_unbacked_symint()
        self._env.constrain_range(size, low, high)
        _C._sym_mark_size_like(size)
        return size

    def create_unbacked_symfloat(self):
        return self._env.create_unbacked_symfloat()

    def create_unbacked_symbool(self):
        return self._env.create_unbacked_symbool()

    def create_symbol(self, val, source="", dynamic_dim=DimDynamic.DUCK, constraint_dim=None, *, positive=None,
                      do_not_specialize_zero_one=False, symbolic_context=None):
        not_built("ShapeEnv.create_symbol", constraint_dim=(constraint_dim, None), positive=(positive or None, None),
                  do_not_specialize_zero_one=(do_not_specialize_zero_one, False), symbolic_context=(symbolic_context, None))
        return self._env.create_symbol(val, str(source), *_policy(dynamic_dim))

    def create_symintnode(self, sym, *, hint=None, source=None):
        return sym

    def create_symbolic_sizes_strides_storage_offset(self, ex, source, *, symbolic_context=None):
        """The sizes, strides and offset that a fake tensor like `ex` would have."""
        from umbra._subclasses.fake_tensor import FakeTensorMode
        fake = FakeTensorMode(shape_env=self).from_tensor(ex, source=source, symbolic_context=symbolic_context)
        return tuple(fake.shape), tuple(fake.stride()), fake.storage_offset()

    def freeze(self):
        """The program has been captured. Questions that come later still leave guards, since the answers rest on them."""
        self.frozen = True

    def format_guards(self, verbose=False):
        return "\n".join(f" - {guard.expr}" for guard in self.guards)


def _number_or_text(expression):
    """An expression that is a number as an int."""
    return int(expression) if re.fullmatch(r"-?\d+", expression) else expression


def _numbers_of(value, name):
    """(expression, number, whether it is compared where numbers are not) of all that a guard may speak of: sizes, strides and the offset of a
    tensor, or an integer."""
    if isinstance(value, _C.Tensor):
        yield from ((f"{name}.size()[{d}]", size, False) for d, size in enumerate(value.shape))
        yield from ((f"{name}.stride()[{d}]", stride, False) for d, stride in enumerate(value.stride()))
        yield f"{name}.storage_offset()", value.storage_offset(), False
    elif isinstance(value, (int, SymInt)):
        yield name, value, not isinstance(value, SymInt)


def _numbers_of_all(inputs):
    """The same of inputs that go by their places."""
    for i, value in enumerate(inputs):
        yield from _numbers_of(value, f"L['t{i}']")


def fx_placeholder_targets(gm):
    """What a captured graph calls its inputs."""
    return [node.target for node in gm.graph.nodes if node.op == "placeholder"]


def fx_placeholder_vals(gm):
    """What stood for them when it was captured."""
    return [node.meta["val"] for node in gm.graph.nodes if node.op == "placeholder" and node.meta.get("val") is not None]


def _env_of(values):
    for _, number, _ in _numbers_of_all(values):
        if isinstance(number, SymInt):
            return ShapeEnv._of(_C._sym_shape_env(number))
    return None


def eval_guards(gm, *args, ignore_static=True):
    """Whether a captured graph may be run with other inputs: they keep the guards of its capture."""
    values = fx_placeholder_vals(gm)
    env = _env_of(values)
    return env is None or env.evaluate_guards_for_args(values, args, ignore_static=ignore_static)


def bind_symbols(gm, *args):
    """The values that the symbols of a captured graph have for other inputs."""
    from umbra.export.exported_program import Symbol
    bindings = {}
    for (_, number, _), (_, actual, _) in zip(_numbers_of_all(fx_placeholder_vals(gm)), _numbers_of_all(args)):
        if isinstance(number, SymInt) and str(number) in free_symbols(number):
            bindings.setdefault(Symbol(str(number)), int(actual))
    return bindings
