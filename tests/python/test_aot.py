"""Ahead-of-time autograd from Python."""
import pytest

import umbra
from umbra.functorch.compile import aot_function, aot_module, default_partition, min_cut_rematerialization_partition, nop


@pytest.mark.parametrize("partition", [default_partition, min_cut_rematerialization_partition])
def test_function_and_gradients(partition):
    graphs = []

    def compiler(module, inputs):
        graphs.append(module)
        return module

    def f(x, y):
        return (x.sin() * y).sum()
    compiled = aot_function(f, fw_compiler=compiler, bw_compiler=compiler, partition_fn=partition)
    x, y = (umbra.randn(3, requires_grad=True) for _ in range(2))
    compiled(x, y).backward()
    a, b = x.detach().clone().requires_grad_(), y.detach().clone().requires_grad_()
    f(a, b).backward()
    assert umbra.allclose(x.grad, a.grad) and umbra.allclose(y.grad, b.grad)
    assert len(graphs) == 2 and "primals_1" in graphs[0].code and "tangents_1" in graphs[1].code


def test_module():
    net = umbra.nn.Linear(3, 2)
    compiled = aot_module(net, nop)
    x = umbra.randn(4, 3)
    assert umbra.allclose(compiled(x), net(x))
    compiled(x).sum().backward()
    assert net.weight.grad is not None


def test_mutated_input_and_nested_arguments():
    def f(x, options):
        x.add_(1)
        return [x * options["factor"]], options["other"].cos()
    compiled = aot_function(f, nop)
    x, other = umbra.zeros(2), umbra.zeros(2)
    (scaled,), cosine = compiled(x, {"factor": 3, "other": other})
    assert umbra.equal(x, umbra.ones(2)) and umbra.equal(scaled, umbra.full((2,), 3.0)) and umbra.equal(cosine, umbra.ones(2))


def test_the_result_of_each_signature_has_its_own_structure():
    def f(x):
        return {"few": x * 2} if x.shape[0] < 3 else (x * 3, ["many", x.shape[0], None])
    compiled = aot_function(f, nop)
    for _ in range(2):
        assert umbra.equal(compiled(umbra.ones(2))["few"], umbra.full((2,), 2.0))
        tripled, rest = compiled(umbra.ones(4))
        assert umbra.equal(tripled, umbra.full((4,), 3.0)) and rest == ["many", 4, None]


def test_a_module_is_captured_for_each_training_flag_and_reads_its_parameters_at_each_call():
    net = umbra.nn.Sequential(umbra.nn.Linear(3, 3), umbra.nn.Dropout(0.5))
    compiled = aot_module(net, nop)
    x = umbra.ones(64, 3)
    assert (compiled(x) == 0).any()
    net.eval()
    assert umbra.equal(compiled(x), net(x))
    net[1].train()
    assert (compiled(x) == 0).any()
    net.eval()
    net[0].weight = umbra.nn.Parameter(umbra.zeros(3, 3))
    assert umbra.equal(compiled(x), net(x))


def test_cond_in_a_compiled_function():
    weight = umbra.nn.Parameter(umbra.tensor([2.0, 3.0]))

    def f(x):
        return umbra.cond(x.sum() > 0, lambda v: {"y": v.sin() * weight}, lambda v: {"y": v * v}, (x,))["y"]
    compiled = aot_function(f, nop)
    for sign in (1, -1):
        results = []
        for function in (f, compiled):
            x = umbra.tensor([1.0 * sign, 2.0 * sign]).requires_grad_()
            y = function(x)
            results.append([y, *umbra.autograd.grad(y.sum(), [x, weight], allow_unused=True)])
        for a, b in zip(*results):
            assert umbra.equal(umbra.zeros(2) if a is None else a, b)
