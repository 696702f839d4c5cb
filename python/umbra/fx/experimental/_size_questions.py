"""What is asked of numbers that may be symbols, and how the answer is to be found: by what is known, by the example with a guard, or not at all."""
import operator

from umbra import _C
from umbra._C import GuardOnDataDependentSymNode, SymBool, SymFloat, SymInt
from umbra.fx.experimental._expressions import Expression


def _bool_like(value):
    if not isinstance(value, (bool, SymBool)):
        raise AssertionError(f"Expected bool, got {type(value)}")
    return value


def has_hint(value):
    return not isinstance(value, (SymInt, SymFloat, SymBool)) or _C._sym_has_hint(value)


has_guarding_hint = has_hint


def hint_int(value, fallback=None):
    if not isinstance(value, SymInt):
        return int(value)
    if not _C._sym_has_hint(value):
        if fallback is None:
            raise GuardOnDataDependentSymNode(f"{value} has no hint")
        return fallback
    return _C._sym_hint(value)


optimization_hint = hint_int


def guarding_hint_or_throw(value):
    return _C._sym_hint(value) if is_symbolic(value) else value


def statically_known_true(value):
    """True where that is known without a guard."""
    return value if isinstance(_bool_like(value), bool) else _C._sym_statically_known_true(value)


def statically_known_false(value):
    """True where the condition is known to be false without a guard."""
    return not value if isinstance(_bool_like(value), bool) else _C._sym_statically_known_true(_C.sym_not(value))


def guard_size_oblivious(value):
    """The truth, where sizes that only data tells are taken to be two or more."""
    return value if isinstance(_bool_like(value), bool) else _C._sym_guard_size_oblivious(value)


def guard_or_false(value):
    """The truth, by a guard if need be; False where only the run can tell."""
    return value if isinstance(_bool_like(value), bool) else _C._sym_guard_or(value, False)


def guard_or_true(value):
    """The truth, by a guard if need be; True where only the run can tell."""
    return value if isinstance(_bool_like(value), bool) else _C._sym_guard_or(value, True)


def expect_true(value, skip=0):
    """Takes a condition for granted from here on; a run-time assertion where it is not known."""
    return value if isinstance(_bool_like(value), bool) else _C._sym_expect_true(value, "")


def definitely_true(value):
    return statically_known_true(value)


def has_static_value(value):
    """Whether a number is plain, or symbolic with only one value left."""
    if not is_symbolic(value):
        return True
    if not isinstance(value, SymInt):
        return False
    low, high = _C._sym_shape_env(value).bound(value)
    return low == high


def guard_bool(value):
    """The truth of a condition, which becomes a guard."""
    if not isinstance(value, (bool, SymBool)):
        raise AssertionError(f"Expected bool, got {value}")
    return bool(value)


def guard_int(value):
    """The value of an integer, which becomes a guard."""
    if not isinstance(value, (int, SymInt)):
        raise AssertionError(f"Expected int, got {value}")
    return int(value)


def guard_float(value):
    """The value of a float, which becomes a guard."""
    if not isinstance(value, (float, SymFloat)):
        raise AssertionError(f"Expected float, got {value}")
    return float(value)


def guard_scalar(value):
    """The value of a number, which becomes a guard."""
    for types, guard in (((bool, SymBool), guard_bool), ((int, SymInt), guard_int), ((float, SymFloat), guard_float)):
        if isinstance(value, types):
            return guard(value)
    raise AssertionError(f"unrecognized scalar {value}")


def is_symbolic(value):
    return isinstance(value, (SymInt, SymFloat, SymBool))


def is_concrete_int(value):
    """Whether it is a number: a plain one, or one that a guard has fixed."""
    return isinstance(value, int) or value.node.maybe_as_int() is not None


def is_nested_int(value):
    """Whether a number stands for the ragged size of a nested tensor; those are not captured here."""
    return is_symbolic(value) and value.node.is_nested_int()


def is_concrete_float(value):
    return isinstance(value, float)


def is_concrete_bool(value):
    return isinstance(value, bool)


def sym_and(value, *others):
    """`and` of conditions that may be symbolic, without asking for their truth."""
    for other in others:
        value = operator.and_(value, other)
    return value


def sym_or(value, *others):
    """`or` of conditions that may be symbolic, without asking for their truth."""
    for other in others:
        value = operator.or_(value, other)
    return value


def sym_eq(a, b):
    """Whether two numbers, or two lists of numbers, are equal; without asking for the truth."""
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and sym_and(True, *map(sym_eq, a, b))
    if not isinstance(a, (int, SymInt)) or not isinstance(b, (int, SymInt)):
        raise AssertionError(f"unexpected sym_eq between {type(a)} {type(b)}")
    return a == b


def constrain_range(value, *, min, max=None):
    if isinstance(value, SymInt):
        _C._sym_shape_env(value).constrain_range(value, min, max)


constrain_range_int = constrain_range


def constrain_unify(a, b):
    """Two integers are one from here on."""
    if not isinstance(a, SymInt) and not isinstance(b, SymInt):
        if a != b:
            raise AssertionError(f"Expected {a} == {b}")
        return
    expect_true(a == b)


def _constrain_range_for_size(value, min=None, max=None):
    """An integer that only the run tells is a size, which is not negative."""
    constrain_range(value, min=0 if min is None else min, max=max)
    _C._sym_mark_size_like(value)


def cast_symbool_to_symint_guardless(value):
    """1 where a condition holds and 0 where not, without asking for the truth."""
    return _C.sym_ite(value, 1, 0)


def canonicalize_bool_expr(expr):
    """A condition in one of its forms: the smaller side first, without a common factor, nothing subtracted. `2*s0 - 4 > 0` is `2 < s0`."""
    return expr if isinstance(expr, bool) else _C._condition_text(str(expr))


def free_symbols(value):
    """The names of the symbols in a number, a tensor's sizes, or a list of such."""
    if isinstance(value, _C.Tensor):
        value = value.shape
    if isinstance(value, (tuple, list, set)):
        return set().union(*map(free_symbols, value))
    if isinstance(value, Expression):
        return value.free_symbols
    return set(_C._sym_free_symbols(value)) if is_symbolic(value) else set()


def free_unbacked_symbols(value):
    return {name for name in free_symbols(value) if name.startswith(("u", "zuf"))}


def has_free_symbols(value):
    return bool(free_symbols(value))


def has_free_unbacked_symbols(value):
    return bool(free_unbacked_symbols(value))


def has_symbolic_sizes_strides(elem):
    return any(map(is_symbolic, (*elem.shape, *elem.stride(), elem.storage_offset())))
