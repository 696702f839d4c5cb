"""Reductions and normalisations that leave out the elements a mask says are not there.

    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    torch.masked.sum(x, 1, mask=torch.tensor([[True, False], [True, True]]))      # tensor([1., 7.])

The mask has the tensor's shape or one that can be expanded to it; `True` is there. Where nothing is, a reduction gives its
identity (0 for a sum), or nan if it has none.
"""
from umbra import _modules
from umbra.masked.maskedtensor.core import MaskedTensor, is_masked_tensor  # noqa: F401
from umbra.masked.maskedtensor.creation import as_masked_tensor, masked_tensor  # noqa: F401
from umbra.masked._ops import (  # noqa: F401
    amax, amin, argmax, argmin, cumprod, cumsum, log_softmax, logaddexp, logsumexp, mean, median, norm, normalize, prod, softmax, softmin, std,
    sum, var)

__all__ = [
    "MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor", "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median", "norm", "normalize", "prod",
    "softmax", "softmin", "std", "sum", "var"]

__getattr__ = _modules.lazy_submodules(__name__)
