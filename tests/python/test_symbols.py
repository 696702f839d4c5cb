"""Symbolic numbers in Python: expressions where torch has expressions, and guards as they were asked."""
import math

import pytest

import umbra
from umbra._subclasses.fake_tensor import FakeTensorMode
from umbra.fx.experimental.symbolic_shapes import ShapeEnv


def fake_of(tensor):
    env = ShapeEnv()
    return env, FakeTensorMode(shape_env=env).from_tensor(tensor)


@pytest.fixture
def sizes():
    env, t = fake_of(umbra.ones(3, 4))
    return env, *t.shape


def test_choices_are_not_made(sizes):
    env, a, b = sizes
    for value in (a > 2, umbra.sym_not(a > 2), (a > 2) & (b > 2), (a > 2) | (b > 2)):
        assert isinstance(value, umbra.SymBool)
    assert str(umbra.sym_ite(a > 2, a, b)) == "Where(s26 > 2, s26, s49)"
    assert int(umbra.sym_ite(True, 1, 2)) == 1
    assert env.guards == []
    assert int(umbra.sym_ite(b > 9, a, b)) == 4


@pytest.mark.parametrize("call, expected", [
    (lambda a: a & 1, 1), (lambda a: a | 1, 3), (lambda a: a ^ 1, 2), (lambda a: 3 & a, 3), (lambda a: a << 1, 6), (lambda a: a >> 1, 1),
    (lambda a: 1 << a, 8), (lambda a: (-a) & 1, 1), (lambda a: (-a) | 3, -1), (lambda a: round(a / 2), 2), (lambda a: round(a * 5 / 6), 2),
    (lambda a: math.floor(a / 2), 1)])
def test_integer_arithmetic_stays_symbolic(sizes, call, expected):
    env, a, b = sizes
    value = call(a)
    assert isinstance(value, umbra.SymInt) and env.guards == []
    assert int(value) == expected


def test_bits_of_any_mask(sizes):
    env, a, b = sizes
    assert (int(a & 6), int(a | 4), int(b ^ 5)) == (2, 7, 1)


def test_floats(sizes):
    env, a, b = sizes
    assert float((a / 2) % 1) == 0.5
    assert bool((b / 2).is_integer()) and not bool((a / 2).is_integer())
    with pytest.raises(TypeError):
        (a / 2) & 1
    with pytest.raises(ValueError, match="negative shift"):
        a << -1


def test_guards_stay_as_they_were_asked(sizes):
    env, a, b = sizes
    assert a > 2 and b == a + 1
    int(a)
    assert env.format_guards() == " - s26 > 2\n - Eq(s49, s26 + 1)\n - Eq(s26, 3)"


def test_what_the_environment_knows(sizes):
    env, a, b = sizes
    assert str(env.var_to_range) == "{s26: VR[2, int_oo], s49: VR[2, int_oo]}"
    assert env.var_to_val == {"s26": 3, "s49": 4} and env.replacements == {}
    int(a)
    assert env.replacements == {"s26": 3}


@pytest.mark.parametrize("tensor, strides", [
    (umbra.ones(3, 4, 1, 0, 3), "(s26*s49, s26, s26, s26, 1)"), (umbra.ones(4, 6)[:, ::2], "(s37*s49, s37)"), (umbra.ones(4, 6).t(), "(1, s26)"),
    (umbra.ones(3, 0, 5), "(s36, s36, 1)"), (umbra.ones(4, 1).expand(4, 5), "(1, 0)"), (umbra.ones(3, 3, 3).transpose(1, 2), "(s26**2, 1, s26)")])
def test_strides_follow_sizes(tensor, strides):
    assert str(fake_of(tensor)[1].stride()) == strides


def test_guards_over_the_names_of_a_captured_graphs_inputs():
    from umbra.fx.experimental.proxy_tensor import make_fx
    from umbra.fx.experimental.symbolic_shapes import fx_placeholder_targets, fx_placeholder_vals

    def function(a):
        return a.cos() if a.shape[0] < a.shape[1] and a.shape[0] > 12 else a.sin()
    graph = make_fx(function, tracing_mode="symbolic")(umbra.ones(15, 20))
    names, values = [name.removesuffix("_1") for name in fx_placeholder_targets(graph)], fx_placeholder_vals(graph)
    assert names == ["a"] and tuple(values[0].shape) == tuple(graph.graph.find_nodes(op="placeholder")[0].meta["val"].shape)
    assert graph.shape_env.produce_guards(values, names, _simplified=True, input_contexts=None) == [
        "L['a'].size()[0] < L['a'].size()[1]", "13 <= L['a'].size()[0]", "14 <= L['a'].size()[1]"]
