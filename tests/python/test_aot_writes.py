"""Random chains of views and writes: a compiled function gives the function's values, gradients and errors."""
import warnings

import pytest
from random_writes import Program, observe

import umbra as torch
from umbra.functorch.compile import aot_function, default_partition, nop


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


def outcome(function, *inputs):
    results = function(*inputs)
    return [[(list(t.shape), t.tolist(), t.requires_grad) for t in tensors] for tensors in (results, inputs)]


def compiled_as_it_runs(function, make):
    """What a compiled function gives and leaves of its arguments, and what the function itself does."""
    return outcome(torch.compile(function, backend="aot_eager"), *make()), outcome(function, *make())


@pytest.mark.filterwarnings("ignore:torch.compile")
def test_a_write_with_gradients_to_memory_that_is_shared_without_being_a_view():
    weight = torch.ones(3, requires_grad=True)

    def f(x, y):
        y.mul_(weight.sum())
        return [x * 2]

    def make():
        x = torch.arange(3.0)
        return x, x.detach()
    compiled, eager = compiled_as_it_runs(f, make)
    assert compiled == eager and compiled[1][1][2] and not compiled[1][0][2]
    with pytest.raises(NotImplementedError, match="shares memory with another one and is no view of it"):
        aot_function(f, nop)(*make())


@pytest.mark.filterwarnings("ignore:torch.compile")
def test_a_write_to_a_part_of_an_expanded_argument_shows_in_all_of_it():
    def f(x):
        x.diagonal().mul_(torch.tensor([2.0, 3.0]))
        return [x + 1]

    def make():
        return (torch.arange(3.0).expand(2, 3),)
    compiled, eager = compiled_as_it_runs(f, make)
    assert compiled == eager and eager[1][0][1] == [[0.0, 3.0, 2.0]] * 2
    with pytest.raises(NotImplementedError, match="writes elements that share memory"):
        aot_function(f, nop)(*make())


def test_an_argument_gets_new_sizes_while_a_view_of_it_is_written():
    def f(x, y):
        x.unsqueeze_(0)
        y[0] = 7.0
        return [y + 1]

    def make():
        x = torch.arange(3.0)
        return x, x[...]
    compiled, eager = compiled_as_it_runs(f, make)
    assert compiled == eager and eager[1][0][0] == [1, 3]


@pytest.mark.parametrize("tracked", [False, True])
def test_views_from_before_their_base_became_a_view_of_itself(tracked):
    def f(x):
        square = x * x
        before, moved = square[:, 1:3], square.movedim(0, -1)
        square.t_()
        return [before, moved, square[1:3], square]

    def make():
        return (torch.arange(5.0).reshape(1, 5).requires_grad_(tracked),)
    compiled, eager = compiled_as_it_runs(f, make)
    assert compiled == eager
    if tracked:
        (x,) = make()
        sum(t.sum() for t in torch.compile(f, backend="aot_eager")(x)).backward()
        (y,) = make()
        sum(t.sum() for t in f(y)).backward()
        assert torch.equal(x.grad, y.grad)


def test_a_view_that_changes_its_metadata_after_a_write_is_read_when_it_is_needed():
    """It is behind the write when its metadata change, so its contents are made anew where they are first read."""
    graphs = []

    def keep(graph, inputs):
        graphs.append(graph)
        return graph

    def function(a, b, c, d):
        b.add_(1)
        d.unsqueeze_(0)
        return a + c + d, b.view(-1)

    def call(f):
        bases = [torch.ones(2, 2, requires_grad=True) for _ in range(2)]
        first, second = (base.add(1) for base in bases)
        arguments = [first.view(-1), second.view(-1), first.view(-1), second.view(-1)]
        results = f(*arguments)
        (results[0].sum() + (results[1] * 3).sum()).backward()
        return [*results, *arguments, *(base.grad for base in bases)]
    compiled = aot_function(function, fw_compiler=keep, bw_compiler=nop, partition_fn=default_partition)
    for expected, found in zip(call(function), call(compiled)):
        assert expected.shape == found.shape and torch.equal(expected, found)
    order = [node.name for node in graphs[0].graph.nodes if node.op == "call_function"]
    assert order == ["clone", "as_strided", "add", "as_strided_scatter", "add_1", "as_strided_5", "unsqueeze_1", "add_2", "as_strided_14", "view_2"]


SIDE_BY_SIDE = {
    "rows": (lambda x: (x.view(4, 4)[:2], x.view(4, 4)[2:]), True),
    "columns": (lambda x: (x.view(4, 4)[:, :2], x.view(4, 4)[:, 2:]), True),
    "interleaved": (lambda x: (x[::2], x[1::2]), True),
    "crossing": (lambda x: (x.as_strided((2, 2), (5, 1), 0), x.as_strided((2, 2), (5, 1), 5)), False),
    "nothing": (lambda x: (x[:0], x[:]), True),
}


@pytest.mark.parametrize("name", SIDE_BY_SIDE)
@pytest.mark.parametrize("gradients", [False, True])
def test_parts_of_one_tensor_are_inputs_of_their_own_unless_they_overlap(name, gradients):
    parts, apart = SIDE_BY_SIDE[name]
    codes = []

    def keep(graph, _):
        codes.append(graph.code)
        return graph

    def function(a, b):
        a.mul_(3)
        b.add_(2)
        return (a.sin().sum() + b.cos().sum()).view(1)

    def call(f):
        leaf = torch.arange(16.).requires_grad_(gradients)
        whole = leaf * 1
        a, b = parts(whole)
        result = f(a, b)
        found = [result, a, b, whole]
        if gradients:
            (result.sum() + (a * 5).sum() + (whole * whole).sum()).backward()
            found.append(leaf.grad)
        return found
    for expected, found in zip(call(function), call(aot_function(function, keep, nop))):
        assert torch.allclose(expected, found)
    assert ("as_strided_scatter" in codes[0]) != apart


def test_parts_that_lie_side_by_side_in_one_call_may_overlap_in_another():
    def function(a, b):
        a.mul_(3)
        return b + 1
    compiled = aot_function(function, nop, dynamic=True)
    for end in (4, 8):
        whole = torch.arange(10.)
        assert torch.equal(compiled(whole[:end], whole[5:9]), whole[5:9] + 1)


def test_an_input_that_becomes_the_view_of_itself_that_it_is_is_unchanged():
    codes = []

    def keep(graph, _):
        codes.append(graph.code)
        return graph

    def function(a, b):
        before = a * 3
        a.t_()
        return before + a * b
    x = torch.ones(4, requires_grad=True)
    a = x * 2
    history = a.grad_fn
    result = aot_function(function, keep, nop)(a, a.detach())
    assert a.grad_fn is history and "view" not in codes[0]
    result.sum().backward()
    assert x.grad.tolist() == [10.0] * 4


def test_a_view_of_an_input_that_the_function_makes_a_leaf():
    def function(a, w):
        view = a.view(-1)
        view.requires_grad_()
        return view, w * 2
    for w in (torch.ones(2), torch.ones(2, requires_grad=True)):
        a = torch.ones(2, 2)
        view, _ = aot_function(function, nop)(a, w)
        assert view.requires_grad and view.is_leaf and view._base is a and not a.requires_grad


def test_a_tensor_that_takes_the_place_of_an_input_is_written_without_a_copy():
    codes = []

    def keep(graph, _):
        codes.append(graph.code)
        return graph

    def function(a, b):
        with torch.no_grad():
            a.set_(b)
            b.mul_(2)
        return a + b
    a, b = torch.ones(3), torch.arange(3.)
    result = aot_function(function, keep, nop, keep_inference_input_mutations=True)(a, b)
    assert result.tolist() == [0, 4, 8] and a.tolist() == b.tolist() == [0, 2, 4] and "clone" not in codes[0]


def test_second_derivatives_are_refused_where_the_backward_writes_what_needs_gradients():
    class Writes(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.y = y
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            with torch.no_grad():
                ctx.y.zero_()
            return gradient * 2, None
    x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    result = aot_function(Writes.apply, nop)(x.clone(), y.clone()).sum()
    with pytest.raises(RuntimeError, match="input mutations with requires_grad in backward for create_graph=True"):
        torch.autograd.grad(result, x, create_graph=True)
