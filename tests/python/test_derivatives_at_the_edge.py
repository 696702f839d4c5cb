"""Derivatives where elements are equal, zero or no numbers, as PyTorch 2.15 gives them."""
import math

import pytest
import umbra as torch
import umbra.autograd.forward_ad as forward_ad

NAN, INF = math.nan, math.inf
F = torch.nn.functional


def tangent_of(function, x, tangent):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(function(forward_ad.make_dual(x, tangent))).tangent


def test_a_gradient_that_is_nan_reaches_the_chosen_element_alone():
    x = torch.tensor([1.0, 2, 2, NAN], requires_grad=True)
    x.median().cos().backward()
    assert x.grad[:3].tolist() == [0, 0, 0] and math.isnan(x.grad[3])
    x = torch.tensor([1.0, 5, 5], requires_grad=True)
    (x.max() * NAN).backward()
    assert x.grad[0] == 0 and x.grad[1:].isnan().all()


def test_prelu_at_zero():
    x, weight = torch.tensor([0.0], requires_grad=True), torch.tensor([0.2], requires_grad=True)
    first, = torch.autograd.grad(F.prelu(x, weight), x, create_graph=True)
    assert first.item() == pytest.approx(0.2)  # the derivative is the weight, that of the derivative is 1
    seed = torch.ones(1, requires_grad=True)
    back, = torch.autograd.grad(F.prelu(x, weight), x, seed, create_graph=True)
    assert torch.autograd.grad(back, seed)[0].item() == 1
    assert tangent_of(lambda t: F.prelu(t, weight.detach()), torch.zeros(1), torch.full((1,), 3.0)).item() == 3


def test_the_second_derivative_of_a_cross_entropy_at_its_ends():
    x = torch.tensor([0.0, 1.0, 0.5], requires_grad=True)
    first, = torch.autograd.grad(F.binary_cross_entropy(x, torch.tensor([0.0, 1.0, 0.5])), x, create_graph=True)
    assert torch.autograd.grad(first.sum(), x)[0].isfinite().all()


def test_a_row_of_zeros_has_the_tangent_that_it_is_given():
    x = torch.tensor([[0.0, -2], [0, 0]])
    found = tangent_of(lambda t: t.renorm(2, 0, 1.0), x, torch.full((2, 2), 0.5))
    assert found[1].tolist() == [0.5, 0.5]


def test_tangents_of_what_needs_no_gradient_need_none():
    x = torch.tensor([[1.0, 2], [3, 4]], dtype=torch.float64)
    assert not tangent_of(torch.linalg.matrix_exp, x, torch.ones_like(x)).requires_grad
    assert tangent_of(torch.linalg.matrix_exp, x.clone().requires_grad_(), torch.ones_like(x)).requires_grad
    assert tangent_of(torch.linalg.matrix_exp, x, torch.ones_like(x).requires_grad_()).requires_grad


TWICE = torch.tensor([0, 0, 1, 1])


@pytest.mark.parametrize("write", [
    lambda x: x.scatter(0, TWICE, x),
    lambda x: (x * 1).scatter_(0, TWICE, x),
    lambda x: x.index_copy(0, TWICE, x),
    lambda x: x.index_put((TWICE,), x),
    lambda x: x.put(TWICE, x),
], ids=["scatter", "scatter_", "index_copy", "index_put", "put"])
def test_a_place_that_is_written_twice_has_the_tangent_of_what_it_holds(write):
    x, tangent = torch.tensor([0.0, 1, 2, 3]), torch.tensor([1.0, 2, 3, 4])
    assert write(x).tolist() == [1, 3, 2, 3]
    assert tangent_of(write, x, tangent).tolist() == [2, 4, 3, 4]


def test_tangents_of_deviations_that_are_zero():
    tangent = tangent_of(lambda x: torch.std_mean(x * 0)[0], torch.arange(4.0), torch.ones(4))
    assert tangent.item() == 0


@pytest.mark.parametrize("call, name", [
    (lambda x: F.multi_margin_loss(x, torch.tensor([0, 1])), "multi_margin_loss"),
    (lambda x: torch.segment_reduce(x[0], "max", lengths=torch.tensor([2])), "segment_reduce"),
    (lambda x: F.ctc_loss(x.log_softmax(1), torch.tensor([1]), torch.tensor(2), torch.tensor(1)), "_ctc_loss"),
])
def test_an_operator_without_forward_mode_is_named(call, name):
    with pytest.raises(NotImplementedError, match=f"Trying to use forward AD with {name} that does not support it"):
        tangent_of(call, torch.rand(2, 2), torch.ones(2, 2))


def test_bags_have_no_second_derivative():
    table = torch.rand(2, 3, requires_grad=True)
    out = F.embedding_bag(torch.tensor([0, 1, 0]), table, torch.tensor([0, 2]))
    first, = torch.autograd.grad(out.square().sum(), table, create_graph=True)
    with pytest.raises(NotImplementedError, match="the derivative for '_embedding_bag_backward' is not implemented"):
        first.sum().backward()


def test_noise_is_kept_as_it_was_drawn():
    def slope(keep):
        torch.manual_seed(0)
        x = torch.linspace(-2, 1, 6).requires_grad_()
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
            torch.nn.functional.rrelu(x, training=True).sum().backward()
        return x.grad.tolist()

    assert slope(torch.clone) == slope(lambda t: t) and 0 < slope(torch.clone)[0] < 1


def test_what_a_custom_function_marks_as_dirty_counts_as_written():
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.detach().numpy().__imul__(2)  # which nobody else sees
            return x

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    y = torch.ones(2, requires_grad=True) * 1
    z = y.sin()
    Doubled.apply(y)
    assert y._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
