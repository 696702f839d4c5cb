"""Captured gradients of operators that take functions: higher ones, what is not done twice, what a loop costs."""
import pytest

import umbra
import umbra.export
from umbra import tensor
from umbra._functorch.aot_autograd import aot_function
from umbra._functorch.compilers import nop
from umbra._higher_order_ops import cond, map, scan, while_loop
from umbra.fx.experimental.proxy_tensor import make_fx
from umbra.utils.checkpoint import checkpoint


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


def between_a_sine_and_itself(x):
    def body(i, y, z):
        return i + 1, y.sin() * x + z, z * y
    return while_loop(lambda i, y, z: (i < 3) & (y.sum() < 9), body, (umbra.zeros((), dtype=umbra.int64), x, umbra.ones(3).double()))[1]


@pytest.mark.parametrize("order", [3, 4])
def test_later_derivatives_of_a_captured_loop_are_those_of_the_run(order):
    def derivative(x):
        x = x.detach().requires_grad_()
        result = between_a_sine_and_itself(x)
        for _ in range(order):
            result = umbra.autograd.grad((result * result).sum() * .5, x, create_graph=True)[0]
        return result
    first, other = umbra.tensor([.1, .2, .3]).double(), umbra.tensor([.5, -.4, .2]).double()
    captured = make_fx(derivative)(first)
    assert "while_loop" in captured.code
    for x in first, other:
        assert umbra.allclose(captured(x), derivative(x)) and derivative(x).abs().sum() > 0


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


# ---- what a function can ask for ----

def by_gradients(t):
    return t * 2 if t.requires_grad else t * 10


def by_mode(t):
    return t * 2 if umbra.is_grad_enabled() else t * 10


def by_leaf(t):
    return t * 2 if t.is_leaf else t * 5


class TellsNeed(umbra.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a * a * (2 if ctx.needs_input_grad[0] else 5)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.saved_tensors[0] * 7


def with_a_part_without_gradients(t):
    with umbra.no_grad():
        inner = t * 3 if umbra.is_grad_enabled() else t * 30
        with umbra.enable_grad():
            outer = by_gradients(t)
    return inner + outer


def derivative_of_its_own(t):
    u = t.detach().clone().requires_grad_()
    return umbra.autograd.grad((u ** 3).sum(), u)[0] * t


def derivative_of_its_operand(t):
    return umbra.autograd.grad((t * t).sum(), t, create_graph=True)[0] * t if t.requires_grad else t * 1


def hooked(t):
    y = t * 2
    if y.requires_grad:
        y.register_hook(lambda gradient: gradient * 3)
    return y.sin()


ASKING = [by_gradients, by_mode, by_leaf, TellsNeed.apply, with_a_part_without_gradients, derivative_of_its_own, derivative_of_its_operand, hooked]
CALLS = {
    "cond": lambda f, x: cond(x.sum() > 0, f, lambda t: t + 0, (x,)),
    "of a result": lambda f, x: cond(x.sum() > 0, f, lambda t: t + 0, (x.sin(),)),
    "nested": lambda f, x: cond(x.sum() > 0, lambda t: cond(t.sum() > 0, f, lambda u: u + 0, (t.sin(),)), lambda t: t + 0, (x,)),
    "map": lambda f, x: map(f, x),
    "scan": lambda f, x: scan(lambda c, r: (c * 1.5, f(r) + c), x[0] * 1, x)[1],
    "while_loop": lambda f, x: while_loop(lambda i, c: i < 2, lambda i, c: (i + 1, f(c)), (tensor(0), x * 1))[1],
    "nested loops": lambda f, x: while_loop(
        lambda i, c: i < 2, lambda i, c: (i + 1, while_loop(lambda j, d: j < 2, lambda j, d: (j + 1, f(d)), (tensor(0), c.sin()))[1]),
        (tensor(0), x * 1))[1],
    "closure": lambda f, x: (lambda a: cond(x.sum() > 0, lambda t: t * f(a), lambda t: t + 0, (x.detach(),)))(x * 1),
    "without gradients": lambda f, x: map(f, x.detach()),
}


@pytest.mark.parametrize("needs", [True, False])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("function", ASKING)
def test_a_captured_function_sees_the_history_of_its_run(function, call, needs):
    def derivatives(run):
        x = tensor([[.1, .2], [.3, .5]], requires_grad=needs)
        y = run(x)
        return y.detach(), y.requires_grad, umbra.autograd.grad((y * y).sum(), x)[0] if y.requires_grad else None
    run = lambda x: CALLS[call](function, x)
    expected = derivatives(run)
    for captured in (aot_function(run, nop), umbra.compile(run, backend="aot_eager", fullgraph=True)):
        value, requires_grad, gradient = derivatives(captured)
        assert umbra.allclose(value, expected[0]) and requires_grad == expected[1]
        assert (gradient is None) == (expected[2] is None) and (gradient is None or umbra.allclose(gradient, expected[2]))


@pytest.mark.parametrize("call", ["cond", "of a result", "nested", "map", "scan", "while_loop", "nested loops"])
def test_an_exported_function_sees_the_history_of_its_run(call):
    class Model(umbra.nn.Module):
        def forward(self, x):
            y = CALLS[call](by_gradients, x)
            return y * 3 if y.requires_grad else y * 70
    for needs in (True, False):
        x = tensor([[.1, .2], [.3, .5]], requires_grad=needs)
        assert umbra.allclose(umbra.export.export(Model(), (x,)).module()(x), Model()(x))


@pytest.mark.parametrize("function", [cube_or_square, squared_three_times, running_product, cubes])
def test_a_derivative_inside_an_exported_program_goes_through_its_loops(function):
    class Model(umbra.nn.Module):
        def forward(self, x):
            return umbra.autograd.grad(function(x).sum() + (3 * x).sum(), x)[0] * 1
    x = umbra.tensor([.5, 1.5, 2.5], requires_grad=True)
    program = umbra.export.export(Model(), (x,))
    y = (x.detach() + 1).requires_grad_()
    assert umbra.allclose(program.module()(y), Model()(y)) and not umbra.allclose(Model()(y), umbra.full((3,), 3.))


def test_loops_whose_steps_differ_by_the_history_of_what_is_carried_are_refused():
    w = tensor([1.5, 2.], requires_grad=True)
    loops = [lambda x: scan(lambda c, r: (by_gradients(c) + r, c * 1), umbra.ones(2), x)[1],
             lambda x: while_loop(lambda i, c: i < 3, lambda i, c: (i + 1, by_gradients(c) * w), (tensor(0), x.detach()))[1]]
    for loop in loops:
        with pytest.raises(NotImplementedError, match="something else once what is carried needs gradients"):
            aot_function(loop, nop)(umbra.ones(3, 2, requires_grad=True))
    same = lambda x: scan(lambda c, r: (c * w + r, c * r), umbra.zeros(2), x)[1]
    x = umbra.ones(3, 2, requires_grad=True)
    for got, expected in zip(*(umbra.autograd.grad(run(x).square().sum(), (x, w)) for run in (aot_function(same, nop), same))):
        assert umbra.allclose(got, expected)


def test_a_capture_leaves_what_a_loop_starts_with_as_it_is():
    w, x = tensor([1.5, 2.], requires_grad=True), umbra.ones(2)
    make_fx(lambda x: while_loop(lambda i, c: i < 3, lambda i, c: (i + 1, c * w), (tensor(0), x))[1])(x)
    assert not x.requires_grad and x.is_leaf


def test_a_captured_derivative_by_what_another_input_depends_on_is_refused():
    def by_closed_over(x):
        a = x * 2
        return cond(x.sum() > 0, lambda t: umbra.autograd.grad((t * a).sum(), a, create_graph=True)[0] * t, lambda t: t + 0, (a * 3,))
    with pytest.raises(NotImplementedError, match="another one of its inputs depends"):
        aot_function(by_closed_over, nop)(umbra.ones(2, requires_grad=True))


def test_rows_need_gradients_where_they_have_a_history():
    def rows(x):
        with umbra.no_grad():
            return map(by_gradients, x) + scan(lambda c, r: (c * 1, by_gradients(r)), x[0] * 1, x)[1]
    x = umbra.ones(3, 2, requires_grad=True)
    assert rows(x).tolist() == aot_function(rows, nop)(x).tolist() == umbra.full((3, 2), 20.).tolist()


def test_a_checkpointed_loop_is_captured():
    loop = lambda e: while_loop(lambda j, d: j < 2, lambda j, d: (j + 1, d.sin() * d), (tensor(0), e))[1]
    function = lambda x: checkpoint(lambda e: while_loop(lambda i, c: i < 2, lambda i, c: (i + 1, loop(c)), (tensor(0), e))[1], x.sin(), use_reentrant=False)
    x = tensor([.9, 1.2], requires_grad=True)
    got, expected = (umbra.autograd.grad(run(x).sum(), x)[0] for run in (aot_function(function, nop), function))
    assert umbra.allclose(got, expected) and expected.abs().sum() > 0


def test_a_loop_that_closes_over_a_constant_is_captured():
    row = tensor([.5, 2.])
    function = lambda x: scan(lambda c, r: (c * row + r, c * r), umbra.zeros(2), x)[1]
    x = umbra.ones(3, 2, requires_grad=True)
    got, expected = (umbra.autograd.grad(run(x).square().sum(), x)[0] for run in (aot_function(function, nop), function))
    assert umbra.allclose(got, expected)


def test_loops_inside_a_derivative_inside_a_loop_are_captured():
    def step(t):
        v = t * 1.3
        y = map(lambda r: r * r * v[0], umbra.stack([v, v * .5])).sum(0)
        return umbra.autograd.grad(y.sum(), v, create_graph=True)[0] if y.requires_grad else y
    function = lambda x: cond(x.sum() > -9, step, lambda t: t + 0, (x,))
    x = umbra.tensor([.5, .7], requires_grad=True)
    got, expected = (umbra.autograd.grad(run(x).sum(), x)[0] for run in (aot_function(function, nop), function))
    assert umbra.allclose(got, expected)


def test_a_constant_that_a_backward_pass_meets_is_kept():
    row = tensor([.5, 2.])
    def step(t):
        q = t.detach().clone().requires_grad_()
        y = while_loop(lambda i, s: i < 2, lambda i, s: (i + 1, s * s * row), (tensor(0), q * 1))[1]
        return umbra.autograd.grad(y.sum(), q)[0] * t
    function = lambda x: cond(x.sum() > -9, step, lambda t: t + 0, (x,))
    x = tensor([.5, .7], requires_grad=True)
    for run in (aot_function(function, nop), make_fx(function)(x)):
        assert umbra.allclose(run(x), function(x))


class Scaled(umbra.autograd.Function):
    """A gradient that is not that of what forward computes."""

    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * (y + x * x)


class Setup(umbra.autograd.Function):
    @staticmethod
    def forward(x):
        return x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].cos() * 2


def weighted(x):
    with umbra.no_grad():
        weight = x.sum().sigmoid()
    return x * weight + x.sin()


@pytest.mark.parametrize("step", [weighted, Scaled.apply, lambda x: Scaled.apply(x).exp(), lambda x: umbra.func.vjp(Setup.apply, x)[1](x.sin())[0],
                                  lambda x: checkpoint(lambda y: y * y.exp(), x, use_reentrant=False)])
@pytest.mark.parametrize("around", [lambda f, x: cond(x.sum() > 0, f, lambda y: y * y, (x,)), lambda f, x: map(f, umbra.stack([x, x * .5])).sum(0),
                                    lambda f, x: scan(lambda c, r: (f(c) + r, c * r), x, umbra.stack([x, x * .5]))[0],
                                    lambda f, x: while_loop(lambda i, c, d: i < 2, lambda i, c, d: (i + 1, f(c) * d, c * d), (tensor(0), x, x.cos()))[1]])
def test_a_second_derivative_is_that_of_what_the_function_calls(around, step):
    """The graph of a first derivative does not tell what has a history, nor a custom function's gradient."""
    def derivative(x):
        return umbra.autograd.grad(around(step, x).sin().sum(), x, create_graph=True)[0].exp()
    x = tensor([.4, -.2, .7], dtype=umbra.float64, requires_grad=True)
    got, expected = (umbra.autograd.grad(run(x).sum(), x)[0] for run in (aot_function(derivative, nop), derivative))
    assert umbra.allclose(got, expected)


@pytest.mark.parametrize("function", [lambda x: while_loop(lambda i, c: i < 3, lambda i, c: (i + 1, c.sin() + x * .3), (tensor(0), x))[1],
                                      lambda x: while_loop(lambda i, c, d: i < 3, lambda i, c, d: (i + 1, c.sin() * d, d * .5), (tensor(0), x, x))[1],
                                      lambda x: scan(lambda c, r: (c.sin() + r * x, c * r), x, umbra.stack([x, x * .5]))[0]])
def test_a_loop_may_be_given_one_tensor_at_two_places(function):
    x = tensor([.4, -.7, 1.3], requires_grad=True)
    got, expected = (umbra.autograd.grad(run(x).cos().sum(), x)[0] for run in (aot_function(function, nop), function))
    assert umbra.allclose(got, expected)


@pytest.mark.parametrize("around", [lambda f, x: cond(x.sum() > 0, f, lambda y: y * y, (x,)), lambda f, x: map(f, umbra.stack([x, x * .5])).sum(0)])
def test_an_exported_derivative_is_that_of_what_the_function_calls(around):
    first, second = umbra.ones(3) * .3, umbra.ones(3) * .7
    class Derivative(umbra.nn.Module):
        def forward(self, x):
            y = around(lambda y: Scaled.apply(y * second - first) * first, x)
            return umbra.autograd.grad(y.sum(), x)[0]
    x = tensor([.4, -.2, .7], requires_grad=True)
    assert umbra.allclose(umbra.export.export(Derivative(), (x,)).module()(x), Derivative()(x))


def kept_elsewhere(y):
    with umbra.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2):
        return y.tanh().exp()


@pytest.mark.parametrize("part", [lambda y: checkpoint(lambda z: z.tanh(), y, use_reentrant=False), kept_elsewhere])
@pytest.mark.parametrize("capture", [lambda f, x: aot_function(f, nop), lambda f, x: make_fx(f)(x), lambda f, x: make_fx(f, tracing_mode="fake")(x)])
def test_what_hooks_compute_inside_is_not_taken_for_closed_over(capture, part):
    def derivative(y):
        return umbra.autograd.grad(part(y).sin().sum(), y, create_graph=True)[0]
    function = lambda x: map(derivative, umbra.stack([x, x * .5])) + cond(x.sum() > 0, derivative, lambda y: y * y, (x,))
    x = tensor([.4, -.7, 1.3], requires_grad=True)
    assert umbra.allclose(capture(function, x)(x), function(x))


def test_a_recorded_way_back_through_a_loop_runs_again():
    w = tensor([.1, .2, .3], requires_grad=True)
    step = lambda c: while_loop(lambda i, y: i < 1, lambda i, y: (i + 1, y[[2, 0, 0]] * w), (tensor(0), c))[1]
    function = lambda x: scan(lambda c, v: (step(c) * v, c.sin()), x, umbra.stack([x, x * .5]))[0]
    derivative = lambda x: umbra.autograd.grad(function(x).sin().sum(), x, create_graph=True)[0].exp()
    x = tensor([.4, -.7, 1.3], requires_grad=True)
    assert umbra.allclose(make_fx(derivative, tracing_mode="fake", _allow_non_fake_inputs=True)(x)(x), derivative(x))


@pytest.mark.parametrize("part", [lambda y, w: y * w, lambda y, w: y.detach() * w + y * w.detach()])
@pytest.mark.parametrize("order", [1, 2])
def test_a_checkpoint_in_a_loop_closes_over_what_needs_gradients(part, order):
    w, x = tensor([.1, .2, .3], requires_grad=True), tensor([.4, -.7, 1.3], requires_grad=True)
    def function(x):
        y = while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, checkpoint(lambda z: part(z, w).exp(), y, use_reentrant=False)), (tensor(0), x))[1]
        return y if order == 1 else umbra.autograd.grad(y.sin().sum(), x, create_graph=True)[0]
    for got, expected in zip(*[umbra.autograd.grad(run(x).cos().sum(), [x, w]) for run in (aot_function(function, nop), function)]):
        assert umbra.allclose(got, expected)


def test_functionalize_inside_a_captured_function_closes_over_tensors():
    w, x = tensor([.1, .2, .3], requires_grad=True), tensor([.4, -.7, 1.3], requires_grad=True)
    function = lambda x: umbra.func.functionalize(lambda y: y.sin() * w)(x)
    for got, expected in zip(*[umbra.autograd.grad(run(x).cos().sum(), [x, w]) for run in (aot_function(function, nop), function)]):
        assert umbra.allclose(got, expected)
