"""Random programs of views and writes through the layers: each gives what the eager run gives, or refuses."""
import random
import warnings

import pytest
from random_writes import Program, make_inputs, numbers

import umbra as torch
from umbra.fx.experimental.proxy_tensor import make_fx

SEEDS = 120


class Straight(Program):
    """A program that an error ends."""

    def __call__(self, *inputs):
        rng = random.Random(self.seed)
        *tensors, weight = inputs
        self.steps = []
        for _ in range(self.length):
            self.step(rng, tensors, weight)
        return tuple(t * 1 for t in tensors)


def programs():
    """Those that run, with plain inputs for them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # outputs of other sizes
        for seed in range(SEEDS):
            program = Straight(torch, seed, 2 + seed % 6)
            inputs = [t.detach() for t in make_inputs(torch, random.Random(seed))[1]]
            try:
                program(*[t.clone() for t in inputs])
            except RuntimeError:
                continue
            yield program, inputs


def like(inputs):
    """Other numbers that lie as the inputs do."""
    return [torch.empty_strided(t.shape, t.stride()).copy_(t * 0.7 + 0.1) for t in inputs]


def same(program, got, expected):
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5, msg=lambda text: f"{program.steps}\n{text}")


def test_tangents_and_gradients_are_transposes_of_one_another():
    checked = 0
    for program, inputs in programs():
        tangents = [numbers(torch, t.shape, 3.0) for t in inputs]

        def on_copies(*arguments):
            return program(*[t * 1 for t in arguments])
        try:
            outputs, pull = torch.func.vjp(on_copies, *[t.clone() for t in inputs])
            weights = tuple(numbers(torch, t.shape, 1.0) for t in outputs)
            gradients = pull(weights)
            changes = torch.func.jvp(on_copies, tuple(t.clone() for t in inputs), tuple(tangents))[1]
        except (RuntimeError, NotImplementedError):
            continue
        if any("without grad" in step or "detach" in step or "out" in step for step in program.steps):
            continue  # what is cut off has tangents, and no gradients
        forward = sum((t * w).sum() for t, w in zip(changes, weights))
        backward = sum((t * g).sum() for t, g in zip(tangents, gradients))
        torch.testing.assert_close(forward, backward, rtol=1e-3, atol=1e-3, msg=lambda text: f"{program.steps}\n{text}")
        checked += 1
    assert checked > SEEDS // 4


@pytest.mark.parametrize("capture", [
    lambda program, inputs: make_fx(program)(*inputs),
    lambda program, inputs: make_fx(program, tracing_mode="symbolic")(*inputs),
    lambda program, inputs: make_fx(torch.func.functionalize(program))(*inputs),
    lambda program, inputs: torch.compile(program, backend="aot_eager"),
], ids=["recorded", "with symbols", "functional", "compiled"])
def test_a_captured_program_gives_and_writes_what_the_eager_one_does(capture):
    refused = checked = 0
    for program, inputs in programs():
        eager, captured = like(inputs), like(inputs)
        expected = program(*eager)
        try:
            got = capture(program, [torch.empty_strided(t.shape, t.stride()).copy_(t) for t in inputs])(*captured)
        except NotImplementedError:
            refused += 1
            continue
        same(program, [*got, *captured], [*expected, *eager])
        checked += 1
    assert checked > SEEDS // 2 and refused < SEEDS // 8
