"""torch.jit.trace: what is recorded, and what the program does when it is run again."""
import io
import warnings

import pytest

import umbra as torch
from script_files import reloaded
from umbra import nn

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.act = nn.ReLU()
        self.second = nn.Linear(4, 2)

    def forward(self, x):
        return self.second(self.act(self.first(x)))


def kinds(graph):
    return [node.kind() for node in graph.nodes()]


def test_a_size_stays_an_operator_and_follows_the_input():
    traced = torch.jit.trace(lambda x: x.view(x.shape[0] * x.size(1), 1), torch.ones(2, 3))
    assert kinds(traced.graph)[:3] == ["prim::Constant", "aten::size", "prim::NumToTensor"]
    assert traced(torch.ones(4, 5)).shape == (20, 1)


def test_a_size_of_one_is_no_constant():
    traced = torch.jit.trace(lambda x: torch.zeros(x.size(0)), torch.ones(1))
    assert traced(torch.ones(5)).shape == (5,)


def test_a_factory_given_a_size_follows_it():
    traced = torch.jit.trace(lambda x: torch.arange(x.shape[0]), torch.ones(2))
    assert traced(torch.ones(4)).tolist() == [0, 1, 2, 3]


def test_modules_are_called_by_their_methods():
    traced = torch.jit.trace(Mlp(), torch.ones(1, 3))
    assert kinds(traced.graph) == ["prim::GetAttr"] * 3 + ["prim::CallMethod"] * 3
    assert [k for k in kinds(traced.inlined_graph) if k.startswith("aten::")] == ["aten::linear", "aten::relu", "aten::linear"]


def test_parameters_are_shared_with_the_source():
    model = Mlp()
    traced = torch.jit.trace(model, torch.ones(1, 3))
    with torch.no_grad():
        model.second.bias.fill_(100)
    assert torch.equal(traced(torch.ones(1, 3)), model(torch.ones(1, 3)))


def test_a_module_that_is_called_twice_has_two_methods():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            return self.layer(self.layer(x))

    model = Twice()
    traced = torch.jit.trace(model, torch.ones(1, 2))
    x = torch.randn(3, 2)
    assert torch.allclose(traced(x), model(x))
    assert traced.layer._c._method_names() == ["forward", "forward1"]


def test_a_truth_value_is_frozen_with_a_warning():
    with pytest.warns(torch.jit.TracerWarning, match="Python boolean"):
        traced = torch.jit.trace(lambda x: x + 1 if x.sum() > 0 else x - 1, torch.ones(2))
    assert traced(-torch.ones(2)).tolist() == [0.0, 0.0]


def test_a_function_that_changes_fails_the_check():
    calls = []

    def f(x):
        calls.append(1)
        return x.sin() if len(calls) == 1 else x.cos().exp()

    with pytest.raises(torch.jit.TracingCheckError, match="Graphs differed"):
        torch.jit.trace(f, torch.ones(2))


def test_a_tensor_with_a_gradient_is_no_constant():
    weight = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Cannot insert a Tensor that requires grad as a constant"):
        torch.jit.trace(lambda x: x + weight, torch.ones(2))


def test_outputs_are_tensors():
    with pytest.raises(RuntimeError, match="Only tensors"):
        torch.jit.trace(lambda x: 3, torch.ones(2))
    with pytest.raises(RuntimeError, match="strict=False"):
        torch.jit.trace(lambda x: {"a": x}, torch.ones(2))
    assert torch.jit.trace(lambda x: {"a": x + 1}, torch.ones(2), strict=False)(torch.zeros(2))["a"].tolist() == [1.0, 1.0]


def test_nothing_is_recorded_after_a_trace_that_failed():
    def f(x):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        torch.jit.trace(f, torch.ones(2))
    assert not torch.jit.is_tracing()
    assert isinstance(torch.ones(2).shape[0], int)


def test_a_plain_trace_warns_of_nothing_but_its_age():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.jit.trace(lambda x: x * 2, torch.ones(2))
    assert {w.category for w in caught} == {FutureWarning}


def test_save_and_load():
    model = Mlp()
    traced = torch.jit.trace(model, torch.ones(1, 3))
    again = reloaded(traced)
    x = torch.randn(5, 3)
    assert torch.equal(again(x), model(x))
    assert list(again.state_dict()) == list(model.state_dict())
    function = torch.jit.trace(lambda x: x + torch.tensor([1.0, 2.0]), torch.ones(2))
    assert reloaded(function)(torch.ones(2)).tolist() == [2.0, 3.0]


def test_a_damaged_file_is_an_error():
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.trace(Mlp(), torch.ones(1, 3)), buffer)
    data = buffer.getvalue()
    for cut in range(0, len(data), max(1, len(data) // 25)):
        with pytest.raises(RuntimeError):
            torch.jit.load(io.BytesIO(data[:cut]))


def test_nodes_have_the_scopes_that_were_pushed():
    def f(x):
        state = torch._C._get_tracing_state()
        state.push_scope("outer")
        y = x + 1
        state.push_scope("inner")
        y = y * 2
        assert state.current_scope() == "outer/inner"
        state.pop_scope()
        state.pop_scope()
        return y
    assert torch._C._get_tracing_state() is None
    graph, _ = torch.jit._get_trace_graph(f, (torch.ones(2),))
    assert {n.kind(): n.scopeName() for n in graph.nodes() if n.kind() != "prim::Constant"} == {"aten::add": "outer", "aten::mul": "outer/inner"}


def test_a_scope_that_was_not_pushed_cannot_be_popped():
    with pytest.raises(RuntimeError, match="no scope was pushed"):
        torch.jit.trace(lambda x: torch._C._get_tracing_state().pop_scope(), torch.ones(2))


def test_gradients_that_a_function_computes_are_part_of_its_trace():
    def slope(x):
        inner = x.detach().requires_grad_()
        return torch.autograd.grad((inner * inner).sum(), inner)[0]

    traced = torch.jit.trace(slope, torch.arange(2.0), check_trace=False)
    assert traced(torch.tensor([3.0, 4.0])).tolist() == [6.0, 8.0]


@pytest.mark.parametrize("layer, size, called", [
    (torch.nn.Conv2d(2, 3, 3, stride=2), (1, 2, 5, 5), ["aten::_convolution"]),
    (torch.nn.Conv1d(2, 3, 3), (2, 5), ["aten::unsqueeze", "aten::_convolution", "aten::squeeze"]),
    (torch.nn.ConvTranspose2d(2, 3, 3), (1, 2, 5, 5), ["aten::_convolution"]),
    (torch.nn.Conv2d(2, 3, 3, padding="same"), (1, 2, 5, 5), ["aten::_convolution_mode"])])
def test_convolutions_are_calls_of_one_operator(layer, size, called):
    traced = torch.jit.trace(layer, torch.randn(size))
    assert [node.kind() for node in traced.graph.nodes() if node.kind().startswith("aten::")] == called
    other = torch.randn(size)
    assert torch.allclose(traced(other), layer(other))


def test_what_a_tensor_class_asks_for_is_no_part_of_the_trace():
    class Wrapped(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape)

        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            plain = [a.inner if isinstance(a, cls) else a for a in args]
            seen.append((plain[0].size(), plain[0].shape[0]))
            return function(*plain, **(kwargs or {}))
    seen = []
    traced = torch.jit.trace(lambda x: x * 2, (Wrapped(torch.ones(2)),), check_trace=False)
    assert seen == [((2,), 2)] and traced(torch.ones(3)).tolist() == [2, 2, 2]


def test_examples_are_the_inputs_themselves():
    weight = torch.ones(2, requires_grad=True)
    traced = torch.jit.trace(lambda x: x * weight.exp(), (weight,), check_trace=False)
    assert torch.equal(traced(torch.zeros(2)), torch.zeros(2))
    assert kinds(traced.graph) == ["aten::exp", "aten::mul"]


def test_an_example_that_is_written_is_written():
    example = torch.ones(2)
    torch.jit.trace(lambda x: x.add_(1), (example,))
    assert example.tolist() == [2, 2]


def test_an_example_that_is_given_twice_is_two_inputs():
    x, seen = torch.ones(2, requires_grad=True), []
    traced = torch.jit.trace(lambda a, b: (seen.append((a is x, b is x)), a - b)[1], (x, x), check_trace=False)
    assert seen == [(True, False)]
    assert traced(torch.ones(2), torch.zeros(2)).tolist() == [1, 1]


def test_casts_of_autocast_are_part_of_a_trace():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = self.layer(self.layer(x))
                return y, x @ x.t(), torch.nn.functional.mse_loss(y, x)
    model = Model()
    traced = torch.jit.trace(model, (torch.randn(2, 3),))
    assert sum(node.kind() == "aten::to" for node in traced.inlined_graph.nodes()) == 6  # weight and bias once
    x = torch.randn(2, 3)
    for found, expected in zip(traced(x), model(x)):
        torch.testing.assert_close(found, expected)  # types too; the mean is one pass outside of autocast, and two inside


def test_a_checkpoint_is_traced_as_the_function_it_runs():
    def slope(x):
        with torch.enable_grad():
            gradient, = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)
        return gradient * 2

    traced = torch.jit.trace(lambda x: torch.utils.checkpoint.checkpoint(slope, x, use_reentrant=False), (torch.arange(3.).requires_grad_(),), check_trace=False)
    assert traced(torch.ones(3).requires_grad_()).tolist() == [6, 6, 6]
    assert "torch.pow" in traced.code  # no step that only Python knows: the trace can be saved


@pytest.mark.parametrize("function", [lambda x: x / x.size(0), lambda x: x + x.shape[0] * 2, lambda x: x * -x.shape[0]])
def test_a_trace_computes_with_sizes_that_a_capture_leaves_open(function):
    compiled = torch.compile(torch.jit.trace(function, (torch.ones(3, 2),), check_trace=False), backend="aot_eager", dynamic=True)
    for n in (3, 5):
        torch.testing.assert_close(compiled(torch.ones(n, 2)), function(torch.ones(n, 2)))
