"""Functions of the package whose defaults and limits are not those of the operators they call."""
import warnings

import pytest
import umbra as torch

F = torch.nn.functional


def test_losses_of_the_package_do_not_reduce_unless_they_are_told_to():
    x, y = torch.rand(4), torch.rand(4)
    assert torch.kl_div(x, y).shape == (4,) and torch.hinge_embedding_loss(x, y).shape == (4,) and torch.kl_div(x, y, reduction=1).shape == ()
    assert torch.ops.aten.kl_div(x, y).shape == () and F.kl_div(x, y, reduction="sum").shape == ()


def test_resize_keeps_elements_and_gradients():
    x = torch.arange(6.0, requires_grad=True)
    with pytest.warns(UserWarning, match="non-inplace resize is deprecated"):
        x.resize(2, 3).sum().backward()
    assert x.grad.tolist() == [1] * 6
    with pytest.raises(RuntimeError, match="requested resize to 7 \\(7 elements in total\\)"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x.resize(7)
