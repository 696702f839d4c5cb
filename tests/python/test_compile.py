"""torch.compile: captured calls give what the function gives, and another kind of call is captured anew."""
import warnings

import pytest

import umbra as torch


def counting():
    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return module.forward
    return backend, graphs


def test_one_capture_serves_calls_of_one_kind_and_sizes_become_symbols_with_the_second_one():
    backend, graphs = counting()
    compiled = torch.compile(lambda x, n=2: x * n, backend=backend)
    for size in (3, 3, 4, 5, 6):
        assert torch.equal(compiled(torch.ones(size)), torch.full((size,), 2.0))
    assert len(graphs) == 2
    assert torch.equal(compiled(torch.ones(3), 5), torch.full((3,), 5.0))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "aot_eager_default_partitioner"])
def test_gradients_and_writes_are_the_functions(backend):
    def f(x, y):
        y.add_(1)
        return (x * y).sin().sum()

    def observe(call):
        x, y = torch.arange(3.0).requires_grad_(), torch.ones(3)
        call(x, y).backward()
        return x.grad.tolist(), y.tolist()
    assert observe(torch.compile(f, backend=backend)) == observe(f)


def test_what_the_function_reads_from_outside_is_guarded():
    scale = 2.0
    layer = torch.nn.Dropout(1.0)
    compiled = torch.compile(lambda x: layer(x) * scale, backend="eager")
    x = torch.ones(3)
    assert compiled(x).tolist() == [0.0] * 3
    layer.eval()
    assert compiled(x).tolist() == [2.0] * 3
    scale = 3.0
    assert compiled(x).tolist() == [3.0] * 3


def test_a_compiled_module_is_the_module_in_all_else():
    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    compiled = torch.compile(module, backend="eager")
    assert list(compiled.state_dict())[0] == "_orig_mod.0.weight" and compiled._orig_mod is module
    x = torch.randn(4, 2)
    compiled(x).sum().backward()
    assert module[0].weight.grad is not None and int(module[1].num_batches_tracked) == 1
    compiled.eval()
    assert not module.training and torch.equal(compiled(x), module(x))


def test_where_data_decide_the_function_runs_as_it_is_or_is_refused():
    def f(x):
        return x + 1 if x.sum() > 0 else -x
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = torch.compile(f, backend="eager")
        assert compiled(torch.ones(2)).tolist() == [2.0, 2.0] and compiled(-torch.ones(2)).tolist() == [1.0, 1.0]
    with pytest.raises(torch._dynamo.exc.Unsupported, match="Data-dependent branching"):
        torch.compile(f, backend="eager", fullgraph=True)(torch.ones(2))


def test_a_function_that_is_captured_too_often_runs_as_it_is():
    backend, graphs = counting()
    compiled = torch.compile(lambda x, n: x * n, backend=backend, dynamic=False, recompile_limit=3)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for n in range(10):
            assert compiled(torch.ones(2), float(n)).tolist() == [n, n]
    assert len(graphs) == 3 and any("recompile_limit" in str(w.message) for w in seen)


def test_backends_are_refused_by_name():
    with pytest.raises(NotImplementedError, match="inductor"):
        torch.compile(lambda x: x)
    with pytest.raises(torch._dynamo.exc.InvalidBackend, match="nope"):
        torch.compile(lambda x: x, backend="nope")
    with pytest.raises(RuntimeError, match="Either mode or options"):
        torch.compile(lambda x: x, backend="eager", mode="default", options={})
