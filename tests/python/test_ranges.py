"""Ranges of symbolic numbers, kinds of symbols, and marks that say which sizes may vary."""
import pytest

import umbra
from umbra import nn
from umbra._dynamo.decorators import mark_dynamic, mark_static, mark_unbacked, maybe_mark_dynamic
from umbra._subclasses.fake_tensor import FakeTensorMode
from umbra.export import export
from umbra.fx.experimental.symbolic_shapes import CallMethodKey, ShapeEnv, compute_unbacked_bindings, expect_true
from umbra.utils._pytree import SequenceKey
from umbra.utils._sympy.numbers import int_oo, is_infinite
from umbra.utils._sympy.symbol import SymT, free_symbol_is_type, make_symbol, symbol_is_type
from umbra.utils._sympy.value_ranges import ValueRangeError, ValueRanges, bound_sympy


def sizes(*numbers):
    env = ShapeEnv()
    return env, FakeTensorMode(shape_env=env).from_tensor(umbra.empty(numbers)).shape


def test_ranges_meet_and_join():
    numbers = ValueRanges(2, 8)
    assert repr(numbers & ValueRanges(5, 10)) == "VR[5, 8]" and repr(numbers | ValueRanges(10, 12)) == "VR[2, 12]"
    assert 3 in numbers and 9 not in numbers and numbers.issubset(ValueRanges(0, 9)) and not numbers.is_singleton() and ValueRanges.wrap(3).is_singleton()
    assert numbers.tighten(ValueRanges(3, 20)) == ValueRanges(3, 8) and hash(numbers) == hash(ValueRanges(2, 8))
    assert repr(ValueRanges(3, int_oo)) == "VR[3, int_oo]" and repr(ValueRanges.unknown_int()) == "VR[-int_oo, int_oo]" and repr(ValueRanges.unknown()) == "VR[-oo, oo]"
    assert numbers.is_int and ValueRanges.unknown().is_float and ValueRanges.unknown_bool().is_bool and ValueRanges(2, float("inf")).is_int
    with pytest.raises(ValueRangeError, match=r"Invalid ranges \[9:8\]"):
        numbers & ValueRanges(9, 10)
    with pytest.raises(AssertionError):
        numbers & ValueRanges(2.0, 3.0)
    with pytest.raises(AssertionError, match="not simple sympy type"):
        ValueRanges("a", 2)


def test_ranges_of_functions():
    assert ValueRanges.increasing_map(ValueRanges(1, 2), lambda x: x + 1) == ValueRanges(2, 3)
    assert ValueRanges.decreasing_map(ValueRanges(1, 2), lambda x: -x) == ValueRanges(-2, -1)
    assert ValueRanges.convex_min_zero_map(ValueRanges(-1, 2), abs) == ValueRanges(0, 2)
    assert ValueRanges.coordinatewise_monotone_map(ValueRanges(-1, 2), ValueRanges(3, 4), lambda a, b: a * b) == ValueRanges(-4, 8)


def test_the_ends_of_the_integers():
    assert int_oo > 10**30 and -int_oo < -10**30 and [repr(x) for x in (int_oo, -int_oo, int_oo + 1, 2 * int_oo, -int_oo - 5)] == ["int_oo", "-int_oo", "int_oo", "int_oo", "-int_oo"]
    assert is_infinite(int_oo) and is_infinite(float("-inf")) and not is_infinite(3)


def test_an_expression_has_the_range_that_follows_from_its_symbols():
    env, (a, b) = sizes(6, 7)
    ranges = {a.node.expr: ValueRanges(2, 4), b.node.expr: ValueRanges(3, 5)}
    assert bound_sympy((a + b).node.expr, ranges) == ValueRanges(5, 9) and bound_sympy((a * b - 1).node.expr, ranges) == ValueRanges(5, 19)
    assert bound_sympy((a < b).node.expr, ranges) == ValueRanges.unknown_bool() and bound_sympy((a < b + 3).node.expr, ranges) == ValueRanges.wrap(True)
    assert bound_sympy((a / 2).node.expr, ranges) == ValueRanges(1.0, 2.0)
    assert bound_sympy((a + 1).node.expr) == ValueRanges(2, int_oo) and bound_sympy("u0") == ValueRanges.unknown_int() and bound_sympy(3) == ValueRanges(3, 3)
    umbra._check(a < 10)
    umbra._check(a >= 4)
    assert env.bound_sympy(a.node.expr) == ValueRanges(4, 9) and env.bound_sympy((a // 2).node.expr) == ValueRanges(2, 4)
    size = env._unbacked_size()
    assert env.bound_sympy(size.node.expr).lower == 0 and env.bound_sympy(size.node.expr, size_oblivious=True).lower == 2 and env.size_like == {str(size)}


def test_symbols_are_of_kinds():
    _, (a, b) = sizes(6, 7)
    assert symbol_is_type(a.node.expr, SymT.SIZE) and not symbol_is_type(a.node.expr, (SymT.UNBACKED_INT, SymT.FLOAT))
    assert not free_symbol_is_type((a + b).node.expr, SymT.UNBACKED_INT) and make_symbol(SymT.UNBACKED_INT, 3) == "u3"


def test_what_a_run_will_check_is_kept_by_symbol():
    env = ShapeEnv()
    u = env.create_unbacked_symint()
    assert expect_true(u >= 3) and [one.expr for one in env.deferred_runtime_asserts["u0"]] == ["3 <= u0"] and env.num_deferred_runtime_asserts == 1
    assert env.is_unbacked_symint("u0") and not env.is_unbacked_symint("s0") and not env.frozen
    env.freeze()
    assert env.frozen


def test_the_first_value_with_a_symbol_binds_it():
    env = ShapeEnv()
    found = FakeTensorMode(shape_env=env).from_tensor(umbra.ones(4), static_shapes=True).nonzero()
    where = {"u0": (CallMethodKey("size"), SequenceKey(0))}
    assert compute_unbacked_bindings(env, found, peek=True) == where and compute_unbacked_bindings(env, [found]) == {"u0": (SequenceKey(0), *where["u0"])}
    assert compute_unbacked_bindings(env, found) is None and compute_unbacked_bindings(None, found) is None
    assert where["u0"][0].get(found) == found.shape


def test_sizes_strides_and_offset_of_an_example():
    from umbra._dynamo.source import ConstantSource
    (a, b, one), strides, offset = ShapeEnv().create_symbolic_sizes_strides_storage_offset(umbra.empty(3, 4, 1), ConstantSource("t"))
    assert one == 1 and offset == 0 and str(strides[0]) == str(b) and str(a) != str(b) and strides[1:] == (1, 1)


class AddOne(nn.Module):
    def forward(self, x):
        return x + 1


class AtMostFive(nn.Module):
    def forward(self, x):
        return x + 1 if x.shape[0] <= 5 else x


class FixesRows(nn.Module):
    def forward(self, x):
        return x + 1 if x.shape[0] == 3 else x


def test_marked_sizes_are_symbols_of_the_marked_range():
    x = umbra.ones(3, 4)
    mark_dynamic(x, 0, min=2, max=9)
    maybe_mark_dynamic(x, [1], min=3)
    program = export(AddOne(), (x,))
    assert sorted(map(repr, program.range_constraints.values())) == ["VR[2, 9]", "VR[3, int_oo]"]
    with pytest.raises(AssertionError):
        program.module()(umbra.ones(10, 4))
    assert x._dynamo_dynamic_indices == {0} and x._dynamo_weak_dynamic_indices == {1} and len(x._dynamo_dynamic_range) == 2
    mark_static(x)
    assert export(AddOne(), (x,)).range_constraints == {}


def test_a_program_that_takes_less_than_a_marked_range_says_so_and_refuses_the_rest():
    x = umbra.ones(3, 4)
    mark_dynamic(x, 0, min=2, max=9)
    program = export(AtMostFive(), (x,))
    assert [repr(one) for one in program.range_constraints.values()] == ["VR[2, 5]"]
    with pytest.raises(AssertionError):
        program.module()(umbra.ones(6, 4))


def test_a_marked_size_that_the_program_fixes_is_refused():
    x = umbra.ones(3, 4)
    mark_dynamic(x, 0)
    with pytest.raises(Exception, match="as dynamic but your code specialized it to be a constant"):
        export(FixesRows(), (x,))
    with pytest.raises(AssertionError, match="Expected index to be int, list, or tuple"):
        mark_dynamic(x, "a")
    with pytest.raises(NotImplementedError, match=r"mark_unbacked\(strict=True\) is not in Umbra yet"):
        mark_unbacked(x, 0, strict=True)


def test_a_marked_size_is_captured_once_by_compile():
    calls = []

    def backend(module, inputs):
        calls.append(inputs)
        return module.forward
    function = umbra.compile(lambda x: x * x.shape[0], backend=backend)
    x = umbra.ones(3, 4)
    mark_dynamic(x, 0)
    assert function(x).tolist() == [[3.0] * 4] * 3
    assert function(umbra.ones(5, 4)).sum() == 100 and function(umbra.ones(9, 4)).sum() == 324 and len(calls) == 1


def test_a_range_is_no_tuple():
    assert not isinstance(ValueRanges(2, 3), tuple) and ValueRanges(2, 3) != (2, 3) and len({ValueRanges(2, 3), ValueRanges(2, 3)}) == 1
