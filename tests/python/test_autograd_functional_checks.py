"""torch.autograd.functional: what strict mode refuses, vectors that do not fit, and calls inside no_grad."""
import pytest
import umbra as torch
from umbra.autograd import functional


X, ONES = torch.full((3,), 0.5), torch.ones(3)


def exp_sum(x):
    return x.exp().sum()


@pytest.mark.parametrize("call, text", [
    (lambda: functional.jacobian(lambda a: a.clone(), X, create_graph=True, strict=True), "The jacobian of the user-provided function is independent of input 0."),
    (lambda: functional.vjp(lambda a, b: a * 2, (X, X), ONES, strict=True), "The output of the user-provided function is independent of input 1."),
    (lambda: functional.jvp(lambda a, b: a * 2, (X, X), (ONES, ONES), strict=True), "The output of the user-provided function is independent of input 1."),
    (lambda: functional.vjp(lambda a: a * 2, X.clone().requires_grad_(), ONES, create_graph=True, strict=True),
     "The jacobian of the user-provided function is independent of input 0. This is not allowed in strict mode when create_graph=True."),
    (lambda: functional.hvp(lambda a: a.sum(), X, ONES, strict=True), "While computing the hessian, found that the jacobian of the user-provided function"),
    (lambda: functional.hessian(lambda a, b: a.exp().sum(), (X, X), strict=True), "While computing the hessian, found that the jacobian"),
    (lambda: functional.vhp(lambda a: (a.sum(), a.sum()), X, ONES), "The function given to vhp should return a single Tensor"),
    (lambda: functional.vjp(lambda a: a * 2, X, (ONES, ONES)), "The given v should contain a single Tensor.")])
def test_refusals(call, text):
    with pytest.raises(RuntimeError) as error:
        call()
    assert str(error.value).startswith(text)


def test_vectors_are_tensors():
    with pytest.raises(TypeError, match="The v given to jvp must be either a Tensor or a tuple of Tensors"):
        functional.jvp(lambda a: a * 2, X, 3)


@pytest.mark.parametrize("function", [functional.hvp, functional.vhp])
def test_products_with_hessians_inside_no_grad(function):
    with torch.no_grad():
        _, product = function(exp_sum, X, ONES)
    assert torch.allclose(product, X.exp())


@pytest.mark.parametrize("function", [functional.vjp, functional.jvp])
def test_graphs_made_inside_no_grad(function):
    with torch.no_grad():
        _, product = function(lambda a: a * a, X.clone().requires_grad_(), ONES, create_graph=True)
    assert product.requires_grad and torch.equal(product, ONES)
