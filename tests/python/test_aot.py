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
