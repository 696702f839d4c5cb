"""Compiled functions with dynamic sizes: one capture serves every call that keeps its guards, others are captured anew."""
import pytest

import umbra as torch
from umbra._functorch.aot_autograd import aot_function, aot_module, aot_module_simplified
from umbra.functorch.compile import nop
from umbra.functorch.compile import default_partition, min_cut_rematerialization_partition


class Recorder:
    """A compiler that changes nothing and keeps what it was given."""

    def __init__(self):
        self.graphs, self.inputs, self.calls = [], [], []

    def __call__(self, graph, inputs):
        self.graphs.append(graph)
        self.inputs.append(inputs)

        def run(*args):
            self.calls.append(args)
            return graph(*args)
        return run


def compile(function, **options):
    forward, backward = Recorder(), Recorder()
    return aot_function(function, forward, backward, dynamic=True, **options), forward, backward


def numbers(*shape):
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape) / 7 - 1


def leaf(*shape):
    return numbers(*shape).requires_grad_()


def same(compiled, function, *inputs):
    """Values and gradients of both."""
    def observe(f):
        given = [x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x for x in inputs]
        result = f(*given)
        leaves = [r for r in (result if isinstance(result, (tuple, list)) else [result])]
        tensors = [r for r in leaves if isinstance(r, torch.Tensor) and r.requires_grad]
        if tensors:
            sum((t * (numbers(*t.shape) + 2)).sum() for t in tensors).backward()
        return ([r.tolist() if isinstance(r, torch.Tensor) else r for r in leaves],
                [x.grad.tolist() if isinstance(x, torch.Tensor) and x.grad is not None else None for x in given])
    assert observe(compiled) == observe(function)


@pytest.mark.parametrize("partition", [default_partition, min_cut_rematerialization_partition])
def test_one_capture_serves_all_sizes(partition):
    def f(x, w):
        y = (x @ w).relu().reshape(-1)
        return y.cumsum(0) * x.shape[0], (x.sin() / x.shape[1]).mean(1), x.t().flatten()
    compiled, forward, backward = compile(f, partition_fn=partition)
    for rows, inner, columns in [(3, 4, 5), (7, 4, 6), (2, 9, 3), (6, 5, 4)]:
        same(compiled, f, leaf(rows, inner), leaf(inner, columns))
    assert len(forward.graphs) == len(backward.graphs) == 1


def test_sizes_that_the_backward_needs_are_saved_as_numbers():
    compiled, forward, backward = compile(lambda x: x.mean())
    for shape in [(3, 4), (5, 6)]:
        x = leaf(*shape)
        compiled(x).backward()
        assert (x.grad * 5 * 6).sum().item() == pytest.approx(30)
        assert backward.calls[-1][:2] == shape
    assert [type(i).__name__ for i in backward.inputs[0]] == ["SymInt", "SymInt", "FakeTensor"]
    assert "return [mean, sym_size_int, sym_size_int_1]" in forward.graphs[0].code
    assert "def forward(self, sym_size_int, sym_size_int_1, tangents_1)" in backward.graphs[0].code


def test_numbers_come_before_tensors_in_the_backward_and_after_them_in_the_forward():
    compiled, forward, backward = compile(lambda x, y: (x.sin().view(-1) * 2).sum() * y.shape[0] + x * y.sum())
    compiled(leaf(3, 4), numbers(5)).sum().backward()
    kinds = [isinstance(i, torch.Tensor) for i in backward.inputs[0]]
    assert kinds == sorted(kinds)
    outputs = forward.graphs[0].graph.output_node().args[0]
    kinds = [isinstance(n.meta["val"], torch.Tensor) for n in outputs]
    assert kinds == sorted(kinds, reverse=True) and not kinds[-1]


def test_a_branch_on_a_size_is_a_guard():
    def f(x):
        return x * 2 if x.shape[0] > 5 else x * 3
    compiled, forward, _ = compile(f)
    for size in (3, 7, 4, 9, 5, 6):
        same(compiled, f, numbers(size))
    assert len(forward.graphs) == 2


def test_a_branch_of_the_backward_is_a_guard():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad * (2 if grad.shape[0] > 5 else 3)
    compiled, *_ = compile(Double.apply)
    for size in (3, 7, 4):
        same(compiled, Double.apply, leaf(size))


def test_a_guard_that_cannot_be_evaluated_is_not_kept():
    def f(x):
        return x * 2 if 12 // (x.shape[0] - 3) == 2 else x
    compiled, *_ = compile(f)
    same(compiled, f, numbers(9))
    for call in (f, compiled):
        with pytest.raises(ArithmeticError):
            call(numbers(3))
    same(compiled, f, numbers(4))


def test_sizes_of_zero_and_one_and_equal_ones_that_part_are_captured_anew():
    def f(x, y):
        return x.squeeze(0) + y.sum(), x.expand(4, x.shape[1]) if x.shape[0] == 1 else x
    compiled, forward, _ = compile(f)
    for first, second in [(3, 3), (5, 5), (3, 4), (1, 3), (1, 5), (3, 0), (0, 0)]:
        same(compiled, f, numbers(first, 2), numbers(second))
    assert len(forward.graphs) == 5


def test_integers_are_symbols_and_other_values_are_not():
    def f(x, n, scale, flag):
        return x[:n] * scale * n if flag else x + n, n + 1, scale
    compiled, forward, _ = compile(f)
    for n in (2, 3, 5):
        same(compiled, f, leaf(6), n, 1.5, True)
    assert len(forward.graphs) == 1
    for arguments in [(1, 1.5, True), (0, 1.5, True), (-2, 1.5, True), (2, 2.5, True), (2, 1.5, False), (7, 1.5, False)]:
        same(compiled, f, leaf(6), *arguments)
    assert compiled(numbers(6), 2, 1.5, True)[2] == 1.5


def test_values_that_are_no_tensors_are_inputs_of_the_graphs():
    for dynamic in (False, True):
        forward = Recorder()
        result = aot_function(lambda x, n, text, nothing: (x * n, n, text, nothing), forward, dynamic=dynamic)(leaf(3), 5, "a", None)
        assert result[1:] == [5, "a", None]
        assert forward.calls[0][1:] == (5, "a", None)
        assert [n.name for n in forward.graphs[0].graph.nodes if n.op == "placeholder"] == [f"primals_{i}" for i in range(1, 5)]


def test_sizes_are_results():
    def f(x):
        return x.shape[0] * x.shape[1], x * 2, x.shape[0] / 2, x.shape[0] > 2
    compiled, forward, _ = compile(f)
    for shape in [(3, 4), (5, 6)]:
        same(compiled, f, leaf(*shape))
    assert len(forward.graphs) == 1


def test_other_strides_are_captured_anew():
    compiled, forward, _ = compile(lambda x: x.as_strided((2, 2), (1, 2)) + x.stride(0))
    for x in (numbers(3, 4), numbers(4, 6)[:, ::2], numbers(4, 3).t(), numbers(5, 6)):
        assert compiled(x).tolist() == (x.as_strided((2, 2), (1, 2)) + x.stride(0)).tolist()
    assert len(forward.graphs) == 3


def test_views_of_inputs_are_views_of_the_call():
    def f(x):
        return x[1:], x.view(-1), x.t(), x.narrow(0, 1, x.shape[0] - 2)
    compiled, forward, _ = compile(f)
    for shape in [(3, 4), (5, 2)]:
        x = numbers(*shape)
        results = compiled(x)
        assert [r.shape for r in results] == [r.shape for r in f(x)]
        x.add_(1)
        assert [r.tolist() for r in results] == [r.tolist() for r in f(x)]
    assert len(forward.graphs) == 1


def test_inputs_that_share_written_memory_have_their_own_sizes():
    def f(x, y):
        y.add_(1)
        return x * 2
    compiled, *_ = compile(f)
    for cut in (1, 2, 3):
        base, plain = numbers(4, 3), numbers(4, 3)
        assert compiled(base[cut - 1:], base[:cut]).tolist() == f(plain[cut - 1:], plain[:cut]).tolist()
        assert base.tolist() == plain.tolist()


def test_sizes_that_only_the_run_tells():
    def f(x, mask):
        return (x * x)[mask].cumsum(0), mask.nonzero().shape[0]
    compiled, forward, _ = compile(f)
    for size in (4, 6):
        for limit in (0, 2, 4):
            same(compiled, f, leaf(size), torch.arange(size) < limit)
    assert len(forward.graphs) == 1


def test_a_view_whose_size_only_the_run_tells_is_a_view():
    def f(x, n):
        size = n.item()
        torch._check(size >= 0)
        torch._check(size <= x.shape[0])
        return x.narrow(0, 0, size)
    compiled, forward, _ = compile(f)
    for size in (2, 3):
        x = numbers(5)
        y = compiled(x, torch.tensor(size))
        x.add_(1)
        assert y.tolist() == x[:size].tolist()
    assert len(forward.graphs) == 1


def test_checks_of_data_are_made_at_each_call():
    def f(x, n):
        size = n.item()
        torch._check(size >= 2)
        return x.sum() + torch.ones(size).sum()
    compiled, *_ = compile(f)
    assert compiled(leaf(3), torch.tensor(4)).item() == f(leaf(3), torch.tensor(4)).item()
    with pytest.raises(RuntimeError, match="assertion failed"):
        compiled(leaf(3), torch.tensor(1))


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(numbers(4))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count.add_(x.shape[0])
        return (x * self.weight).sum(0)


def test_the_sizes_of_a_modules_state_are_numbers():
    forward = Recorder()
    module = Scale()
    compiled = aot_module(module, forward, Recorder(), dynamic=True)
    for rows in (3, 5, 7):
        module.weight.grad = None
        compiled(numbers(rows, 4)).sum().backward()
        assert module.weight.grad.tolist() == pytest.approx(numbers(rows, 4).sum(0).tolist())
    assert module.count.item() == 15
    assert len(forward.graphs) == 1
    assert forward.inputs[0][0].shape == (4,) and all(isinstance(s, int) for s in forward.inputs[0][0].shape)
    assert not isinstance(forward.inputs[0][-1].shape[0], int)


def test_a_module_is_compiled_for_fakes_with_symbolic_sizes():
    from umbra._subclasses import FakeTensorMode
    from umbra.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext
    mode = FakeTensorMode(shape_env=ShapeEnv())
    context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC, DimDynamic.STATIC])
    fake = mode.from_tensor(numbers(3, 4), symbolic_context=context)
    forward = Recorder()

    class Scaled(Scale):
        def forward(self, x):
            return super().forward(x),
    compiled = aot_module_simplified(Scaled(), [fake], forward, Recorder())
    assert len(forward.graphs) == 1
    for rows in (3, 6):
        assert compiled(numbers(rows, 4))[0].tolist() == Scale()(numbers(rows, 4)).tolist()
    assert len(forward.graphs) == 1


def test_a_compiler_that_asks_for_a_size_gets_calls_of_that_kind():
    seen = []

    def compiler(graph, inputs):
        seen.append(inputs[0].shape[0] > 5)
        factor = 10 if seen[-1] else 1
        return lambda *args: [graph(*args)[0] * factor]
    compiled = aot_function(lambda x: x + 1, compiler, dynamic=True)
    assert [compiled(torch.ones(size)).sum().item() / size for size in (3, 7, 4, 9)] == [2, 20, 2, 20]
    assert seen == [False, True]


def test_gradients_of_sizes_that_only_data_tell():
    def f(x, v, s):
        y = x.clone()
        y[y > 0.5] *= v
        return torch.cat([y[y > 1.5] * s, y, y[y > 2.5].repeat(2)])

    def gradients(call):
        inputs = [torch.arange(4.0).requires_grad_(), torch.full((1,), 2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)]
        call(*inputs).sum().backward()
        return [x.grad.tolist() for x in inputs]
    assert gradients(aot_function(f, nop, dynamic=True)) == gradients(f)
