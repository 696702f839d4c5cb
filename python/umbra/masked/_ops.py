"""The reductions and normalisations of `umbra.masked`.

Each puts what changes nothing in the place of elements that are not there and calls the operator of the same name; where nothing of
that kind exists (mean, var), elements are counted.
"""
import builtins

import umbra
from umbra.masked import _masks, _sparse_reductions
from umbra.masked._masks import canonical_dims, fill_masked, input_mask, require_strided
from umbra.nn import functional

_reduction_identity = _masks.identity


# ---- reductions ----

def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Sum over `dim`, or over everything; 0 where nothing is there. Small integers add up to int64."""
    if input.layout != umbra.strided:
        return _sparse_reductions.reduced(sum, input, dim, keepdim, dtype, mask)
    dims = canonical_dims(dim, input.ndim)
    dtype = dtype or _masks.summed_type(input.dtype)
    return umbra.sum(fill_masked("sum", input, mask), dims, builtins.bool(keepdim), dtype=dtype)


def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Product over `dim`, which may be several; 1 where nothing is there."""
    if input.layout != umbra.strided:
        return _sparse_reductions.reduced(prod, input, dim, keepdim, dtype, mask)
    dims = canonical_dims(dim, input.ndim)
    result = fill_masked("prod", input, mask).to(dtype=dtype or _masks.summed_type(input.dtype))
    for d in reversed(dims):
        result = result.prod(dim=d, keepdim=builtins.bool(keepdim))
    return result


def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Greatest element; the type's least value where nothing is there."""
    if input.layout != umbra.strided:
        return _sparse_reductions.reduced(amax, input, dim, keepdim, dtype, mask)
    filled = fill_masked("amax", input, mask)
    return umbra.amax(filled, canonical_dims(dim, input.ndim), builtins.bool(keepdim)).to(dtype=dtype or input.dtype)


def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Least element; the type's greatest value where nothing is there."""
    if input.layout != umbra.strided:
        return _sparse_reductions.reduced(amin, input, dim, keepdim, dtype, mask)
    filled = fill_masked("amin", input, mask)
    return umbra.amin(filled, canonical_dims(dim, input.ndim), builtins.bool(keepdim)).to(dtype=dtype or input.dtype)


def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Place of the greatest element. It has the input's type unless `dtype` says otherwise, as in PyTorch."""
    require_strided("argmax", input)
    return umbra.argmax(fill_masked("argmax", input, mask), dim, builtins.bool(keepdim)).to(dtype=dtype or input.dtype)


def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Place of the least element. It has the input's type unless `dtype` says otherwise, as in PyTorch."""
    require_strided("argmin", input)
    return umbra.argmin(fill_masked("argmin", input, mask), dim, builtins.bool(keepdim)).to(dtype=dtype or input.dtype)


def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Logarithm of the sum of exponentials."""
    require_strided("logsumexp", input)
    dims = canonical_dims(dim, input.ndim)
    return umbra.logsumexp(fill_masked("logsumexp", input, mask), dims, keepdim=keepdim).to(dtype=dtype or input.dtype)


def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Vector norm of order `ord` over `dim`."""
    require_strided("norm", input)
    filled = fill_masked("norm", input, mask, ord)
    dims = canonical_dims(dim, input.ndim)
    return umbra.linalg.vector_norm(filled, ord, dims, builtins.bool(keepdim), dtype=dtype or input.dtype)


def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """Median along one dimension, the lower of two; nan where nothing is there, which integers cannot say."""
    require_strided("median", input)
    place = canonical_dims(dim, input.ndim)[0]
    floating = input.dtype.is_floating_point
    values = fill_masked("median", input if floating else input.to(dtype=umbra.float32), mask)
    result = umbra.nanmedian(values, place, keepdim).values
    if floating:
        return result
    if umbra.isnan(result).any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return result.to(dtype=dtype or input.dtype)


def _count_and_sum(input, dim, keepdim, dtype, mask):
    """How many elements are there, their sum, and the mask in the input's shape."""
    if mask is None:
        counted = umbra.ones(input.shape, dtype=umbra.int64, device=input.device)
        return sum(counted, dim, keepdim=keepdim), sum(input, dim, keepdim=keepdim, dtype=dtype), None
    mask = input_mask(input, mask)
    return mask.sum(dim=dim, keepdim=builtins.bool(keepdim)), sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask), mask


def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Mean over `dim`; nan where nothing is there."""
    wanted = dtype or input.dtype
    if not (wanted.is_floating_point or wanted.is_complex):
        source = "Input" if dtype is None else "Optional"
        raise ValueError(f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or complex dtype. Got: {wanted}")
    if input.layout != umbra.strided and input.layout != umbra.sparse_csr:
        raise ValueError(f"masked mean expects strided or sparse_csr tensor (got {input.layout} tensor)")
    if input.layout != umbra.strided:
        return _sparse_reductions.reduced(mean, input, dim, keepdim, dtype, mask)
    count, total, _ = _count_and_sum(input, dim, keepdim, wanted, mask)
    return total / count


def _floating(dtype):
    return dtype if dtype.is_floating_point or dtype.is_complex else umbra.float32


def _variance(input, dim, unbiased, correction, keepdim, dtype, mask):
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 0.0 if unbiased is False else 1.0
    if input.layout != umbra.strided:
        raise ValueError(f"masked std/var expects strided tensor (got {input.layout} tensor)")
    dtype = dtype or _floating(input.dtype)
    computed = _floating(dtype)
    count, total, mask = _count_and_sum(input, dim, True, dtype, mask)
    away = input - total / count
    squares = sum(away * away.conj(), dim, keepdim=keepdim, dtype=computed, mask=mask)
    if not keepdim:
        count = count.reshape(squares.shape)
    if correction != 0:
        count = count.to(computed.to_real())
        count = umbra.maximum(count - umbra.sym_float(correction), count.new_zeros([]))
    return (squares / count).to(dtype=dtype)


def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Variance over `dim`; nan where nothing is there."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask)


def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    """Standard deviation over `dim`; nan where nothing is there."""
    return umbra.sqrt(_variance(input, dim, unbiased, correction, keepdim, dtype, mask))


# ---- of each element ----

def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """Logarithm of the sum of two exponentials; each input has a mask of its own."""
    if input.layout != umbra.strided or other.layout != umbra.strided:
        raise ValueError(f"masked logaddexp expects strided tensors (got {input.layout} tensor for input, {other.layout} for other)")
    left, right = fill_masked("logaddexp", input, input_mask), fill_masked("logaddexp", other, other_mask)
    return umbra.logaddexp(left, right).to(dtype=dtype or input.dtype)


def _along(name, fill, input, dim, mask):
    """The filled tensor and the one dimension that a function of each element runs along."""
    require_strided(name, input)
    place = canonical_dims(dim, input.ndim)[0]
    return fill_masked(fill, input, mask), place


def cumsum(input, dim, *, dtype=None, mask=None):
    """Running sum along `dim`."""
    filled, place = _along("cumsum", "sum", input, dim, mask)
    dtype = dtype or input.dtype
    return umbra.cumsum(filled, place, dtype=dtype).to(dtype=dtype)


def cumprod(input, dim, *, dtype=None, mask=None):
    """Running product along `dim`."""
    filled, place = _along("cumprod", "prod", input, dim, mask)
    dtype = dtype or input.dtype
    return umbra.cumprod(filled, place, dtype=dtype).to(dtype=dtype)


def softmax(input, dim, *, dtype=None, mask=None):
    """Softmax of what is there; 0 elsewhere, nan where a whole line is not there."""
    filled, place = _along("softmax", "amax", input, dim, mask)
    return functional.softmax(filled, place, dtype=dtype or input.dtype)


def log_softmax(input, dim, *, dtype=None, mask=None):
    """Logarithm of the softmax of what is there."""
    filled, place = _along("log_softmax", "amax", input, dim, mask)
    return functional.log_softmax(filled, place, dtype=dtype or input.dtype)


def softmin(input, dim, *, dtype=None, mask=None):
    """Softmax of the negated elements that are there."""
    filled, place = _along("softmin", "amin", input, dim, mask)
    return functional.softmin(filled, place, dtype=dtype or input.dtype)


def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """What is there divided by its norm of order `ord` along `dim`, or by `eps` if that is more."""
    require_strided("normalize", input)
    filled = fill_masked("sum", input, mask)
    length = norm(input, ord, dim, keepdim=True, dtype=dtype or input.dtype, mask=mask)
    return umbra.divide(filled, umbra.maximum(length, length.new_full([], eps)))
