"""Masked tensors of data and mask."""
import umbra
from umbra.masked.maskedtensor.core import MaskedTensor

__all__ = ["as_masked_tensor", "masked_tensor"]


class _Make(umbra.autograd.Function):
    """The gradient of the data is that of the masked tensor."""

    @staticmethod
    def forward(_, data, mask):
        return MaskedTensor(data, mask)

    @staticmethod
    def backward(_, grad):
        return grad, None


def masked_tensor(data, mask, requires_grad=False):
    """A masked tensor without history, of copies of data and mask."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data, mask):
    """A masked tensor whose gradient reaches the data."""
    return _Make.apply(data, mask)
