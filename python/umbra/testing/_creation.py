"""Tensors to test with."""
import math
import warnings

import umbra

_FLOAT8 = (umbra.float8_e4m3fn, umbra.float8_e5m2, umbra.float8_e4m3fnuz, umbra.float8_e5m2fnuz)
_FLOATING = (umbra.float16, umbra.bfloat16, umbra.float32, umbra.float64, *_FLOAT8)
_COMPLEX = (umbra.complex32, umbra.complex64, umbra.complex128)
_UNSIGNED = (umbra.uint8, umbra.uint16, umbra.uint32, umbra.uint64)
_SIGNED = (umbra.int8, umbra.int16, umbra.int32, umbra.int64)


def _bounds(dtype):
    """The range of a type, without its end for whole numbers, and the one that is drawn from unless another one is asked for."""
    if dtype == umbra.bool:
        return (0, 2), (0, 2)
    if dtype in _UNSIGNED or dtype in _SIGNED:
        info = umbra.iinfo(dtype)
        return (info.min, min(info.max + 1, umbra.iinfo(umbra.int64).max)), (-9, 10)
    if dtype in _FLOATING or dtype in _COMPLEX:
        info = umbra.finfo(dtype)
        return (info.min, info.max), (-9, 9)
    raise TypeError(f"The requested dtype '{dtype}' is not supported by torch.testing.make_tensor(). To request support, file an issue at: "
                    "https://github.com/pytorch/pytorch/issues")


def _range(dtype, low, high):
    (least, largest), (usual_low, usual_high) = _bounds(dtype)
    low, high = usual_low if low is None else low, usual_high if high is None else high
    if any(isinstance(bound, float) and math.isnan(bound) for bound in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low!r} and high={high!r}")
    if low == high and (dtype in _FLOATING or dtype in _COMPLEX):
        warnings.warn("Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 and will be "
                      "removed in 2.3. Use `torch.full(...)` instead.", FutureWarning, stacklevel=3)
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if low > largest or high < least or (low >= largest or high <= least) and dtype not in _FLOATING and dtype not in _COMPLEX:
        raise ValueError(f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports [{least}, {largest})")
    low, high = max(low, least), min(high, largest)
    return (low, high) if dtype in _FLOATING or dtype in _COMPLEX else (math.ceil(low), math.ceil(high))


def _fill_uniformly(tensor, low, high):
    if high - low >= umbra.finfo(tensor.dtype).max:  # the range itself is no number of the type
        return tensor.uniform_(low / 2, high / 2).mul_(2)
    return tensor.uniform_(low, high)


def _drawn(shape, dtype, device, low, high):
    if dtype in _FLOAT8:
        return _fill_uniformly(umbra.empty(shape, dtype=umbra.float32, device=device), low, high).to(dtype)
    if dtype in _FLOATING:
        return _fill_uniformly(umbra.empty(shape, dtype=dtype, device=device), low, high)
    if dtype in _COMPLEX:
        drawn = umbra.empty(shape, dtype=dtype, device=device)
        _fill_uniformly(umbra.view_as_real(drawn), low, high)
        return drawn
    return umbra.randint(low, high, shape, dtype=dtype, device=device)


def make_tensor(*shape, dtype, device, low=None, high=None, requires_grad=False, noncontiguous=False, exclude_zero=False, memory_format=None):
    """A tensor of random numbers from [low, high), which are chosen by the type unless they are given.

        x = make_tensor((2, 3), dtype=torch.float32, device="cpu", low=-1, high=1)

    With `exclude_zero` the zeros among them become the least positive number; `noncontiguous` gives a tensor with steps."""
    shape = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    low, high = _range(dtype, low, high)
    is_whole = not (dtype in _FLOATING or dtype in _COMPLEX)
    if requires_grad and is_whole:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype!r}")
    if noncontiguous and memory_format is not None:
        raise ValueError("The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
                         f"noncontiguous={noncontiguous!r} and memory_format={memory_format!r}")
    if noncontiguous and math.prod(shape) > 1:
        result = _drawn((*shape[:-1], 2 * shape[-1]), dtype, device, low, high)[..., 1::2]
    else:
        result = _drawn(shape, dtype, device, low, high)
    if memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = 1 if is_whole else umbra.finfo(dtype).tiny
    return result.requires_grad_() if requires_grad else result
