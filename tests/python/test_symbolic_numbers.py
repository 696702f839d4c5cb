"""Symbolic numbers: exact whatever their size, and programs that refuse what they were not captured for."""
import math

import pytest
from export_functions import Function

import umbra as torch
from umbra._dynamo.source import ConstantSource
from umbra._subclasses.fake_tensor import FakeTensorMode
from umbra.export import Dim, export
from umbra.fx.experimental import symbolic_shapes
from umbra.fx.experimental.proxy_tensor import make_fx
from umbra.fx.experimental.symbolic_shapes import ShapeEnv, guard_or_false, guard_or_true, guard_size_oblivious, statically_known_true


def program(function, *example, dynamic):
    return export(Function(function), example, dynamic_shapes=dynamic).module()


def sizes(*hints):
    env = ShapeEnv()
    return env, FakeTensorMode(shape_env=env).from_tensor(torch.empty(hints, dtype=torch.int8, device="meta")).shape


def captured(function, example):
    graph = make_fx(lambda x, n: function(n), tracing_mode="symbolic")(torch.ones(1), example)
    return lambda n: graph(torch.ones(1), n)


# ---- numbers


@pytest.mark.parametrize("function", [lambda n: n & 3, lambda n: n | 8, lambda n: n ^ 5, lambda n: 6 & n, lambda n: (n >> 1) & 1, lambda n: n & -4,
                                      lambda n: n << 3, lambda n: n >> 61, lambda n: (n & 12) | (n ^ 3)])
def test_operators_on_bits_are_captured(function):
    run = captured(function, 7)
    assert [run(n) for n in (7, 6, 12, 0, -5)] == [function(n) for n in (7, 6, 12, 0, -5)]


def test_a_rerun_near_the_end_of_64_bits_is_right():
    large = 2**62
    run = captured(lambda n: [-n // 3, -n % 5, -n, n - 7, (n - 1) // 2], 7)
    for n in (large - 1, large, large + 5, 2**63 - 1, -large):
        assert run(n) == [-n // 3, -n % 5, -n, n - 7, (n - 1) // 2]


def test_a_rerun_beyond_64_bits_is_refused():
    run = captured(lambda n: n * n * n, 7)
    assert run(2**20) == 2**60
    with pytest.raises(OverflowError):
        run(2**31)
    for function in (lambda n: 12 // n, lambda n: n // n, lambda n: (n * 3) % n, lambda n: (n * n + n) // n, lambda n: 0 % n):
        run = captured(function, 7)
        assert run(5) == function(5)
        with pytest.raises(ZeroDivisionError):
            run(0)


def test_products_of_sizes_are_exact():
    _, (x,) = sizes(2**62)
    assert int(x * 4) == 2**64
    _, (x,) = sizes(2**62)
    assert x * x > 2**100
    assert (x * 8) // 2**60 == 32
    _, (y,) = sizes(7)
    assert int(2**63 - y) == 2**63 - 7
    assert int(y - 2**64) == 7 - 2**64
    _, (x,) = sizes(2**53 + 1)
    assert float(x / 3) == (2**53 + 1) / 3


def test_bounds_of_large_products_are_exact():
    env = ShapeEnv()
    u, v = env.create_unbacked_symint(), env.create_unbacked_symint()
    torch._check(u >= 2**32)
    torch._check(v >= 2**32)
    torch._check(v <= 2**40)
    known = [statically_known_true(c) for c in (u * v >= 2**64, u * v > 2**62, u * v == 2**63 - 1, u * v > 2**65, (u * v) % 7 == 0)]
    assert known == [True, True, False, False, False]
    assert isinstance((u * v) // 3, torch.SymInt)


def test_contradictory_checks_are_errors():
    env = ShapeEnv()
    u, v = env.create_unbacked_symint(), env.create_unbacked_symint()
    torch._check(u >= v + 5)
    torch._check(v >= 0)
    with pytest.raises(RuntimeError):
        torch._check(u <= 3)


def test_a_sum_of_many_symbols_is_made_at_once():
    env = ShapeEnv()
    symbols = [env.create_unbacked_symint() for _ in range(5000)]
    total = torch.sym_sum([*symbols, 7, symbols[0]])
    assert statically_known_true(total - torch.sym_sum(symbols[1:]) == 2 * symbols[0] + 7)
    assert torch.sym_sum([1, 2, 3]) == 6 and torch.sym_sum([1, 2.5]) == 3.5


def test_relations_print_as_they_are_written():
    env = ShapeEnv()
    u, v = env.create_unbacked_symint(), env.create_unbacked_symint()
    assert [str(c) for c in (u < v, u > v, u <= v, u >= v, torch.sym_not(u < v), torch.sym_not(u >= v), 3 < u)] == [
        "u0 < u1", "u0 > u1", "u0 <= u1", "u0 >= u1", "u0 >= u1", "u0 < u1", "u0 > 3"]
    assert statically_known_true((u < v) | (v <= u))
    torch._check(u < v)
    assert statically_known_true(v > u) and not statically_known_true(v > u + 1)


# ---- questions


def test_sizes_from_data_are_open_unless_asked_obliviously():
    env = ShapeEnv()
    u = env.create_unbacked_symint()
    torch._check_is_size(u)
    assert [guard_or_false(u == 1), guard_or_true(u == 1), guard_or_false(u >= 2), guard_or_true(u >= 2)] == [False, True, False, True]
    assert [guard_size_oblivious(u == 1), guard_size_oblivious(u >= 2), guard_size_oblivious(u * 2 > 3)] == [False, True, True]
    with pytest.raises(symbolic_shapes.GuardOnDataDependentSymNode):
        guard_size_oblivious(u == 5)
    with pytest.raises(AssertionError, match="Expected bool"):
        guard_or_false(3)


def test_guards_can_be_asked_of_other_inputs():
    env = ShapeEnv()
    t = FakeTensorMode(shape_env=env).from_tensor(torch.ones(6, 4))
    assert t.shape[0] % 3 == 0 and t.shape[0] > t.shape[1]
    code = env.produce_guards_expression([t])
    for shape, fits in (((6, 4), True), ((9, 5), True), ((8, 4), False), ((3, 4), False)):
        assert env.evaluate_guards_for_args([t], [torch.ones(shape)]) == fits
        assert env.evaluate_guards_expression(code, [torch.ones(shape)]) == fits


def test_suppressed_guards_are_not_recorded():
    env, (x,) = sizes(6)
    with env.suppress_guards():
        assert x > 4
    assert not env.guards and x > 2 and len(env.guards) == 1


def test_options_that_are_not_built_are_errors():
    with pytest.raises(TypeError):
        ShapeEnv(no_such_option=True)
    with pytest.raises(NotImplementedError):
        ShapeEnv(trace_asserts=True)


# ---- programs


def test_a_guard_that_divides_by_zero_refuses_the_call():
    run = program(lambda x, y: x + 1 if x.shape[0] // (y.shape[0] - 2) == 2 else x, torch.ones(4), torch.ones(4),
                  dynamic=({0: Dim.AUTO}, {0: Dim.AUTO}))
    assert run(torch.ones(6), torch.ones(5)).shape == (6,)
    with pytest.raises(AssertionError):
        run(torch.ones(4), torch.ones(2))


def test_a_program_refuses_sizes_for_which_a_branch_goes_the_other_way():
    def double_single(x):
        return x * 2 if x.shape[0] == 1 else x + 1

    run = program(double_single, torch.ones(4), dynamic=({0: Dim("n")},))
    assert run(torch.ones(2)).tolist() == [2, 2]
    with pytest.raises(AssertionError, match="!= 1"):
        run(torch.ones(1))
    squeezed = program(lambda x: x.squeeze(0).reshape(x.shape[0], -1), torch.ones(4, 3), dynamic=({0: Dim("n")},))
    assert squeezed(torch.ones(2, 3)).shape == (2, 3)
    with pytest.raises(AssertionError, match="!= 1"):
        squeezed(torch.ones(1, 3))
    assert program(lambda x: x + 1, torch.ones(4), dynamic=({0: Dim("n")},))(torch.ones(1)).tolist() == [2]


@pytest.mark.parametrize("condition, text", [(lambda n: n != 7, "!= 7"), (lambda n: n % 2 != 1, "% 2) != 1"), (lambda n: n * n != 49, "!= 49")])
def test_an_excluded_value_breaks_the_promise_of_a_dim(condition, text):
    def branch(x):
        return x + 1 if condition(x.shape[0]) else x

    with pytest.raises(Exception, match="Not all values of n") as error:
        program(branch, torch.ones(4), dynamic=({0: Dim("n")},))
    assert text in str(error.value)
    run = program(branch, torch.ones(4), dynamic=({0: Dim.AUTO},))
    assert run(torch.ones(6)).tolist() == [2] * 6
    with pytest.raises(AssertionError, match="!="):
        run(torch.ones(7))


def test_an_integer_input_varies_where_a_dim_says_so():
    run = program(lambda x, n: x * n + (n - 1), torch.ones(2), 5, dynamic=(None, Dim.DYNAMIC))
    assert [run(torch.ones(2), n).tolist()[0] for n in (5, 7, 1, 0, -3)] == [9, 13, 1, -1, -7]
    run = program(lambda x, n: x + n if n > 3 else x - n, torch.ones(2), 5, dynamic=(None, Dim.AUTO))
    with pytest.raises(AssertionError):
        run(torch.ones(2), 3)
    fixed = program(lambda x, n: x * n, torch.ones(2), 5, dynamic=(None, Dim.STATIC))
    with pytest.raises(AssertionError, match="== 5"):
        fixed(torch.ones(2), 6)
    with pytest.raises(ValueError, match="named Dims"):
        program(lambda x, n: x * n, torch.ones(2), 5, dynamic=(None, Dim("n")))
    with pytest.raises(Exception, match="non-tensor type"):
        program(lambda x, n: x * n, torch.ones(2), 2.5, dynamic=(None, Dim.AUTO))


def test_bounds_of_automatic_dimensions_are_kept():
    run = program(lambda x: x * 2, torch.ones(4), dynamic=({0: Dim.AUTO(min=3, max=10)},))
    assert run(torch.ones(10)).shape == (10,)
    for size in (2, 11):
        with pytest.raises(AssertionError, match="Guard failed"):
            run(torch.ones(size))
    with pytest.raises(Exception, match="Static shape constraint of 5"):
        program(lambda x: x * 2, torch.ones(4), dynamic=({0: 5},))


@pytest.mark.parametrize("check, good, bad", [
    (lambda t: torch._check(t.item()), True, False),
    (lambda t: torch._check(torch.sym_not(t.item())), False, True),
    (lambda t: torch._check(t.item() > 1.5), 2.0, 1.0),
    (lambda t: torch._check(t.item() * 2 <= 3.0), 1.5, 1.75),
    (lambda t: torch._check((t.item() > 1) & (t.item() != 4)), 3, 4),
])
def test_checks_of_data_are_made_when_the_program_runs(check, good, bad):
    def checked(x, t):
        check(t)
        return x * 2

    run = program(checked, torch.ones(2), torch.tensor(good), dynamic=None)
    assert run(torch.ones(2), torch.tensor(good)).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="Runtime assertion failed"):
        run(torch.ones(2), torch.tensor(bad))


def test_one_mask_gives_one_size_until_it_is_written():
    with FakeTensorMode(shape_env=ShapeEnv()):
        x = torch.empty(5)
        mask = x > 0
        a, b = x[mask], x[mask]
        assert statically_known_true(a.shape[0] == b.shape[0]) and (a + b).shape[0] == a.shape[0]
        mask.logical_not_()
        assert not statically_known_true(x[mask].shape[0] == a.shape[0])
        total = x.sum()
        assert statically_known_true(total.item() == total.item())


def test_a_deep_number_can_be_computed():
    _, (x,) = sizes(6)
    value, plain = x, 6
    for i in range(20000):
        value, plain = (value * 3 + x) % (i + 7), (plain * 3 + 6) % (i + 7)
    assert int(value) == plain
    graph = captured(lambda n: math.prod([_nest(n)]), 5)
    assert graph(9) == _nest(9)


def _nest(n):
    for i in range(300):
        n = (n * 3 + 1) % (i + 11)
    return n


def test_symbolic_bools_are_numbers_where_they_are_added():
    _, (a, b) = sizes(5, 7)
    less = a < b
    assert (less + 1, 3 - less, less * 2, int(less)) == (2, 2, 2, 1)
    assert bool((less ^ True) == (a >= b)) and not bool(less ^ (b > a))
    for refused in (lambda: ~less, lambda: float(less), lambda: [1, 2][less]):
        with pytest.raises(TypeError):
            refused()


def test_bools_among_numbers_are_0_and_1_for_every_number():
    def f(n):
        return [n + True, n * False, True - n, n % 2 == True, (n > 3) + 1, (n > 3) * n, (n > 3) == 1, (n > 3) == n, (n > 3) != 0, (n > 3) & 1,  # noqa: E712
                (n > 3) < 1, (n > 3) == (n < 9), torch.sym_max(n > 3, 0)]
    run = captured(f, 7)
    for n in (7, 1, 0, 9, -4):
        assert run(n) == f(n)


def test_a_bool_that_only_the_run_tells_is_compared_without_being_asked():
    b = ShapeEnv().create_unbacked_symbool()
    for question in (b == 1, b != 0, b + 1 == 2, 1 - b == 0):
        assert isinstance(question, torch.SymBool)


def test_remainders_and_floor_division_of_floats_are_pythons():
    def f(n):
        return [n // 0.1, n % 0.1, n // 0.7, n % 0.7, n // -0.3, n % -0.3, -n // 0.7, -n % 0.7, 5.5 // n, 5.5 % n, (n / 2) // 0.3, (n / 2) % 0.3]
    run = captured(f, 7)
    for n in (7, 5, 3, 11):
        assert run(n) == f(n)
    _, (five,) = sizes(5)
    assert float(five // 0.1) == 49.0 and float(sizes(5)[1][0] % 0.1) == 5 % 0.1 and str(sizes(5)[1][0] % 0.5).startswith("Mod(ToFloat(")
    for by, text in ((lambda: five // 0.0, "float floor division by zero"), (lambda: five % 0.0, "float modulo"), (lambda: five // 0, "integer division")):
        with pytest.raises(ZeroDivisionError, match=text):
            by()


def test_numbers_that_python_has_no_real_power_of_are_refused():
    run = captured(lambda n: n**-0.5, 7)
    assert run(9) == 9**-0.5
    for n, error in ((0, ZeroDivisionError), (-4, ValueError)):
        with pytest.raises(error):
            run(n)


def test_a_number_as_a_key_is_the_key_of_its_value():
    env, (a,) = sizes(5)
    assert hash(a > 3) == hash(True) and {True: "yes"}[a > 3] == "yes" and hash(a / 2) == hash(2.5) and {2.5: "half"}[a / 2] == "half"
    assert [guard.expr.split()[0] for guard in env.guards][:1] == [str(sizes(5)[1][0])]
    with pytest.raises(TypeError, match="unhashable type: non-nested SymInt"):
        hash(sizes(5)[1][0])


def test_questions_after_freezing_leave_guards():
    env, (a,) = sizes(5)
    env.freeze()
    assert env.frozen and a > 3 and len(env.guards) == 1


@pytest.mark.parametrize("condition, text", [
    (lambda u, v: u > 3, "3 < u0"), (lambda u, v: 2 * u == 2 * v + 4, "Eq(u0, u1 + 2)"), (lambda u, v: u - v >= -1, "u1 <= u0 + 1"),
    (lambda u, v: -2 * u >= -4, "u0 <= 2"), (lambda u, v: 6 * u < 4 * v + 3, "6*u0 < 4*u1 + 3"), (lambda u, v: (u > 3) & (v < 2), "(3 < u0) & (u1 < 2)"),
    (lambda u, v: u + v == 10, "Eq(u0 + u1, 10)"), (lambda u, v: u - 1 != v, "Ne(u0, u1 + 1)")])
def test_conditions_have_one_form(condition, text):
    env = ShapeEnv()
    u, v = env.create_unbacked_symint(), env.create_unbacked_symint()
    question = condition(u, v)
    assert symbolic_shapes.canonicalize_bool_expr(question.node.expr) == text
    symbolic_shapes.expect_true(question)
    last = "u1" if "u1" in text else "u0"
    assert [check.expr for check in env.deferred_runtime_asserts[last]] == [text]


def test_errors_about_data_show_the_example():
    env, (a,) = sizes(5)
    u = env.create_unbacked_symint()
    with pytest.raises(symbolic_shapes.GuardOnDataDependentSymNode, match=rf"expression Eq\(u0 \+ 5, 3\) \(unhinted: Eq\({a} \+ u0, 3\)\)"):
        bool(u + a == 3)


def test_symbols_that_nobody_binds():
    env = ShapeEnv()
    with env.ignore_fresh_unbacked_symbols():
        hidden = env.create_unbacked_symint()
    shown = env.create_unbacked_symint()
    assert list(symbolic_shapes.compute_unbacked_bindings(env, [hidden, shown])) == ["u1"]


def test_symbols_know_their_sources():
    env, (a,) = inputs(torch.ones(4, 6))
    assert [source.name for sources in env.var_to_sources.values() for source in sources] == ["x0.size()[0]", "x0.size()[1]"]


def test_integers_that_are_one_from_here_on():
    env = ShapeEnv()
    u, v = env.create_unbacked_symint(), env.create_unbacked_symint()
    symbolic_shapes.constrain_unify(u, v)
    assert statically_known_true(u == v)
    with pytest.raises(AssertionError):
        symbolic_shapes.constrain_unify(3, 4)


def test_one_of_two_numbers_has_one_type():
    _, (a, b) = sizes(5, 7)
    assert int(torch.sym_ite(a < b, a, b)) == 5 and float(torch.sym_ite(a < b, a / 2, 1.0)) == 2.5
    with pytest.raises(AssertionError, match="one type"):
        torch.sym_ite(a < b, a, 1.0)


def test_a_number_that_divides_by_zero_in_the_example_says_so():
    _, (a, b) = sizes(5, 5)
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        int(a // (a - 5))


def test_a_size_that_a_guard_has_fixed_is_a_number():
    _, (a, b) = sizes(6, 3)
    assert not symbolic_shapes.is_concrete_int(a) and a.node.maybe_as_int() is None and (a.hint, a.has_hint(), a.bit_length()) == (6, True, 3)
    assert a == 6
    assert symbolic_shapes.is_concrete_int(a) and a.node.maybe_as_int() == 6 and a.node.is_constant()


def test_guards_are_produced_over_sources():
    from umbra._dynamo.source import ConstantSource, LocalSource, TensorProperty, TensorPropertySource
    mode = FakeTensorMode(shape_env=ShapeEnv())
    x, y = LocalSource("x"), LocalSource("y")
    a, b = mode.from_tensor(torch.ones(5, 7), source=x), mode.from_tensor(torch.ones(7, 3, 1), source=y)
    assert a.shape[0] < 10 and a.shape[1] == b.shape[0] and b.shape[1] % 3 == 0
    guards = mode.shape_env.produce_guards([a, b], [x, y])
    same, of_strides = "L['y'].size()[0] == L['x'].size()[1]", "L['x'].stride()[0] == L['x'].size()[1]"
    assert same in guards and of_strides in guards and "2 <= L['x'].size()[1]" in guards

    def kept(*tensors):
        return all(eval(guard, {"L": dict(zip("xy", tensors))}) for guard in guards)
    assert kept(torch.ones(4, 6), torch.ones(6, 3, 1)) and not kept(torch.ones(11, 6), torch.ones(6, 3, 1))
    assert not kept(torch.ones(4, 6), torch.ones(5, 3, 1)) and not kept(torch.ones(4, 6), torch.ones(6, 4, 1))
    assert "L['y'].size()[2] == 1" in mode.shape_env.produce_guards([a, b], [x, y], ignore_static=False)
    assert TensorPropertySource(x, TensorProperty.SIZE, 1).name == "L['x'].size()[1]" and ConstantSource("n").name == "n"


def inputs(*tensors):
    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env)
    return env, [mode.from_tensor(tensor, source=ConstantSource(f"x{i}")) for i, tensor in enumerate(tensors)]


def kept(env, fakes, *args):
    """Whether other inputs keep the guards, by their text and without it."""
    code = env.produce_guards_expression(fakes)
    answers = env.evaluate_guards_expression(code, args), env.evaluate_guards_for_args(fakes, args)
    assert answers[0] == answers[1]
    return answers[0]


def test_guards_speak_of_strides_and_offsets():
    ones = torch.ones
    env, fakes = inputs(ones(4, 6))
    assert [kept(env, fakes, x) for x in (ones(5, 7), ones(6, 4).t(), ones(5, 7)[:, :6], ones(8, 6)[::2])] == [True, False, False, False]
    env, fakes = inputs(ones(6, 4).t())
    assert [kept(env, fakes, x) for x in (ones(4, 6), ones(7, 5).t())] == [False, True]
    env, fakes = inputs(ones(10)[2:])
    assert [kept(env, fakes, x) for x in (ones(8), ones(10)[3:])] == [False, True]
    env, fakes = inputs(ones(4, 6))
    assert env.produce_guards_expression([*fakes, 3]).count("L['t1'] == 3") == 1 and not kept(env, [*fakes, 3], ones(4, 6), 4)


def test_guards_over_sizes_that_are_fixed_or_equal():
    ones = torch.ones
    env, (a, b) = inputs(ones(4, 6), ones(4, 3))
    assert a.shape[1] == b.shape[1] * 2
    assert [kept(env, [a, b], *x) for x in ((ones(4, 8), ones(4, 4)), (ones(4, 8), ones(4, 3)), (ones(5, 6), ones(4, 3)))] == [True, False, False]
    env, (a,) = inputs(ones(4, 6))
    assert int(a.shape[0]) == 4 and a.shape[1] % 2 == 0
    assert env.evaluate_guards_for_args([a], [ones(4, 8)], ignore_static=False) and not env.evaluate_guards_for_args([a], [ones(5, 8)], ignore_static=False)
    assert kept(env, [a], ones(4, 8)) and not kept(env, [a], ones(4, 7))
    env, (a,) = inputs(ones(4, 6))
    assert a.numel() > 20 and a.shape[0] + a.shape[1] == 10
    assert [kept(env, [a], ones(*size)) for size in ((5, 5), (3, 7), (2, 8))] == [True, True, False]


def test_bounds_of_one_size_are_one_guard():
    env, (a,) = inputs(torch.ones(4, 6))
    assert a.shape[0] > 3 and a.shape[0] < 9 and a.shape[0] != 5
    guards = env.produce_guards([a], [ConstantSource("x0")])
    assert "4 <= x0.size()[0] and x0.size()[0] <= 8" in guards and "x0.size()[0] != 5" in guards and not any(" > " in guard or " < " in guard for guard in guards)


def test_the_larger_of_floats_is_a_number_once_its_size_is_fixed():
    _, (a, b) = sizes(5, 7)
    larger = torch.sym_max(a / 2, 1.5)
    assert a == 5 and math.floor(larger) == 2 and str(larger) == "2.5"


def test_floats_are_rounded_as_python_rounds():
    env, (a, b) = sizes(5, 7)
    assert [str(round(a / 2)), str(round(a / 2, 1)), str(round(a * 0.5, -1)), str(round(a, 1)), str(torch._sym_cos(a))] == [
        "RoundToInt(IntTrueDiv(s26, 2))", "RoundDecimal(IntTrueDiv(s26, 2), 1)", "RoundDecimal(0.5*ToFloat(s26), -1)", "s26", "OpaqueUnaryFn_cos(ToFloat(s26))"]
    assert not env.guards
    for value in (0.5, 1.5, 2.675, 0.49999999999999994, 25.0, 35.0, -2.5, 4503599627370497.0):
        for digits in (None, 0, 1, 2, -1, -2, 400):
            assert float(round(value * torch.sym_float(a) / 5.0, digits)) == round(value * 5.0 / 5.0, digits), (value, digits)


@pytest.mark.parametrize("name", ["sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "log2"])
def test_functions_of_floats(name):
    function, plain = getattr(torch, f"_sym_{name}"), getattr(math, name)
    _, (a, b) = sizes(5, 7)
    symbolic = function(a / 8)
    assert isinstance(symbolic, torch.SymFloat) and str(symbolic) == f"OpaqueUnaryFn_{name}(IntTrueDiv(s26, 8))" and float(symbolic) == plain(5 / 8)
    assert function(0.5) == plain(0.5)


def test_functions_refuse_what_they_have_no_value_for():
    _, (a, b) = sizes(5, 7)
    for call in (lambda: torch._sym_asin(a), lambda: torch._sym_acos(2.0), lambda: torch._sym_sqrt(-a)):
        with pytest.raises(ValueError, match="math domain error"):
            call()


def test_the_length_of_a_range_of_floats_is_an_expression():
    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env)
    a, b = mode.from_tensor(torch.empty(7, 5)).shape
    with mode:
        lengths = [torch.arange(*bounds).shape[0] for bounds in [(a / 2,), (0, a, 0.5)]]
    assert [(type(length), length.node.hint) for length in lengths] == [(torch.SymInt, 4), (torch.SymInt, 14)]
    assert not env.guards
    run = program(lambda x: torch.arange(x.shape[0] / 2) + x.sum(), torch.ones(7), dynamic=({0: Dim.AUTO},))
    assert [run(torch.ones(n)).shape[0] for n in (2, 3, 8)] == [1, 2, 4]


def test_the_expression_behind_a_number_computes_on():
    env, (a, b) = sizes(9, 5)
    x, y = a.node.expr, b.node.expr
    both = x * 2 + y
    assert both == f"2*{x} + {y}" and str(both + 1) == f"2*{x} + {y} + 1" and both - both == 0 and f"<{both}>" == f"<2*{x} + {y}>"
    assert both.free_symbols == {x, y} == symbolic_shapes.free_symbols(both) and x.is_Symbol and x.name == str(a) and not both.is_Symbol
    assert str(x > 3) == f"{x} > 3" and str(3 + x) == f"{x} + 3" and "size " + x == f"size {a}" and x + " wide" == f"{a} wide"
    assert not both.is_number and x in env.var_to_range
    for refused in (lambda: int(both), lambda: x > "wide" * a.node.expr, lambda: x + None):
        with pytest.raises(TypeError):
            refused()
    with pytest.raises(AttributeError, match="not a symbol"):
        both.name


def test_an_environment_answers_questions_about_expressions():
    env, (a, b) = sizes(9, 5)
    u = env.create_unbacked_symint()
    assert env.size_hint((a * 2 + b).node.expr) == 23 and not env.guards
    assert env.size_hint(u.node.expr, allow_none=True) is None
    with pytest.raises(torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode):
        env.evaluate_expr(u.node.expr)
    v = env.create_unbacked_symint()
    torch._check(u == v * 2)
    assert env.simplify((u - v).node.expr) == env.replace(v.node.expr) == str(v)
    assert env.evaluate_expr((a > 3).node.expr) is True and [str(guard.expr) for guard in env.guards] == [f"{a} > 3"]
    with pytest.raises(TypeError, match="node.expr"):
        env.simplify("s0")


def test_a_check_of_a_symbol_takes_its_message_as_text():
    env, (a, _) = sizes(9, 5)
    with pytest.raises(RuntimeError, match="too small"):
        torch._check(a > 10, "too small")


# ---- conditions that follow only from what sizes are taken to be


@pytest.mark.parametrize("function", [
    lambda x: torch.cond(x.shape[0] == 1, lambda x: x + 1, lambda x: x - 1, (x,)),
    lambda x: torch.cond(torch.sym_not(x.shape[0] > 1), lambda x: x + 1, lambda x: x - 1, (x,)),
    lambda x: torch.cond((x.shape[0] == 1) | (x.shape[0] > 5), lambda x: x + 1, lambda x: x - 1, (x,)),
    lambda x: x.new_ones(torch.sym_ite(x.shape[0] == 1, 5, x.shape[0])),
    lambda x: x.new_ones(x.shape[0] + (x.shape[0] == 1) * 3),
    lambda x: torch.full((2,), (x.shape[0] == 1) ^ (x.shape[0] > 2)),
    lambda x: x * (x.shape[0] != 0),
])
def test_a_condition_that_the_program_does_not_ask_is_decided_when_it_runs(function):
    graph = make_fx(function, tracing_mode="symbolic")(torch.ones(4))
    again = make_fx(graph, tracing_mode="symbolic")(torch.ones(5))
    exported = export(Function(function), (torch.ones(4),), dynamic_shapes=({0: Dim("batch", min=0, max=9)},))
    for run in (graph, again, exported.module(), exported.run_decompositions().module()):
        for size in (4, 7, 1, 0):
            x = torch.arange(float(size)) + 3
            assert torch.equal(run(x), function(x)), (size, run)


@pytest.mark.parametrize("function", [
    lambda x: x + 1 if x.shape[0] == 1 else x - 1,
    lambda x: x + 1 if not x.shape[0] == 1 else x - 1,
    lambda x: x + 1 if torch.sym_not(x.shape[0] == 1) else x - 1,
    lambda x: x + 1 if (x.shape[0] == 1) | (x.shape[0] == 3) else x - 1,
    lambda x: x + int(x.shape[0] == 1),
    lambda x: x + {True: 1, False: 2}[x.shape[0] == 1],
    lambda x: x + 1 if guard_or_false(x.shape[0] == 1) else x - 1,
    lambda x: x + 1 if guard_or_true(x.shape[0] != 1) else x - 1,
    lambda x: x + 1 if statically_known_true(x.shape[0] != 1) else x - 1,
    lambda x: x + 1 if guard_size_oblivious(x.shape[0] == 1) else x - 1,
    lambda x: (torch._check(x.shape[0] != 1), x + 1)[1],
])
def test_a_program_that_goes_by_what_sizes_are_taken_to_be_refuses_others(function):
    run = program(function, torch.ones(4), dynamic=({0: Dim("batch", min=0, max=9)},))
    assert torch.equal(run(torch.ones(7)), function(torch.ones(7)))
    with pytest.raises(AssertionError, match=r"x.size\(\)\[0\]"):
        run(torch.ones(1))


def test_a_condition_that_is_held_answers_as_before():
    env, (x,) = sizes(6)
    conditions = [x == 1, x != 1, x > 1, 1 == x, x >= 1, x < 2, x * 2 == 2]
    assert all(isinstance(one, torch.SymBool) for one in conditions)
    assert [statically_known_true(one) for one in conditions] == [False, True, True, False, True, False, False]
    assert [bool(one) for one in conditions] == [False, True, True, False, True, False, False]
    assert type(x >= 0) is bool and x not in (0, 1) and not env.guards
    assert torch.compile(lambda x: x + 1 if (x.shape[0] == 1) is False else x, dynamic=True, backend="eager")(torch.ones(3)).sum() == 6
