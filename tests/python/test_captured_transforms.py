"""Operators that take functions inside transforms, captured: the program has them as operators, with functions of what the levels are made of."""
import pytest

import umbra
import umbra.export
from umbra import func, nn
from umbra._functorch.aot_autograd import aot_function
from umbra._functorch.compilers import nop
from umbra._higher_order_ops import cond, while_loop
from umbra.fx.experimental.proxy_tensor import make_fx

WEIGHT = umbra.tensor([.4, .5, .6], dtype=umbra.float64, requires_grad=True)
INPUTS = [umbra.tensor(x, dtype=umbra.float64) for x in ([.3, .2, .9], [.1, -.2, -.3])]


def start():
    return umbra.zeros((), dtype=umbra.int64)


def chosen(x):
    return cond(x.sum() > 0, lambda y: y.exp() * x, lambda y: y.cos() * WEIGHT, (x,))


def repeated(x):
    return while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y.sin() * WEIGHT), (start(), x))[1]


def carried_later(x):
    ones = umbra.ones(3, dtype=umbra.float64)
    return while_loop(lambda i, y, z: i < 3, lambda i, y, z: (i + 1, y.sin() * x + z, z * y), (start(), x, ones))[1]


def nested(x):
    def body(i, y):
        return i + 1, cond(y.sum() > 0, lambda z: z.sin() * x, lambda z: z * z, (y,))
    return while_loop(lambda i, y: i < 2, body, (start(), x))[1]


def of_a_gradient(f):
    return func.grad(lambda y: (f(y) * y).sum())


def pulled(f):
    def function(x):
        y, back = func.vjp(f, x)
        return back(y.cos())[0]
    return function


TRANSFORMS = {
    "grad": of_a_gradient,
    "vjp": pulled,
    "twice": lambda f: pulled(pulled(f)),
    "jvp": lambda f: lambda x: func.jvp(f, (x,), (x * .5 + 1,))[1],
    "vmap": lambda f: lambda x: func.vmap(f)(umbra.stack([x, x * .5])).sum(0),
    "jacrev": lambda f: lambda x: func.jacrev(f)(x).sum(0),
    "jacfwd": lambda f: lambda x: func.jacfwd(f)(x).sum(0),
    "gradient of a batch": lambda f: lambda x: func.grad(lambda z: func.vmap(f)(umbra.stack([z, z * .5])).sum())(x),
}


def outcome(function, x):
    """What it gives, and its gradients."""
    x = x.clone().requires_grad_()
    y = function(x)
    found = umbra.autograd.grad((y * y.detach().cos()).sum(), [x, WEIGHT], allow_unused=True) if y.requires_grad else [None, None]
    return [y.detach()] + [umbra.zeros_like(x) if g is None else g for g in found]


def is_close(got, expected):
    return all(umbra.allclose(a, b) for a, b in zip(got, expected, strict=True))


CASES = [(function, transform) for function in (chosen, repeated, carried_later, nested) for transform in TRANSFORMS if (function, transform) != (nested, "jacrev")]


@pytest.mark.parametrize("of_tracked", [False, True])
@pytest.mark.parametrize("function, transform", CASES)
def test_a_recorded_transform_gives_what_it_gives(function, transform, of_tracked):
    transformed = TRANSFORMS[transform](function)
    example = INPUTS[0].clone().requires_grad_(of_tracked)
    recorded = make_fx(transformed, _allow_non_fake_inputs=True)(example)
    assert transform in ("vmap", "jacfwd", "gradient of a batch") or "higher_order" in recorded.code
    for x in INPUTS:
        assert umbra.allclose(recorded(x), transformed(x))


@pytest.mark.parametrize("function, transform", [case for case in CASES if case[0] is chosen or case[1] != "jacrev"])
def test_a_compiled_transform_has_the_gradients_of_the_run(function, transform):
    transformed = TRANSFORMS[transform](function)
    compiled = aot_function(transformed, nop)
    for x in INPUTS:
        assert is_close(outcome(compiled, x), outcome(transformed, x))


class Transformed(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.mark.parametrize("transform", ["grad", "jvp", "vmap", "jacrev", "jacfwd"])
def test_an_exported_transform_of_a_loop_is_a_loop(transform):
    transformed = TRANSFORMS[transform](carried_later)
    program = umbra.export.export(Transformed(transformed), (INPUTS[0],))
    assert "while_loop" in program.graph_module.code
    for x in INPUTS:
        assert umbra.allclose(program.module()(x), transformed(x))


@pytest.mark.parametrize("transformed", [
    func.hessian(lambda y: repeated(y).sum()), lambda x: func.vmap(func.grad(lambda y: repeated(y).sum()))(umbra.stack([x, x])),
    lambda x: func.jvp(pulled(chosen), (x,), (x,))[1],
], ids=["hessian", "gradients of a batch", "along a gradient"])
def test_a_gradient_inside_of_another_transform_is_refused(transformed):
    with pytest.raises(NotImplementedError, match="a gradient inside of another transform"):
        make_fx(transformed)(INPUTS[0])


@pytest.mark.parametrize("loop", [repeated, carried_later])
def test_a_second_derivative_of_a_loop_inside_of_vmap_is_refused(loop):
    with pytest.raises(NotImplementedError, match="cannot be differentiated inside of vmap"):
        make_fx(func.jacrev(pulled(loop)))(INPUTS[0])
    with pytest.raises(NotImplementedError, match="cannot be differentiated inside of vmap"):
        aot_function(func.jacrev(loop), nop)(INPUTS[0].clone().requires_grad_())


def test_a_loop_that_goes_on_for_some_of_a_batch_is_refused():
    def until_large(x):
        return while_loop(lambda y: y.sum() < 9, lambda y: (y * 2,), (x,))[0]
    with pytest.raises(NotImplementedError, match="goes on for some elements of a batch"):
        make_fx(func.vmap(until_large))(umbra.ones(2, 3))


def test_a_function_may_ask_what_is_differentiated():
    asked = []

    def body(i, y):
        asked.append(y.requires_grad)
        return i + 1, y.sin() if y.requires_grad else y.cos()

    def looped(x):
        return while_loop(lambda i, y: i < 2, body, (start(), x))[1]
    transformed = func.grad(lambda x: looped(x).sum())
    x = INPUTS[0]
    assert umbra.allclose(make_fx(transformed)(x)(x), transformed(x)) and any(asked)
