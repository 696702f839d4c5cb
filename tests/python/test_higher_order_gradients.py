"""Captured gradients of operators that take functions: higher ones, what is not done twice, what a loop costs."""
import pytest

import umbra
from umbra import tensor
from umbra._functorch.aot_autograd import aot_function
from umbra._functorch.compilers import nop
from umbra._higher_order_ops import cond, map, scan, while_loop
from umbra.fx.experimental.proxy_tensor import make_fx


def cube_or_square(x):
    return cond(x.sum() > 0, lambda x: x ** 3, lambda x: x * x, (x,))


def squared_three_times(x, w=None):
    w = umbra.ones(3) if w is None else w
    return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * x * w), (tensor(0), x))[1]


def running_product(x):
    return scan(lambda c, x: (c * x, c * x), umbra.ones(()), x)[1]


def cubes(x):
    return map(lambda row: row ** 3, x)


def of_results(x):
    """Functions whose gradients are made of their results."""
    return cond(x.sum() > 0, lambda x: x.tanh() * x.exp().sigmoid() + x.softmax(0), lambda x: x * x, (x,))


def partly_detached(x):
    return cond(x.sum() > 0, lambda x: x * x.sin().detach() + x.exp(), lambda x: x * x, (x,))


@pytest.mark.parametrize("function", [cube_or_square, squared_three_times, running_product, cubes, of_results, partly_detached])
def test_a_captured_second_derivative_is_that_of_the_run(function):
    def derivatives(x):
        x = x.detach().requires_grad_()
        first, = umbra.autograd.grad(function(x).sum(), x, create_graph=True)
        return first, umbra.autograd.grad((first * first).sum(), x)[0]
    x = umbra.arange(3.) + 0.5
    for got, expected in zip(make_fx(derivatives)(x)(x + 1), derivatives(x + 1)):
        assert umbra.allclose(got, expected) and expected.abs().sum() > 0


def test_the_third_derivative_of_a_captured_loop_is_refused():
    def third(x):
        x = x.detach().requires_grad_()
        result = squared_three_times(x).sum()
        for _ in range(3):
            result = umbra.autograd.grad(result, x, create_graph=True)[0].sum()
        return result
    with pytest.raises(NotImplementedError, match="third derivative"):
        make_fx(third)(umbra.ones(3))


def half_dropped(x):
    return umbra.nn.functional.dropout(x * 2, 0.5)


def test_the_way_back_of_a_loop_costs_as_many_steps_as_the_loop():
    calls = []

    @umbra.library.custom_op("test_loops::double", mutates_args=())
    def double(x: umbra.Tensor) -> umbra.Tensor:
        calls.append(1)
        return x * 2
    double.register_fake(lambda x: umbra.empty_like(x))
    double.register_autograd(lambda context, gradient: double(gradient))
    loop = aot_function(lambda x, n: while_loop(lambda i, x: i < n, lambda i, x: (i + 1, double(x)), (tensor(0), x))[1], nop)

    def calls_back(steps):
        x = umbra.ones(2, requires_grad=True)
        result = loop(x, tensor(steps))
        calls.clear()
        result.sum().backward()
        assert x.grad.tolist() == [2 ** steps] * 2
        return len(calls)
    assert [calls_back(steps) for steps in (1, 10, 20)] == [2, 20, 40]


def test_a_loop_that_does_not_run_hands_gradients_on():
    x, w = umbra.ones(3, requires_grad=True), umbra.ones(3, requires_grad=True)
    loop = aot_function(lambda x, w, n: while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x * w), (tensor(0), x))[1], nop)
    loop(x, w, tensor(0)).sum().backward()
    assert x.grad.tolist() == [1, 1, 1] and w.grad.tolist() == [0, 0, 0]


def test_what_a_branch_prints_is_printed_once(capfd):
    def spoken(x):
        umbra.ops.aten._print("said")
        return x.sin()
    x = umbra.ones(3, requires_grad=True)
    aot_function(lambda x: cond(x.sum() > 0, spoken, lambda x: x.cos(), (x,)), nop)(x).sum().backward()
    assert umbra.allclose(x.grad, umbra.ones(3).cos()) and capfd.readouterr().out.count("said") == 1


@pytest.mark.parametrize("function", [
    lambda x: cond(x.sum() > 0, half_dropped, lambda x: x.cos(), (x,)),
    lambda x: map(half_dropped, x),
    lambda x: scan(lambda c, x: (c + x, half_dropped(x)), umbra.zeros(8), x)[1],
    lambda x: while_loop(lambda i, x: i < 1, lambda i, x: (i + 1, half_dropped(x)), (tensor(0), x))[1],
], ids=["cond", "map", "scan", "while_loop"])
def test_random_numbers_that_a_captured_gradient_would_draw_anew_are_refused(function):
    with pytest.raises(NotImplementedError, match="random numbers"):
        aot_function(function, nop)(umbra.ones(4, 8, requires_grad=True))
    compiled, x = umbra.compile(function, backend="aot_eager"), umbra.ones(4, 8, requires_grad=True)
    result = compiled(x)  # runs as it is
    result.sum().backward()
    assert umbra.equal(result == 0, x.grad == 0)
