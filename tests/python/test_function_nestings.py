"""Random nestings of what takes functions: cond, loops, checkpoints, custom functions, derivatives and transforms, captured in each way.

Values and first derivatives, of each function and of a derivative of it, equal those of the eager run, or the capture refuses. `UMBRA_NESTINGS=5000 pytest
tests/python/test_function_nestings.py` draws more, `UMBRA_NESTINGS_SEED=5000` others.
"""
import functools
import os
import random
import warnings

import pytest

import umbra
import umbra.export
from umbra import func, nn
from umbra._functorch.aot_autograd import aot_function
from umbra._functorch.compilers import nop
from umbra._higher_order_ops import associative_scan, cond, map, scan, while_loop
from umbra.autograd import Function
from umbra.fx.experimental.proxy_tensor import make_fx
from umbra.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

PROGRAMS = int(os.environ.get("UMBRA_NESTINGS", "60"))
FIRST_SEED = int(os.environ.get("UMBRA_NESTINGS_SEED", "0"))
BLOCKS = 6


class Plain(Function):
    """A gradient that is not that of what forward computes."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w.sum() + x.exp() * .1

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        with umbra.enable_grad():
            z = x.detach().requires_grad_()
            d, = umbra.autograd.grad((z.sin() * z).sum(), z)
        return g * w.sum() + d * g, (g * x).sum().expand_as(w)


class InParts(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, y):
        return x.sin() * y, x.cos()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return g * y * x.cos() * 2 - h * x.sin(), g * x.sin()

    @staticmethod
    def jvp(ctx, a, b):
        x, y = ctx.saved_tensors
        return a * y * x.cos() * 2 + b * x.sin(), -a * x.sin()


class OwnBatch(Function):
    @staticmethod
    def forward(x, k):
        return x.tanh() * k

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.k = inputs[1]
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx, g):
        y, = ctx.saved_tensors
        return g * (ctx.k - y * y / ctx.k) * 1.1, None

    @staticmethod
    def vmap(info, dims, x, k):
        return OwnBatch.apply(x, k), dims[0]

    @staticmethod
    def jvp(ctx, a, b):
        return a * ctx.saved_tensors[0] * 1.1


def written(x, w):
    y = x * 1.
    y.view(3, 1).add_(w.view(3, 1).sin())
    y[1:].mul_(x[:2])
    return y


def without_gradient(x):
    with umbra.no_grad():
        factor = x.sum().sigmoid()
    return x * factor


class Nesting:
    """A function of three numbers, and the tensors that it closes over."""

    def __init__(self, seed):
        self.draw, self.closed_over = random.Random(seed), []
        self.function = self.block(self.draw.choice([2, 2, 3, 3, 4]))
        self.inputs = [self.numbers() for _ in range(2)]

    def numbers(self):
        return umbra.tensor([self.draw.uniform(-1, 1) for _ in range(3)], dtype=umbra.float64)

    def leaf(self):
        k, w = round(self.draw.uniform(.5, 1.2), 2), (self.numbers() * .6).requires_grad_(self.draw.random() < .8)
        self.closed_over.append(w)
        return self.draw.choice([
            lambda x: x.sin() * k, lambda x: (x * k).tanh(), lambda x: x * x * .3 + x * k, lambda x: x.cumsum(0) * .4, lambda x: x * w + x,
            lambda x: (umbra.outer(x, w) @ x) * k, lambda x: written(x, w), lambda x: (x.float().double() * k).sin(), lambda x: umbra.softmax(x, 0) * x,
            lambda x: x.sort(descending=True).values * x, lambda x: umbra.where(x > .1, x * k, x.sin()), lambda x: Plain.apply(x, w),
            lambda x: sum(InParts.apply(x, x * k)), lambda x: InParts.apply(x, w)[0], lambda x: OwnBatch.apply(x, k), without_gradient,
            lambda x: x.detach() * w + x * w.detach(), lambda x: x[[2, 0, 0]] * x,
        ])

    def block(self, depth):
        draw, start = self.draw, lambda: umbra.zeros((), dtype=umbra.int64)
        if depth == 0 or draw.random() < .08:
            return self.leaf()
        f, g, n, k = self.block(depth - 1), self.block(depth - 1) if draw.random() < .4 else self.leaf(), draw.randrange(4), round(draw.uniform(-.4, .4), 2)

        def scanned(x):
            last, all_steps = scan(lambda c, v: ((f(c) * .5 + v * x[0]) * 1., g(c).sin()), x, umbra.stack([x, x * .5]))
            return last + all_steps[0] * all_steps[1]

        def with_gradient(x):
            y = f(x)
            return y * .5 + (umbra.autograd.grad(y.sin().sum(), x, create_graph=True, allow_unused=True)[0] * .3 if x.requires_grad and y.requires_grad else 0)

        def of_its_own(x):
            z = (x * 1.).detach().requires_grad_()
            with umbra.enable_grad():
                y = f(z)
                found = umbra.autograd.grad((y * x).sum(), z, create_graph=True, allow_unused=True)[0] if y.requires_grad else None
            return x * .5 + (0 if found is None else found * .3)

        def pulled(x):
            y, back = func.vjp(f, x)
            return back(y.cos())[0] * .3

        def pushed(x):
            y, tangent = func.jvp(f, (x,), (x * .5 + 1,))
            return y * .5 + tangent * .3
        policy = functools.partial(create_selective_checkpoint_contexts, lambda context, op, *args, **kwargs: (len(str(op)) + n) % 2 == 0)
        return draw.choice([
            lambda x: g(f(x)), lambda x: cond(x.sum() > k, lambda y: f(y) * 1., lambda y: g(y) * 1., (x,)),
            lambda x: while_loop(lambda i, y: i < n, lambda i, y: (i + 1, f(y) * .9), (start(), x))[1],
            lambda x: while_loop(lambda i, y: (i < 3) & (y.sum() < 2), lambda i, y: (i + 1, f(y) * .7 + x * .3), (start(), x))[1],
            lambda x: while_loop(lambda i, y, z: i < 2, lambda i, y, z: (i + 1, f(y) * .9 + z, y * z), (start(), x, umbra.ones(3).double()))[1],
            scanned, lambda x: map(lambda v, y: f(v) * 1. + y * .1, umbra.stack([x, x * .5]), x).sum(0),
            lambda x: associative_scan(lambda a, b: f(a) * .3 + b, umbra.stack([x, x * .5, x.sin()]), 0, combine_mode="generic")[-1],
            lambda x: checkpoint(f, x, use_reentrant=False), lambda x: checkpoint(f, x, use_reentrant=False), lambda x: checkpoint(f, x, use_reentrant=False, context_fn=policy),
            with_gradient, of_its_own, lambda x: func.grad(lambda y: (f(y) * y).sum())(x) * .3, pulled, pushed, lambda x: func.functionalize(f)(x),
            lambda x: func.vmap(f)(umbra.stack([x, x * .5])).sum(0) * .5, lambda x: func.jacrev(f)(x).sum(0) * .3, lambda x: func.hessian(lambda y: f(y).sum())(x).sum(0) * .3,
        ])

    def derivative(self, x):
        y = self.function(x)
        wanted = [x] + [w for w in self.closed_over if w.requires_grad]
        found = umbra.autograd.grad((y * y).sum(), wanted, create_graph=True, allow_unused=True) if y.requires_grad else ()
        return y + sum((g.sin() * .3).sum() for g in found if g is not None)

    def outcome(self, function, x, gradients):
        """What the function gives, and its gradients; zeros where it has none, as where what it calls may have some and has not."""
        x = x.clone().requires_grad_()
        y = function(x)
        if not gradients:
            return [y.detach()]
        wanted = [x] + [w for w in self.closed_over if w.requires_grad]
        found = umbra.autograd.grad((y * y.detach().cos()).sum(), wanted, allow_unused=True) if y.requires_grad else [None] * len(wanted)
        return [y.detach()] + [umbra.zeros_like(w) if g is None else g for g, w in zip(found, wanted)]


class Module(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def recorded(mode):
    return lambda function, x: make_fx(function, tracing_mode=mode, _allow_non_fake_inputs=True)(x)


#: (how, of the derivative, with gradients)
WAYS = {"compiled": (lambda f, x: umbra.compile(f, backend="aot_eager"), False, True), "dynamic": (lambda f, x: umbra.compile(f, backend="aot_eager", dynamic=True), True, True),
        "ahead of time": (lambda f, x: aot_function(f, nop), False, True), "ahead of time, derivative": (lambda f, x: aot_function(f, nop), True, True),
        "real": (recorded("real"), False, False), "fake": (recorded("fake"), True, False), "symbolic": (recorded("symbolic"), True, False),
        "exported": (lambda f, x: umbra.export.export(Module(f), (x,)).module(), False, False)}


def difference(nesting, way):
    """None where there is nothing to compare with or the capture refuses; else whether what it gives differs."""
    capture, of_derivative, gradients = WAYS[way]
    function = nesting.derivative if of_derivative else nesting.function
    try:
        expected = [nesting.outcome(function, x, gradients) for x in nesting.inputs]
        captured = capture(function, nesting.inputs[0].clone().requires_grad_())
        got = [nesting.outcome(captured, x, gradients) for x in nesting.inputs]
    except (RuntimeError, TypeError, ValueError, AttributeError):
        return None
    if not all(t.isfinite().all() for one in expected for t in one):
        return None
    return not all(len(a) == len(b) and all(umbra.allclose(s, t, rtol=1e-5) for s, t in zip(a, b)) for a, b in zip(got, expected))


@pytest.mark.parametrize("block", range(BLOCKS))
def test_captured_nestings_equal_the_eager_run_or_refuse(block):
    wrong, equal = [], 0
    for seed in range(FIRST_SEED + block * PROGRAMS // BLOCKS, FIRST_SEED + (block + 1) * PROGRAMS // BLOCKS):
        nesting = Nesting(seed)
        for way in WAYS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                differs = difference(nesting, way)
            if differs:
                wrong.append((seed, way))
            equal += differs is False
    assert not wrong
    assert equal > PROGRAMS // BLOCKS
