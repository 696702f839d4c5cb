"""Tensors that carry a mask of their own: `MaskedTensor` and what makes one."""
from umbra.masked.maskedtensor.core import MaskedTensor, is_masked_tensor  # noqa: F401
from umbra.masked.maskedtensor.creation import as_masked_tensor, masked_tensor  # noqa: F401

__all__: list[str] = []
