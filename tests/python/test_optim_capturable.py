"""Optimisers whose steps read nothing back from the device (`capturable=True`)."""
import pytest
import umbra
from umbra import nn, optim

OPTIMIZERS = [optim.Adam, optim.AdamW, optim.NAdam, optim.RAdam, optim.ASGD, optim.Adadelta, optim.Adamax, optim.Rprop, optim.RMSprop]
GRADIENTS = [[1.0, -3.0], [0.5, 2.0], [-1.0, 0.1]]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_step_on_the_cpu_is_refused_and_changes_nothing(optimizer):
    weight = nn.Parameter(umbra.ones(2))
    stepper = optimizer([weight], capturable=True)
    stepper.step()  # nothing to do yet
    weight.grad = umbra.ones(2)
    with pytest.raises(AssertionError, match="must be on supported devices"):
        stepper.step()
    assert weight.tolist() == [1.0, 1.0] and stepper.state[weight]["step"] == 0


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_compiled_step_gives_what_a_plain_one_does(optimizer):
    weights = [nn.Parameter(umbra.tensor([1.0, 2.0])) for _ in range(2)]
    plain, capturable = optimizer([weights[0]]), optimizer([weights[1]], capturable=True)
    compiled = umbra.compile(capturable.step, backend="eager")
    for gradient in GRADIENTS * 3:  # beyond the steps at which RAdam begins to divide
        for weight, step in zip(weights, (plain.step, compiled)):
            weight.grad = umbra.tensor(gradient)
            step()
    umbra.testing.assert_close(*weights)
    for name, value in plain.state[weights[0]].items():
        umbra.testing.assert_close(capturable.state[weights[1]][name], value)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_step_of_fake_parameters_reads_no_data(optimizer):
    with umbra._subclasses.FakeTensorMode():
        weight = nn.Parameter(umbra.ones(2, device="cuda"))
        stepper = optimizer([weight], capturable=True)
        for rate in (0.1, 0.1, umbra.ones((), device="cuda")):
            stepper.param_groups[0]["lr"] = rate
            weight.grad = umbra.ones(2, device="cuda")
            stepper.step()
        assert {value.device.type for value in stepper.state[weight].values()} == {"cuda"}


@pytest.mark.parametrize("optimizer", [optim.Adam, optim.AdamW])
def test_a_fused_step_may_be_capturable_anywhere(optimizer):
    weights = [nn.Parameter(umbra.tensor([1.0, 2.0])) for _ in range(2)]
    for weight, options in zip(weights, ({}, {"fused": True, "capturable": True})):
        stepper = optimizer([weight], **options)
        weight.grad = umbra.tensor([1.0, -3.0])
        stepper.step()
    umbra.testing.assert_close(*weights)


def test_steps_are_counted_in_float32_whatever_the_default_type_is():
    try:
        umbra.set_default_dtype(umbra.bfloat16)
        weight = nn.Parameter(umbra.ones(2))
        stepper = optim.Adam([weight])
        weight.grad = umbra.ones(2)
        stepper.step()
    finally:
        umbra.set_default_dtype(umbra.float32)
    assert weight.dtype == umbra.bfloat16 and stepper.state[weight]["step"].dtype == umbra.float32
