"""torch.compile: arguments that the function reads from elsewhere, too, or that have attributes, and what such captures cost."""
import warnings

import pytest

import umbra as torch
from umbra._dynamo import compilation
from umbra.overrides import TorchFunctionMode
from umbra.utils._python_dispatch import TorchDispatchMode

GLOBAL = torch.arange(3.0)


def graphs_of(function):
    """The function compiled as one graph, and a list with an entry for each graph."""
    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return module
    return torch.compile(function, backend=backend, fullgraph=True), graphs


def test_a_tensor_that_is_an_argument_and_a_global():
    compiled, graphs = graphs_of(lambda x: (x is GLOBAL, x * 2 + GLOBAL))
    for given, same in ((GLOBAL, True), (torch.ones(3), False), (GLOBAL, True), (torch.ones(3), False)):
        is_same, result = compiled(given)
        assert is_same is same and result.tolist() == (given * 2 + GLOBAL).tolist()
    assert len(graphs) == 2


def test_writes_to_a_tensor_that_is_an_argument_and_closed_over():
    held = torch.zeros(3)

    def writes_argument(x):
        x.add_(1)
        return held * 2

    def writes_held(x):
        held.add_(1)
        return x * 2
    for function in (writes_argument, writes_held):
        held.zero_()
        compiled, graphs = graphs_of(function)
        assert [compiled(held).tolist() for _ in range(3)] == [[2.0] * 3, [4.0] * 3, [6.0] * 3] and held.tolist() == [3.0] * 3
        assert len(graphs) == 1


def test_a_closed_over_tensor_becomes_an_argument_by_another_name():
    class Holder:
        kept = torch.ones(2)
    compiled, graphs = graphs_of(lambda x: x + Holder.kept)
    other = Holder.kept
    assert compiled(other).tolist() == [2, 2]
    Holder.kept = torch.full((2,), 5.0)
    assert compiled(other).tolist() == [6, 6]
    assert compiled(Holder.kept).tolist() == [10, 10]


def test_gradients_of_a_parameter_that_is_given_to_its_module():
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.full((2,), 3.0))

        def forward(self, x):
            return x is self.weight, (x * self.weight).sum()
    module = Scaled()
    compiled, graphs = graphs_of(module)
    for _ in range(2):
        module.weight.grad = None
        same, loss = compiled(module.weight)
        loss.backward()
        assert same and module.weight.grad.tolist() == [6, 6]
    x = torch.ones(2, requires_grad=True)
    same, loss = compiled(x)
    loss.backward()
    assert not same and x.grad.tolist() == [3, 3] and len(graphs) >= 2


class Scaling(torch.nn.Module):
    def __init__(self, ask):
        super().__init__()
        self.weight, self.ask = torch.nn.Parameter(torch.ones(2)), ask

    def forward(self, x):
        scale = self.ask(self.weight)
        return x * self.weight * (scale[0] if isinstance(scale, list) else scale)


ASKS = {"name": lambda weight: getattr(weight, "scale", 1.0), "computed": lambda weight: getattr(weight, "".join(["sc", "ale"]), 1.0)}


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
@pytest.mark.parametrize("way", ["module", "function", "argument"])
def test_attributes_that_a_parameter_gets_after_the_capture(way, ask):
    module = Scaling(ask)
    if way == "argument":
        whole, graphs = graphs_of(lambda x, weight: x * (scale[0] if isinstance(scale := ask(weight), list) else scale))
        compiled = lambda x: whole(x, module.weight)
    else:
        compiled, graphs = graphs_of(module if way == "module" else lambda x: module(x))
    x, results = torch.ones(2), [1.0]
    assert compiled(x).tolist() == [1, 1]
    for scale in (2.0, torch.full((2,), 3.0), torch.full((2,), 4.0), [5.0]):
        module.weight.scale = scale
        results.append(compiled(x)[0].item())
    module.weight.scale[0] = 6.0
    results.append(compiled(x)[0].item())
    del module.weight.scale
    results.append(compiled(x)[0].item())
    assert results == [1, 2, 3, 4, 5, 6, 1] and len(graphs) >= 6


class Calls(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class Operators(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class Watching(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return super().__torch_function__(function, types, args, kwargs or {})


def test_a_whole_graph_is_never_run_uncompiled_in_silence():
    def double(x):
        return x * 2
    x = torch.ones(2)
    for mode, name in ((Calls, "function mode"), (Operators, "dispatch mode")):
        compiled, graphs = graphs_of(double)
        with mode(), pytest.raises(torch._dynamo.exc.Unsupported, match=name):
            compiled(x)
        with mode():
            assert torch.compile(double, backend="eager")(x).tolist() == [2, 2]
    compiled, graphs = graphs_of(double)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="__torch_function__"):
        compiled(x.as_subclass(Watching))
    with pytest.raises(torch._dynamo.exc.Unsupported, match="transform"):
        torch.vmap(compiled)(x)
    assert torch.vmap(torch.compile(double, backend="eager"))(x).tolist() == [2, 2] and not graphs


def test_a_module_without_sizes_runs_once_before_it_is_one_graph():
    compiled, graphs = graphs_of(torch.nn.LazyLinear(2))
    assert compiled(torch.ones(3)).shape == (2,) and not graphs
    assert compiled(torch.ones(3)).shape == (2,) and len(graphs) == 1


# ---- what captures cost ----

class Node:
    def __init__(self, number):
        self.number, self.tags = number, [number]


class Store:
    def __init__(self, count):
        self.nodes, self.active = [Node(i) for i in range(count)], False


class Trainer:
    def __init__(self, count):
        self.store, self.batch, self.steps = Store(count), None, 0

    @property
    def is_active(self):
        return self.store.active

    @property
    def is_training(self):
        return self.stage == "train"

    @property
    def stage(self):
        return "train"

    def log(self):
        self.steps += 1


class Step(torch.nn.Module):
    def __init__(self, count, logs):
        super().__init__()
        self.linear, self.trainer, self.logs = torch.nn.Linear(2, 2), Trainer(count), logs

    def forward(self, batch):
        if self.logs:
            self.trainer.log()
        return self.linear(batch) if self.trainer.is_active else self.linear(batch) * (2 if self.trainer.is_training else 3)


@pytest.fixture
def walks(monkeypatch):
    """An entry for each walk through all that a function reads."""
    found, walk = [], compilation._Optimized._foresee

    def counted(self, watched):
        found.append(self)
        walk(self, watched)
    monkeypatch.setattr(compilation._Optimized, "_foresee", counted)
    return found


def test_what_constructors_alone_name_is_not_watched():
    """Beyond 20,000 objects that are watched a capture would be refused."""
    module = Step(30_000, False)
    compiled, graphs = graphs_of(module)
    x = torch.ones(1, 2)
    assert torch.equal(compiled(x), module(x)) and len(graphs) == 1
    module.trainer.store.active = True
    assert torch.equal(compiled(x), module.linear(x)) and len(graphs) == 2


def test_methods_of_one_class_are_found_in_one_walk(walks):
    compiled, graphs = graphs_of(Step(10, False))
    compiled(torch.ones(1, 2))
    assert len(graphs) == 1 and len(walks) <= 3


def test_a_step_whose_trainer_holds_the_batch_is_given_up_soon(walks):
    module = Step(10, True)
    compiled = torch.compile(module, backend="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(30):
            module.trainer.batch = torch.full((1, 2), float(i))
            assert torch.equal(compiled(module.trainer.batch), module.linear(module.trainer.batch) * 2)
    assert module.trainer.steps == 30 and len(walks) < 12


def test_a_held_batch_alone_does_not_keep_a_step_from_being_captured():
    module = Step(10, False)
    compiled, graphs = graphs_of(module)
    for _ in range(3):
        module.trainer.batch = torch.randn(1, 2)
        assert torch.equal(compiled(module.trainer.batch), module(module.trainer.batch))
    assert len(graphs) == 1
