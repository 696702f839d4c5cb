"""Random chains of views and writes: a compiled function gives the function's values, gradients and errors."""
import warnings

import pytest
from random_writes import Program, observe

import umbra as torch
from umbra.functorch.compile import aot_function, nop


def close(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(close(x, y) for x, y in zip(a, b))
    if isinstance(a, float):
        return a == b or (a != a and b != b) or abs(a - b) <= 1e-4 * max(abs(a), abs(b), 1)
    return a == b


def both(seed, length, dynamic, keep=False):
    program = Program(torch, seed, length)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eager = observe(torch, program, program, seed)
        compiled = observe(torch, program, aot_function(program, nop, dynamic=dynamic, keep_inference_input_mutations=keep), seed)
    return program, eager, compiled


def agree(eager, compiled):
    """The same, or refused: the backward pass is captured with the forward pass, so that its errors come sooner."""
    if isinstance(compiled, tuple):
        kind, text = compiled
        if kind == "NotImplementedError" and "cannot be captured" in text:
            return True
        expected = eager[1] if isinstance(eager, tuple) else eager.get("backward")
        return expected is not None and text[:70] == expected[:70]
    return close(eager, compiled)


@pytest.mark.parametrize("dynamic, keep", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("length", [2, 4, 8, 12])
def test_random_programs(length, dynamic, keep):
    for seed in range(150):
        program, eager, compiled = both(seed, length, dynamic, keep)
        assert agree(eager, compiled), (seed, program.steps, eager, compiled)


# ---- the size of memory ----

def resized(function, x, **options):
    codes = []

    def compiler(graph, inputs):
        codes.append(graph.code.strip().splitlines()[1:])
        return graph
    return aot_function(function, compiler, keep_inference_input_mutations=True, **options)(x), codes


def test_the_memory_of_an_input_gets_another_size():
    def shrink(a):
        out = a.sin()
        torch.ops.inductor.resize_storage_bytes_(a, 0)
        return out
    x = torch.ones(8)
    result, ((first, second, last),) = resized(shrink, x)
    assert "sin" in first and "resize_storage_bytes_" in second and "return" in last
    assert torch.allclose(result, torch.ones(8).sin()) and x.untyped_storage().nbytes() == 0

    def grow(a):
        torch.ops.inductor.resize_storage_bytes_(a, 32)
        with torch.no_grad():
            a.copy_(torch.ones(8))
        return a.sin()
    result, _ = resized(grow, x)
    assert torch.allclose(result, torch.ones(8).sin()) and x.tolist() == [1] * 8


def test_memory_that_is_not_there_is_not_read_in_the_backward():
    def shrink(a):
        out = a.sin()
        torch.ops.inductor.resize_storage_bytes_(a, 0)
        return out
    x = torch.ones(8, requires_grad=True)
    result, _ = resized(shrink, x)
    with pytest.raises(RuntimeError, match="out of bounds for a storage of 0 bytes"):
        result.sum().backward()


def test_the_memory_of_what_was_written_before_keeps_its_size():
    def shrink(a):
        a.mul_(2)
        torch.ops.inductor.resize_storage_bytes_(a, 0)
        return a
    with pytest.raises(NotImplementedError, match="written before"):
        resized(shrink, torch.ones(8))


def transposed():
    return torch.arange(12.0).reshape(4, 3).t()


def filled(x):
    x.masked_fill_(x > 5, 0.0)
    return x.sin()


@pytest.mark.parametrize("rest", [
    lambda y: (y.flatten(0, 1), y.fill_(3.0))[0] * 1,
    lambda y: (y.t().reshape(-1).fill_(3.0), y * 1)[1],
    lambda y: (y.t().view(-1).fill_(3.0), y * 1)[1],
    lambda y: (y.as_strided([4], [1], 0).fill_(3.0), y * 1)[1],
])
def test_what_is_a_view_follows_from_how_the_caller_sees_a_written_tensor_lie(rest):
    function = lambda x: rest(filled(x))  # noqa: E731
    expected = function(transposed())
    assert torch.equal(aot_function(function, nop)(transposed()), expected)
    assert torch.equal(torch.compile(function, backend="aot_eager")(transposed()), expected)
