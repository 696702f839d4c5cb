"""What distributions share: broadcasting of parameters, probabilities and logits, properties that are computed once."""
from functools import update_wrapper

import umbra
import umbra.nn.functional as F
from umbra.overrides import is_tensor_like

euler_constant = 0.57721566490153286060
__all__ = ["broadcast_all", "logits_to_probs", "clamp_probs", "probs_to_logits", "lazy_property", "tril_matrix_to_vec", "vec_to_tril_matrix"]


def broadcast_all(*values):
    """Tensors and numbers as tensors of one shape; numbers take the type of the first tensor, or the default type."""
    if not all(is_tensor_like(v) or isinstance(v, (int, float, complex)) for v in values):
        raise ValueError("Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__.")
    if not all(is_tensor_like(v) for v in values):
        options = {"dtype": umbra.get_default_dtype()}
        for v in values:
            if isinstance(v, umbra.Tensor):
                options = {"dtype": v.dtype, "device": v.device}
                break
        values = [v if is_tensor_like(v) else umbra.tensor(v, **options) for v in values]
    return umbra.broadcast_tensors(*values)


def _standard_normal(shape, dtype, device):
    return umbra.normal(umbra.zeros(shape, dtype=dtype, device=device), umbra.ones(shape, dtype=dtype, device=device))


def _sum_rightmost(value, dims):
    """The sum over the last `dims` dimensions."""
    if dims == 0:
        return value
    return value.reshape(value.shape[:-dims] + (-1,)).sum(-1)


def clamp_probs(probs):
    """Probabilities that stay away from 0 and 1 by the type's precision."""
    eps = umbra.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits, is_binary=False):
    return umbra.sigmoid(logits) if is_binary else F.softmax(logits, dim=-1)


def probs_to_logits(probs, is_binary=False):
    clamped = clamp_probs(probs)
    return umbra.log(clamped) - umbra.log1p(-clamped) if is_binary else umbra.log(clamped)


class lazy_property:
    """A property that is computed when it is first asked for, with gradients, and kept."""

    def __init__(self, wrapped):
        self.wrapped = wrapped
        update_wrapper(self, wrapped)

    def __get__(self, instance, owner=None):
        if instance is None:
            return _LazyPropertyAndProperty(self.wrapped)
        with umbra.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _LazyPropertyAndProperty(lazy_property, property):
    """What a class shows of a lazy property."""

    def __init__(self, wrapped):
        property.__init__(self, wrapped)


def tril_matrix_to_vec(mat, diag=0):
    """The elements of a lower triangle, row by row."""
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows = umbra.arange(n, device=mat.device)
    return mat[..., rows.view(-1, 1) + (diag + 1) > rows]


def vec_to_tril_matrix(vec, diag=0):
    """The other way round: zeros above the triangle."""
    count = vec.shape[-1]
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if not round(n) - n <= umbra.finfo(vec.dtype).eps:
        raise ValueError(f"The size of last dimension is {count} which cannot be expressed as the lower triangular part of a square D x D matrix.")
    n = round(n)
    mat = vec.new_zeros(vec.shape[:-1] + (n, n))
    rows = umbra.arange(n, device=vec.device)
    mat[..., rows.view(-1, 1) + (diag + 1) > rows] = vec
    return mat
