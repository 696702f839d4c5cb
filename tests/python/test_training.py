"""What a training loop needs beside modules: hooks on gradients, schedulers, data, devices that are not there."""
import pytest

import umbra
import umbra.utils.data as data
from umbra import nn
from umbra.optim import lr_scheduler


# ---- hooks on the gradients of modules ----

def test_full_backward_hook_sees_both_sides():
    linear, x = nn.Linear(3, 2, bias=False), umbra.ones(4, 3, requires_grad=True)
    seen = []
    handle = linear.register_full_backward_hook(lambda module, given, incoming: seen.append((module, given, incoming)))
    linear(x).sum().backward()
    (module, (grad_input,), (grad_output,)), = seen
    assert module is linear
    assert umbra.equal(grad_output, umbra.ones(4, 2))
    assert umbra.equal(grad_input, x.grad)
    handle.remove()
    linear(x).sum().backward()
    assert len(seen) == 1


def test_backward_hooks_replace_gradients():
    linear, x = nn.Linear(3, 2, bias=False), umbra.ones(4, 3, requires_grad=True)
    plain, = umbra.autograd.grad(linear(x).sum(), x)
    linear.register_full_backward_pre_hook(lambda module, incoming: (incoming[0] * 2,))
    linear.register_full_backward_hook(lambda module, given, incoming: (given[0] * 5,))
    linear(x).sum().backward()
    assert umbra.allclose(x.grad, plain * 10)
    assert umbra.equal(linear.weight.grad, umbra.full((2, 3), 8.0))


def test_backward_hook_where_no_input_requires_a_gradient():
    linear, seen = nn.Linear(3, 2), []
    handle = linear.register_full_backward_hook(lambda module, given, incoming: seen.append((given, incoming[0].shape)))
    linear(umbra.ones(4, 3)).sum().backward()
    assert seen == [((None,), (4, 2))]
    handle.remove()
    linear.register_full_backward_hook(lambda module, given, incoming: (umbra.ones(4, 3),))
    with pytest.raises(RuntimeError, match="no input requires gradient"):
        linear(umbra.ones(4, 3)).sum().backward()


def test_backward_hook_with_several_arguments_and_results():
    class Pair(nn.Module):
        def forward(self, x, factor, y):
            return x * factor, y * 3

    pair, seen = Pair(), []
    pair.register_full_backward_hook(lambda module, given, incoming: seen.append((given, incoming)))
    x, y = umbra.ones(2, requires_grad=True), umbra.ones(2)
    first, second = pair(x, 2.0, y)
    assert not second.requires_grad
    first.sum().backward()
    (given, incoming), = seen
    assert umbra.equal(given[0], umbra.full((2,), 2.0)) and given[1] is None and umbra.equal(given[2], umbra.zeros(2))
    assert umbra.equal(incoming[0], umbra.ones(2)) and incoming[1] is None


def test_backward_hook_wrong_count_and_errors_come_out():
    linear, x = nn.Linear(3, 2), umbra.ones(4, 3, requires_grad=True)
    handle = linear.register_full_backward_hook(lambda module, given, incoming: (None, None))
    with pytest.raises(RuntimeError, match="got 2, but expected 1"):
        linear(x).sum().backward()
    handle.remove()
    linear.register_full_backward_hook(lambda module, given, incoming: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        linear(x).sum().backward()


# ---- learning rates: the numbers are PyTorch's ----

SCHEDULES = [
    (lambda o: lr_scheduler.StepLR(o, 3, 0.5), [0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125]),
    (lambda o: lr_scheduler.MultiStepLR(o, [2, 5], 0.1), [0.5, 0.5, 0.05, 0.05, 0.05, 0.005]),
    (lambda o: lr_scheduler.ExponentialLR(o, 0.9), [0.5, 0.45, 0.405, 0.3645]),
    (lambda o: lr_scheduler.LinearLR(o, 0.25, 1.0, 4), [0.125, 0.21875, 0.3125, 0.40625, 0.5, 0.5]),
    (lambda o: lr_scheduler.ConstantLR(o, 0.5, 3), [0.25, 0.25, 0.25, 0.5, 0.5]),
    (lambda o: lr_scheduler.CosineAnnealingLR(o, 4, 0.1), [0.5, 0.4414214, 0.3, 0.1585786, 0.1, 0.1585786, 0.3]),
    (lambda o: lr_scheduler.LambdaLR(o, lambda epoch: 0.9**epoch), [0.5, 0.45, 0.405]),
    (lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.LinearLR(o, 0.1, 1.0, 3), lr_scheduler.CosineAnnealingLR(o, 5)], [3]),
     [0.05, 0.2, 0.35, 0.5, 0.4522542, 0.3272542, 0.1727458]),
]


def rates(make, count, state_after=None):
    optimizer = umbra.optim.SGD([nn.Parameter(umbra.ones(1))], lr=0.5)
    scheduler = make(optimizer)
    out = [optimizer.param_groups[0]["lr"]]
    for _ in range(count - 1):
        scheduler.step()
        out.append(scheduler.get_last_lr()[0])
    return out


@pytest.mark.parametrize("make, expected", SCHEDULES)
def test_schedules(make, expected):
    assert rates(make, len(expected)) == pytest.approx(expected)


@pytest.mark.parametrize("make, expected", SCHEDULES)
def test_schedules_go_on_from_their_state(make, expected):
    optimizer = umbra.optim.SGD([nn.Parameter(umbra.ones(1))], lr=0.5)
    scheduler = make(optimizer)
    scheduler.step()
    other = umbra.optim.SGD([nn.Parameter(umbra.ones(1))], lr=0.5)
    resumed = make(other)
    other.load_state_dict(optimizer.state_dict())
    resumed.load_state_dict(scheduler.state_dict())
    resumed.step()
    assert resumed.get_last_lr() == pytest.approx(expected[2:3])


def test_reduce_on_plateau():
    optimizer = umbra.optim.SGD([nn.Parameter(umbra.ones(1))], lr=0.5)
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, cooldown=1)
    seen = []
    for value in (1, .9, .9, .9, .9, .9, .9, .95, .5, 1, 1, 1):
        scheduler.step(value)
        seen.append(optimizer.param_groups[0]["lr"])
    assert seen == pytest.approx([.5, .5, .5, .05, .05, .05, .005, .005, .005, .005, .0005, .0005])


# ---- data ----

def test_loader_batches_in_order():
    loader = data.DataLoader(data.TensorDataset(umbra.arange(10), umbra.arange(10) * 2), batch_size=4)
    batches = list(loader)
    assert len(loader) == 3 and [len(x) for x, _ in batches] == [4, 4, 2]
    assert umbra.equal(umbra.cat([y for _, y in batches]), umbra.arange(10) * 2)
    assert len(list(data.DataLoader(range(10), batch_size=4, drop_last=True))) == 2


def test_loader_shuffles_by_the_seed():
    def order(seed):
        umbra.manual_seed(seed)
        return umbra.cat(list(data.DataLoader(range(20), batch_size=3, shuffle=True))).tolist()
    assert sorted(order(1)) == list(range(20))
    assert order(1) == order(1) != order(2)


def test_collate_goes_into_containers():
    batch = data.default_collate([{"x": umbra.ones(2), "y": (1, 0.5), "name": "a"}, {"x": umbra.zeros(2), "y": (2, 1.5), "name": "b"}])
    assert batch["x"].shape == (2, 2) and batch["name"] == ["a", "b"]
    assert batch["y"][0].dtype == umbra.int64 and batch["y"][1].dtype == umbra.float64


def test_streams_and_splits():
    class Stream(data.IterableDataset):
        def __iter__(self):
            return iter(range(5))
    assert [batch.tolist() for batch in data.DataLoader(Stream(), batch_size=2)] == [[0, 1], [2, 3], [4]]
    parts = data.random_split(range(10), [0.75, 0.25])
    assert [len(part) for part in parts] == [8, 2]
    assert sorted(list(parts[0]) + list(parts[1])) == list(range(10))
    with pytest.raises(ValueError):
        data.random_split(range(10), [3, 3])
    with pytest.raises(ValueError, match="shuffle"):
        data.DataLoader(Stream(), shuffle=True)


# ---- devices and names that are not there ----

def test_no_cuda():
    assert not umbra.cuda.is_available() and umbra.cuda.device_count() == 0
    assert not umbra.backends.mps.is_available()
    with pytest.raises(AssertionError, match="CUDA"):
        umbra.cuda.current_device()


def test_missing_names_are_umbras():
    with pytest.raises(AttributeError, match="module 'umbra' has no attribute 'nothing'"):
        umbra.nothing
    with pytest.raises(AttributeError, match="module 'umbra.nn' has no attribute 'Nothing'"):
        umbra.nn.Nothing


def test_backward_hooks_of_a_module_that_gives_a_dict_are_not_called_and_say_so():
    class Named(nn.Module):
        def forward(self, x):
            return {"twice": x * 2}
    seen, module, x = [], Named(), umbra.ones(2, requires_grad=True)
    module.register_full_backward_hook(lambda *_: seen.append("called"))
    with pytest.warns(UserWarning, match="output should be a Tensor or a tuple of Tensors but received <class 'dict'>"):
        module(x)["twice"].sum().backward()
    assert seen == [] and x.grad.tolist() == [2.0, 2.0]
