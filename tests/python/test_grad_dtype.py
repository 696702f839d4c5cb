"""Tensor.grad_dtype: the type in which gradients of a leaf come and are kept."""
import pytest

import umbra as torch


def leaf(dtype=torch.float32):
    return torch.ones(3, dtype=dtype, requires_grad=True)


def test_it_is_the_tensors_own_unless_set():
    x = leaf()
    assert x.grad_dtype == torch.float32 and (x * 2).grad_dtype == torch.float32
    x.grad_dtype = torch.float64
    assert x.grad_dtype == torch.float64
    assert x.clone().grad_dtype == x.detach().grad_dtype == torch.float32


def test_gradients_come_in_it():
    x = leaf()
    x.grad_dtype = torch.float64
    seen = []
    x.register_hook(lambda g: seen.append(g.dtype))
    (x * 2).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.dtype == torch.float64 and x.grad.tolist() == [5.0] * 3 and seen == [torch.float64] * 2
    assert torch.autograd.grad((x * 2).sum(), x)[0].dtype == torch.float64


def test_it_reaches_graphs_that_are_there_already():
    x = leaf()
    loss = (x * 2).sum()
    x.grad_dtype = torch.bfloat16
    loss.backward()
    assert x.grad.dtype == torch.bfloat16


def test_none_keeps_the_type_that_comes():
    class Widening(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def backward(ctx, g):
            return g.float()
    x = leaf(torch.float16)
    x.grad_dtype = None
    Widening.apply(x).sum().backward()
    assert x.grad_dtype is None and x.grad.dtype == torch.float32
    y = leaf(torch.float16)
    Widening.apply(y).sum().backward()
    assert y.grad.dtype == torch.float16


def test_what_does_not_fit_is_refused():
    x = leaf()
    with pytest.raises(RuntimeError, match="grad_dtype must be a torch.dtype or None, but got str"):
        x.grad_dtype = "float64"
    with pytest.raises(RuntimeError, match="grad_dtype can only be set on leaf tensors"):
        (x * 2).grad_dtype = torch.float64
    x.grad_dtype = torch.float64
    with pytest.raises(RuntimeError, match="attempting to assign a gradient with dtype"):
        x.grad = torch.ones(3)
    x.grad = torch.ones(3, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="Cannot set grad_dtype to 'Float' because there is already a gradient"):
        x.grad_dtype = torch.float32
