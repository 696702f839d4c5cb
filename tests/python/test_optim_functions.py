"""Steps of optimisers as functions of lists."""
import inspect

import pytest
import umbra as torch
from umbra.optim import _functional as functions


def test_what_was_none_is_made_by_the_first_step():
    parameters, gradients = [torch.tensor([1.0, 2.0]), torch.tensor([3.0])], [torch.tensor([0.5, -1.0]), torch.tensor([2.0])]
    buffers = [None, None]
    for _ in range(2):
        torch.optim.sgd.sgd(parameters, gradients, buffers, weight_decay=0.0, momentum=0.5, lr=0.1, dampening=0.0, nesterov=False, maximize=False)
    torch.testing.assert_close(parameters[0], torch.tensor([0.875, 2.25]))
    torch.testing.assert_close(buffers[1], torch.tensor([3.0]))


@pytest.mark.parametrize("name, optimizer", [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)])
def test_a_function_takes_its_optimisers_step(name, optimizer):
    gradient = torch.tensor([0.5, -1.0])
    leaf = torch.tensor([1.0, 2.0], requires_grad=True)
    leaf.grad = gradient
    whole = optimizer([leaf], lr=0.1, weight_decay=0.1, amsgrad=True)
    whole.step()
    value, kept = torch.tensor([1.0, 2.0]), [[torch.zeros(2)] for _ in range(3)]
    getattr(functions, name)([value], [gradient], *kept, [torch.tensor(0.0)], amsgrad=True, beta1=0.9, beta2=0.999, lr=0.1, weight_decay=0.1,
                             eps=1e-8, maximize=False)
    assert torch.equal(value, leaf) and torch.equal(kept[0][0], whole.state[leaf]["exp_avg"])


def test_arguments_are_named_as_in_pytorch():
    assert list(inspect.signature(functions.rprop).parameters)[2:6] == ["prevs", "step_sizes", "state_steps", "foreach"]
    with pytest.raises(TypeError, match="missing a required argument: 'lr'"):
        functions.sgd([], [], [], weight_decay=0, momentum=0, dampening=0, nesterov=False, maximize=False)
    with pytest.raises(RuntimeError, match="Adam does not support sparse gradients"):
        functions.adam([torch.ones(2)], [torch.ones(2).to_sparse()], [torch.zeros(2)], [torch.zeros(2)], [], [torch.tensor(0.0)], amsgrad=False,
                       beta1=0.9, beta2=0.999, lr=0.1, weight_decay=0.0, eps=1e-8, maximize=False)
    with pytest.raises(NotImplementedError, match="grad_scale or found_inf is not in Umbra yet"):
        functions.adam([], [], [], [], [], [], grad_scale=torch.ones(1), amsgrad=False, beta1=0.9, beta2=0.999, lr=0.1, weight_decay=0.0,
                       eps=1e-8, maximize=False)


def lists_of(optimizer, count):
    parameters, gradients, kept = [], [], [[] for _ in range(count)]
    result = optimizer._init_group(optimizer.param_groups[0], parameters, gradients, *kept)
    return result, parameters, gradients, kept


@pytest.mark.parametrize("kind, options, names, result", [
    (torch.optim.Adam, {"amsgrad": True}, ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"), False),
    (torch.optim.ASGD, {}, ("mu", "ax", "eta", "step"), False),
    (torch.optim.RMSprop, {"centered": True}, ("square_avg", None, "grad_avg", "step"), False),
    (torch.optim.Adagrad, {}, ("sum", "step"), (False, False))])
def test_a_step_of_a_package_begins_with_the_lists_of_a_group(kind, options, names, result):
    with_gradient, without = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
    optimizer = kind([with_gradient, without], **options)
    with_gradient.sum().backward()
    found, parameters, gradients, kept = lists_of(optimizer, len(names))
    assert found == result and len(parameters) == 1 and parameters[0] is with_gradient and gradients[0] is with_gradient.grad
    state = optimizer.state[with_gradient]
    assert all(values == [] if name is None else values[0] is state[name] for name, values in zip(names, kept))


def test_sgd_lists_momenta_where_there_are_some():
    parameter = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([parameter], momentum=0.9)
    parameter.sum().backward()
    assert lists_of(optimizer, 1)[3] == [[None]]
    optimizer.step()
    assert lists_of(optimizer, 1)[3][0][0] is optimizer.state[parameter]["momentum_buffer"]
    assert lists_of(torch.optim.SGD([parameter]), 1)[3] == [[]]
