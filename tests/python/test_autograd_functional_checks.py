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


@pytest.mark.parametrize("history", [False, True])
def test_derivatives_by_a_batch_or_forward_are_those_of_one_pass_an_element(history):
    w = torch.tensor([2., 3.], requires_grad=True)

    def two(x, y):
        return x * y * w, (x * x).sum()

    x, y = torch.tensor([1., 2.], requires_grad=history), torch.tensor([3., 4.])
    expected = functional.jacobian(two, (x, y), create_graph=True)
    for way in ({"create_graph": True}, {"strategy": "forward-mode"}):
        found = functional.jacobian(two, (x, y), vectorize=True, **way)
        for row, expected_row in zip(found, expected):
            assert [part.tolist() for part in row] == [part.tolist() for part in expected_row]
        assert torch.autograd.grad(found[0][0].sum(), w)[0].tolist() == [3, 4]
        assert not history or torch.autograd.grad(found[1][0].sum(), x)[0].tolist() == [2, 2]


def test_second_derivatives_by_a_batch_or_forward_have_a_history():
    x, w = torch.tensor([1., 2.], requires_grad=True), torch.tensor([2., 3.], requires_grad=True)
    for way in ({"create_graph": True}, {"outer_jacobian_strategy": "forward-mode"}):
        found = functional.hessian(lambda x: (x ** 3 * w).sum(), x, vectorize=True, **way)
        assert found.tolist() == [[12, 0], [0, 36]]
        assert [g.tolist() for g in torch.autograd.grad(found.sum(), (x, w))] == [[12, 18], [6, 12]]
    with pytest.raises(RuntimeError, match="The function given to hessian should return a single Tensor"):
        functional.hessian(lambda x: (x.sum(),), x, vectorize=True, outer_jacobian_strategy="forward-mode")
