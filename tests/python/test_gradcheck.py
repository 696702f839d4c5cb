"""gradcheck tells right derivatives from wrong ones."""
import pytest

import umbra as torch
from umbra.autograd import gradcheck, gradgradcheck
from umbra.autograd.gradcheck import GradcheckError


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 3


def leaf(dtype=torch.float64):
    return torch.rand(3, dtype=dtype, requires_grad=True)


@pytest.mark.parametrize("function", [torch.sin, lambda x: (x * x.exp(), x.sum()), lambda x: x[1:].cumsum(0)])
@pytest.mark.parametrize("options", [{}, {"check_forward_ad": True}, {"check_batched_grad": True}, {"fast_mode": True}])
def test_right_derivatives_are_accepted(function, options):
    assert gradcheck(function, (leaf(),), **options)
    assert gradgradcheck(function, (leaf(),))


@pytest.mark.parametrize("function", [lambda z: z * z.conj(), torch.abs, lambda z: z.exp().real, lambda z: z ** 2])
def test_derivatives_of_complex_functions_are_accepted(function):
    assert gradcheck(function, (leaf(torch.complex128),))


@pytest.mark.parametrize("fast_mode", [False, True])
def test_wrong_derivatives_are_refused(fast_mode):
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(Wrong.apply, (leaf(),), fast_mode=fast_mode)
    assert not gradcheck(Wrong.apply, (leaf(),), fast_mode=fast_mode, raise_exception=False)


def test_inputs_without_gradients_are_refused():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(torch.sin, (leaf().detach(),))


def test_a_hook_on_several_tensors_waits_for_those_that_take_part():
    a, b, seen = leaf(), leaf(), []
    handle = torch.autograd.graph.register_multi_grad_hook((a, b), lambda grads: seen.append([g is not None for g in grads]))
    (a * b).sum().backward()
    (a * 2).sum().backward()
    handle.remove()
    (a * b).sum().backward()
    assert seen == [[True, True], [True, False]]


def test_forward_over_reverse_looks_at_every_gradient():
    x, y = (torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert gradgradcheck(lambda a, b: a.sin() * b, (x, y), check_fwd_over_rev=True)
    assert gradgradcheck(torch.sin, (x,), check_fwd_over_rev=True)


def test_an_input_without_elements_is_checked_in_both_modes():
    empty = torch.rand(0, 1, dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(torch.diagonal, (empty,), check_forward_ad=True)
