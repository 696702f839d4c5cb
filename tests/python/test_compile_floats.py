"""torch.compile of functions of floats: one graph for all of them from the second on, where the function lets them be unknown."""
import math

import pytest
from counting import Counting

import umbra as torch

FLOATS = [0.5, 1.5, 2.5, 0.0, -0.0, float("inf"), float("nan"), 1e-30]


def numbers():
    return torch.arange(1.0, 4.0)


def compile_whole(function, **settings):
    backend = Counting()
    return torch.compile(function, backend=backend, fullgraph=True, **settings), backend


@pytest.mark.parametrize("function", [
    lambda x, t: x * t, lambda x, t: t - x, lambda x, t: x / t, lambda x, t: x ** t, lambda x, t: torch.add(x, x, alpha=t), lambda x, t: x.clamp(max=t),
    lambda x, t: torch.where(x > t, x, t), lambda x, t: x + torch.full((3,), t), lambda x, t: x.masked_fill(x > 1, t), lambda x, t: (x * 1).mul_(t),
    lambda x, t: x * (t * 2 + 1) / (t * t + 1), lambda x, t: x * 2 if isinstance(t, float) else x])
def test_one_graph_is_for_all(function):
    compiled, backend = compile_whole(function)
    for t in FLOATS:
        torch.testing.assert_close(compiled(numbers(), t), function(numbers(), t), equal_nan=True)
    assert backend.graphs == 4  # the first float, all others, infinity, not a number


@pytest.mark.parametrize("function", [lambda x, t: x * t if t > 1 else x + t, lambda x, t: x * math.exp(-abs(t)), lambda x, t: x * {0.5: 1.0}.get(t, 3.0),
                                      lambda x, t: x * int(t), lambda x, t: x * len(f"{t:.2f}"), lambda x, t: x * 2 if t.is_integer() else x * 3])
def test_functions_that_ask_for_the_value(function):
    compiled, _ = compile_whole(function)
    for t in FLOATS[:5]:
        assert torch.equal(compiled(numbers(), t), function(numbers(), t))


def test_floats_that_are_given_back():
    compiled, _ = compile_whole(lambda x, t: (x, t, [t * 2]))
    for t in FLOATS[:5]:
        _, same, (twice,) = compiled(numbers(), t)
        assert (type(same), same, twice) == (float, t, t * 2)


def test_gradients():
    compiled, _ = compile_whole(lambda x, t: (x ** 2) * t + x * (1 - t))
    for t in FLOATS[:5]:
        x = numbers().requires_grad_()
        compiled(x, t).sum().backward()
        torch.testing.assert_close(x.grad, 2 * numbers() * t + 1 - t)


def test_integers_and_floats_are_two_kinds():
    compiled, _ = compile_whole(lambda x, t: x * t)
    whole = torch.arange(3)
    for t in (1.5, 2.5, 2, 3, True, 3.5):
        found = compiled(whole, t)
        assert found.dtype == (whole * t).dtype and torch.equal(found, whole * t)


def test_symbols_from_the_start_and_never():
    moving, graphs = compile_whole(lambda x, t: x * t, dynamic=True)
    fixed, _ = compile_whole(lambda x, t: x * t, dynamic=False)
    for t in (0.5, 1.5, 2.5):
        assert torch.equal(moving(numbers(), t), numbers() * t) and torch.equal(fixed(numbers(), t), numbers() * t)
    assert graphs.graphs == 2


def test_later_calls_need_no_python():
    compiled, backend = compile_whole(lambda x, t: x * t)
    compiled(numbers(), 0.5), compiled(numbers(), 1.5)
    hits = torch.compiler.cache_info(compiled).hits
    assert torch.equal(compiled(numbers(), 7.5), numbers() * 7.5)
    assert torch.compiler.cache_info(compiled).hits == hits + 1 and backend.graphs == 2
