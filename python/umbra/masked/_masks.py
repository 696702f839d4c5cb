"""What the functions of `umbra.masked` share: the dimensions they are given, masks, and what stands where a mask has nothing."""
import umbra
from umbra.masked.maskedtensor.core import is_masked_tensor
from umbra.masked.maskedtensor.creation import as_masked_tensor

_SMALL_INTEGERS = {umbra.uint8, umbra.bool, umbra.int8, umbra.int16, umbra.int32}


def summed_type(dtype):
    """The type of sums and products of such elements where none is asked for."""
    return umbra.int64 if dtype in _SMALL_INTEGERS else dtype


def canonical_dims(dim, rank):
    """Dimensions as a sorted tuple of numbers from 0 on; all of them for None and ()."""
    if dim is None or dim == ():
        return tuple(range(rank))
    rank = max(rank, 1)
    found = []
    for d in (dim,) if isinstance(dim, (int, umbra.SymInt)) else dim:
        if d in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        if not -rank <= d < rank:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {d})")
        found.append(d % rank)
    return tuple(sorted(found))


def _extreme(tensor, name, sign):
    """The least (-1) or greatest (1) value of a tensor's type."""
    dtype = tensor.dtype
    if dtype.is_floating_point:
        return sign * umbra.inf
    if tensor.is_signed() or dtype == umbra.uint8:
        limits = umbra.iinfo(dtype)
        return limits.min if sign < 0 else limits.max
    raise NotImplementedError(f"identity of {name} on {dtype} input")


def identity(name, tensor, *arguments):
    """The value, as a tensor without dimensions, that changes nothing in the reduction `name`; None where there is none."""
    name = name.rsplit(".", 1)[-1]
    dtype = tensor.dtype
    if name in ("mean", "var", "std"):
        return None
    if name in ("sum", "cumsum"):
        value = 0
    elif name in ("prod", "cumprod"):
        value = 1
    elif name in ("amax", "argmax", "logaddexp", "logsumexp"):
        value = complex(-umbra.inf, 0) if name == "logsumexp" and dtype.is_complex else _extreme(tensor, name, -1)
    elif name in ("amin", "argmin"):
        value = _extreme(tensor, name, 1)
    elif name == "median":  # nanmedian leaves nan out
        value, dtype = umbra.nan, dtype if dtype.is_floating_point else umbra.float32
    elif name == "norm":
        value = umbra.inf if arguments and arguments[0] == -umbra.inf else 0
        if value and not dtype.is_floating_point:
            raise AssertionError(f"input must be floating point, got {dtype}")
    else:
        raise NotImplementedError(f"identity of {name} on {dtype} input")
    return umbra.tensor(value, dtype=dtype, device=tensor.device)


def input_mask(tensor, mask):
    """A mask of bools in the tensor's shape."""
    if tensor.layout != umbra.strided:
        raise NotImplementedError(f"torch.masked of a tensor of layout {tensor.layout} is not in Umbra yet")
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    if mask.layout != umbra.strided:
        mask = mask.to_dense()
    if mask.shape != tensor.shape:
        if mask.ndim > tensor.ndim:
            raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
        mask = umbra.broadcast_to(mask, tensor.shape)
    return mask.to(dtype=umbra.bool)


class _Fill(umbra.autograd.Function):
    """The data of a masked tensor with another value where nothing is there; the gradient gets the mask."""

    @staticmethod
    def forward(ctx, data, mask, value):
        ctx.save_for_backward(mask)
        return umbra.where(mask, data, value)

    @staticmethod
    def backward(ctx, grad):
        mask, = ctx.saved_tensors
        return as_masked_tensor(grad.get_data() if is_masked_tensor(grad) else grad, mask), None, None


def fill_masked(name, tensor, mask, *arguments):
    """The tensor with the identity of the reduction `name` where the mask has nothing; a masked tensor's mask is its own."""
    if is_masked_tensor(tensor):
        data = tensor.get_data()
        return _Fill.apply(data, tensor.get_mask(), identity(name, data, *arguments))
    if mask is None:
        return tensor
    return umbra.where(input_mask(tensor, mask), tensor, identity(name, tensor, *arguments))


def require_strided(name, *tensors):
    """Refuses what the function is not defined for."""
    for tensor in tensors:
        if tensor.layout != umbra.strided:
            raise ValueError(f"masked {name} expects strided tensor (got {tensor.layout} tensor)")
