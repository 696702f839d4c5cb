"""torch.compile: what a graph would not do again runs as it is; modules compiled in place; sizes said to be symbols."""
import copy
import pickle
import warnings

import pytest

import umbra as torch

pytestmark = pytest.mark.filterwarnings("ignore:torch.compile")


@torch.compiler.disable
def not_captured(x):
    return x + 100


@torch.compiler.disable(recursive=False)
def not_captured_itself(x):
    return x + 100


def prints(x):
    print("printed")
    return x + 1


def breaks(x):
    torch._dynamo.graph_break()
    return x + 1


def calls_disabled(x):
    return not_captured(x) * 2


def calls_another_disabled(x):
    return not_captured_itself(x) * 2


def swallows(x):
    try:
        print("printed")
    except Exception:
        return x
    return x + 1


@pytest.mark.parametrize("function", [prints, breaks, calls_disabled, calls_another_disabled, swallows])
def test_what_a_graph_would_not_do_again_runs_as_it_is_or_is_refused(function):
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(function, backend="eager", fullgraph=True)(torch.ones(2))
    compiled = torch.compile(function, backend="eager")
    assert torch.equal(compiled(torch.ones(2)), function(torch.ones(2))) and torch.equal(compiled(torch.zeros(2)), function(torch.zeros(2)))


def test_a_compiled_function_prints_at_every_call(capsys):
    compiled = torch.compile(prints, backend="eager")
    for _ in range(3):
        compiled(torch.ones(2))
    assert capsys.readouterr().out.count("printed") == 3


def test_a_disabled_module_is_not_captured():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch._dynamo.disable(torch.nn.ReLU())

        def forward(self, x):
            return self.inner(x) + 1
    with pytest.raises(torch._dynamo.exc.Unsupported, match="disable"):
        torch.compile(Model(), backend="eager", fullgraph=True)(torch.ones(2))


def test_an_operator_that_refuses_its_arguments_is_an_error_of_the_capture():
    with pytest.raises(torch._dynamo.exc.TorchRuntimeError, match="must match the size"):
        torch.compile(lambda x, y: x + y, backend="eager")(torch.ones(2), torch.ones(3))

    def raises(x):
        raise RuntimeError("the user's")
    with pytest.raises(RuntimeError, match="the user's") as caught:
        torch.compile(raises, backend="eager")(torch.ones(2))
    assert type(caught.value) is RuntimeError


def test_a_module_is_compiled_in_place():
    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return module.forward
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    expected = model(torch.ones(1, 2))
    names = list(model.state_dict())
    model.compile(backend=backend)
    assert torch.equal(model(torch.ones(1, 2)), expected) and torch.equal(model(torch.ones(1, 2)), expected) and len(graphs) == 1
    assert list(model.state_dict()) == names and type(model) is torch.nn.Sequential
    model(torch.ones(1, 2)).sum().backward()
    assert model[0].weight.grad is not None
    model[0].weight.data.zero_()
    for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(copied(torch.ones(1, 2)), copied[0].bias.relu()[None]) and len(graphs) == 1


def test_a_size_that_is_marked_is_a_symbol_from_the_start():
    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return module.forward
    compiled, x = torch.compile(lambda x: x * x.shape[0], backend=backend), torch.ones(4)
    torch._dynamo.mark_dynamic(x, 0)
    assert compiled(x).tolist() == [4] * 4 and compiled(torch.ones(5)).tolist() == [5] * 5 and len(graphs) == 1


def test_what_was_captured_is_explained():
    found = torch._dynamo.explain(lambda x: x.sin() + 1)(torch.ones(2))
    assert (found.graph_count, found.graph_break_count, found.op_count) == (1, 0, 2) and "Graph Count: 1" in str(found)
    assert torch._dynamo.explain(prints)(torch.ones(2)).graph_break_count == 1


def test_modes_that_nobody_knows_are_refused():
    with pytest.raises(RuntimeError, match="Unrecognized mode=nope"):
        torch.compile(lambda x: x, mode="nope")


def test_a_compiled_function_inside_a_capture_is_part_of_it_or_refused():
    from umbra.functorch.compile import aot_function, nop
    from umbra.fx.experimental.proxy_tensor import make_fx

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.function = torch.compile(lambda x: x.sin() + 1, backend="eager")

        def forward(self, x):
            return self.function(x) * 2
    for known in (False, True):
        model = Model()
        if known:
            model(torch.ones(2))
        program = torch.export.export(model, (torch.ones(2),))
        assert [str(node.target) for node in program.graph.nodes if node.op == "call_function"] == ["aten.sin.default", "aten.add.Tensor", "aten.mul.Tensor"]
        assert torch.allclose(aot_function(model, nop)(torch.zeros(2)), torch.full((2,), 2.0))
        for trace in (make_fx(model), torch.fx.symbolic_trace, lambda x: torch.jit.trace(model, (x,))):
            with pytest.raises(RuntimeError, match="dynamo-optimized function"):
                trace(model if trace is torch.fx.symbolic_trace else torch.ones(2))


@pytest.mark.parametrize("change", [lambda x: x.t_(), lambda x: x.unsqueeze_(0), lambda x: x.transpose_(0, 1)])
def test_an_argument_that_becomes_a_view_of_itself(change):
    def function(x):
        change(x)
        return x.sin()

    def call(f):
        x = torch.arange(6.0).reshape(2, 3).requires_grad_()
        y = x * 1
        result = f(y)
        (result.square().sum() + (y * 3).sum()).backward()
        return result, y, x.grad
    with pytest.raises(torch._dynamo.exc.Unsupported):
        call(torch.compile(function, backend="aot_eager", fullgraph=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = call(torch.compile(function, backend="aot_eager"))
    for a, b in zip(found, call(function)):
        assert a.shape == b.shape and torch.allclose(a, b)


def test_the_older_name_of_compile():
    x = torch.ones(2)
    assert torch._dynamo.optimize("eager")(lambda x: x + 1)(x).tolist() == [2, 2]
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch._dynamo.optimize("eager", nopython=True)(prints)(x)


def test_a_profiler_and_a_backend_that_compiles_are_not_disturbed():
    import cProfile
    inner = torch.compile(lambda x: x + 1, backend="eager")
    scale = [2.0]

    def late(x):
        return x * scale[0]
    late_by_name = {"late": late}

    def backend(module, inputs):
        inner(torch.ones(3))
        return module
    profile = cProfile.Profile()
    profile.enable()
    compiled = torch.compile(lambda x: late_by_name["late"](x), backend=backend)
    compiled(torch.ones(2))
    sorted([2, 1])
    profile.disable()
    assert any("sorted" in str(entry.code) for entry in profile.getstats())
    scale[0] = 3.0
    assert compiled(torch.ones(2)).tolist() == [3, 3]


def test_a_break_that_is_an_error_for_a_part_of_the_function():
    def breaks(x):
        torch._dynamo.graph_break()
        return x + 1

    def asks_inside(x):
        with torch._dynamo.error_on_graph_break(True):
            return breaks(x)

    @torch._dynamo.error_on_graph_break(False)
    def allows(x):
        return breaks(x)

    def asks_around(x):
        with torch._dynamo.error_on_graph_break(True):
            return allows(x)
    with torch._dynamo.error_on_graph_break(True):  # nothing is captured here
        assert torch.compile(breaks, backend="eager")(torch.ones(1)).item() == 2
    with pytest.raises(torch._dynamo.exc.Unsupported, match="graph_break"):
        torch.compile(asks_inside, backend="eager")(torch.ones(1))
    assert torch.compile(asks_around, backend="eager")(torch.ones(1)).item() == 2


def test_a_backend_that_fails_may_be_left_out():
    def fails(module, inputs):
        raise ValueError("no")
    with torch._dynamo.config.patch(suppress_errors=True), pytest.warns(UserWarning, match="the backend failed"):
        assert torch.compile(lambda x: x * 2, backend=fails)(torch.ones(1)).item() == 2


def test_checkpoints_are_captured_whole():
    from umbra.utils.checkpoint import checkpoint
    compiled = torch.compile(lambda x: checkpoint(lambda y: y.sin().cos(), x, use_reentrant=False) * 2, backend="eager", fullgraph=True)
    x, y = (torch.arange(3.0).requires_grad_() for _ in range(2))
    compiled(x).sum().backward()
    (y.sin().cos() * 2).sum().backward()
    torch.testing.assert_close(x.grad, y.grad)


def test_what_allow_in_graph_takes():
    assert torch._dynamo.allow_in_graph([len, abs]) == [len, abs]
    with pytest.raises(AssertionError, match="allow_in_graph expects a callable"):
        torch.compiler.allow_in_graph(5)
