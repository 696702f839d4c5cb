"""What has no derivative says so: an argument whose gradient would be lost, an operator without a formula."""
import pytest

import umbra as torch
import umbra.nn.functional as F


@pytest.mark.parametrize("call, operator, argument", [
    (lambda x, w: F.nll_loss(x, torch.tensor([0, 1]), weight=w), "nll_loss_forward", "weight"),
    (lambda x, w: F.binary_cross_entropy(x.sigmoid(), torch.ones(2, 2), weight=w), "binary_cross_entropy", "weight"),
    (lambda x, w: F.binary_cross_entropy_with_logits(x, torch.ones(2, 2), pos_weight=w), "binary_cross_entropy_with_logits", "pos_weight"),
    (lambda x, w: F.multi_margin_loss(x, torch.tensor([0, 1]), weight=w), "multi_margin_loss", "weight"),
    (lambda x, w: F.soft_margin_loss(x, w), "soft_margin_loss", "target"),
    (lambda x, w: torch.native_batch_norm(x, None, None, w, torch.ones(2), False, 0.1, 1e-5), "native_batch_norm", "running_mean"),
])
def test_a_gradient_that_would_be_lost_is_refused(call, operator, argument):
    x, w = torch.rand(2, 2, requires_grad=True), torch.rand(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=f"The function '{operator}' is not differentiable with respect to argument '{argument}'. "
                                           "This input cannot have requires_grad True."):
        call(x, w)
    call(x, w.detach())
    with torch.no_grad():
        call(x, w)


def test_sizes_that_a_backward_operator_is_given_may_require_gradients():
    x = torch.rand(1, 1, 4, 4, requires_grad=True)
    grad, = torch.autograd.grad(F.avg_pool2d(x, 2).sum(), x, create_graph=True)
    assert grad.grad_fn.name() == "AvgPool2DBackwardBackward0"
    grad.square().sum().backward()  # a penalty on the gradient of what is linear
    assert x.grad.eq(0).all()


@pytest.mark.parametrize("call, error, text", [
    (lambda x: torch.unique(x), NotImplementedError, "the derivative for '_unique2' is not implemented."),
    (lambda x: torch.unique(x, dim=0), NotImplementedError, "the derivative for 'unique_dim' is not implemented."),
    (lambda x: torch.unique_consecutive(x), NotImplementedError, "the derivative for 'unique_consecutive' is not implemented."),
    (lambda x: torch.geqrf(x)[0], NotImplementedError, "the derivative for 'geqrf' is not implemented."),
    (lambda x: torch.heaviside(x, torch.ones(())), RuntimeError, "derivative for aten::heaviside is not implemented"),
    (lambda x: torch.histogram(x, 4)[1], RuntimeError, "derivative for aten::histogram is not implemented"),
])
def test_an_operator_without_a_derivative_is_named_by_the_backward_pass(call, error, text):
    y = call(torch.rand(3, 3, requires_grad=True))
    with pytest.raises(RuntimeError) as raised:
        y.sum().backward()
    assert type(raised.value) is error and str(raised.value).startswith(text)


def test_complex_results_of_geqrf_are_refused_at_once():
    with pytest.raises(NotImplementedError, match="geqrf does not support automatic differentiation for outputs with complex dtype."):
        torch.geqrf(torch.rand(2, 2, dtype=torch.complex64, requires_grad=True))


def test_a_count_has_no_gradient():
    x = torch.rand(3, requires_grad=True)
    torch.linalg.vector_norm(x, 0).backward()
    assert x.grad is None


def test_a_gradient_keeps_the_strides_it_came_with():
    x, y = torch.rand(1, 2, 3, requires_grad=True), torch.rand(1, 2, 3, requires_grad=True)
    torch.cat([x, y], 1).sum().mul(2).backward()
    assert x.grad.stride() == (6, 3, 1)  # of a gradient that was expanded: the leaf's own
    x.grad = None
    torch.cat([x, y], 1).mul(torch.rand(1, 4, 3)).sum().backward()
    assert x.grad.stride() == (12, 3, 1)
    x.grad.zero_()  # a copy: the other gradient stays as it is
    assert y.grad.abs().sum() > 0


def test_new_dimensions_of_one_have_a_contiguous_stride():
    assert torch.ones(1, 5).expand(1, 1, 5).stride() == (5, 5, 1)
    assert torch.ones(2, 3).t().expand(1, 3, 2).stride() == (3, 1, 3)
    assert torch.tensor(1.0).expand(1, 2).stride() == (0, 0)


def test_equal_elements_are_taken_in_the_order_of_pytorch():
    x = torch.tensor([1, 3, 3, 2, 3, 1, 2, 3])
    assert torch.topk(x, 3).indices.tolist() == [4, 7, 2]
    assert torch.topk(x, 4, largest=False).indices.tolist() == [5, 0, 3, 6]
    assert torch.topk(torch.tensor([5.0, 1, 4, 2, 3]), 3, sorted=False).indices.tolist() == [0, 2, 4]


def test_places_are_whole_numbers_of_64_bits():
    places = torch.unravel_index(torch.tensor([3, 8], dtype=torch.uint8), (4, 5))
    assert [p.dtype for p in places] == [torch.int64] * 2 and [p.tolist() for p in places] == [[0, 1], [3, 3]]


@pytest.mark.parametrize("name", ["fmax", "fmin", "maximum", "minimum"])
def test_equal_numbers_share_the_gradient(name):
    x, y = torch.tensor([1.0, 2.0, float("nan")], requires_grad=True), torch.tensor([1.0, 3.0, 3.0], requires_grad=True)
    getattr(torch, name)(x, y)[:1].sum().backward()
    assert x.grad.tolist() == y.grad.tolist() == [0.5, 0, 0]
