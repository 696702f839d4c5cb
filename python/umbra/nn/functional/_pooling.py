"""Pooling, and what takes it back."""
import math

import umbra
from umbra.nn.functional._publish import publish


def _max_pool(dims):
    """The function, and the one that gives the places of the maxima as well."""
    name = f"max_pool{dims}d"

    def max_pool(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        operator = getattr(umbra._C._nn, name + "_with_indices") if return_indices else getattr(umbra, name)
        return operator(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)

    def with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        return max_pool(input, kernel_size, stride, padding, dilation, ceil_mode, True)
    max_pool.__name__ = max_pool.__qualname__ = name
    max_pool.__doc__ = "The largest element of each window; with `return_indices` also where it lies."
    with_indices.__doc__ = "The largest element of each window, and where it lies."
    with_indices.__name__ = with_indices.__qualname__ = name + "_with_indices"
    return max_pool, with_indices


max_pool1d, max_pool1d_with_indices = _max_pool(1)
max_pool2d, max_pool2d_with_indices = _max_pool(2)
max_pool3d, max_pool3d_with_indices = _max_pool(3)


def _sizes_or_own(output_size, input):
    """`output_size` for each dimension; None stands for the input's own size. Of one number the operator says what is wrong."""
    if isinstance(output_size, int):
        return output_size
    sizes = list(output_size) if isinstance(output_size, (tuple, list)) else [output_size] * len(output_size)
    if input.dim() <= len(sizes):
        raise ValueError(f"Input dimension should be at least {len(sizes) + 1}")
    return [own if size is None else size for size, own in zip(sizes, input.shape[-len(sizes):])]


def adaptive_avg_pool2d(input, output_size):
    """Means, down to a given size."""
    return umbra._C._nn.adaptive_avg_pool2d(input, _sizes_or_own(output_size, input))


def adaptive_avg_pool3d(input, output_size):
    """Means, down to a given size."""
    return umbra._C._nn.adaptive_avg_pool3d(input, _sizes_or_own(output_size, input))


def _adaptive_max_pool(dims):
    name = f"adaptive_max_pool{dims}d"

    def with_indices(input, output_size, return_indices=False):
        if dims == 1:  # no size of its own is kept here
            return umbra.adaptive_max_pool1d(input, output_size)
        return getattr(umbra._C._nn, name)(input, _sizes_or_own(output_size, input))

    def adaptive_max_pool(input, output_size, return_indices=False):
        out, indices = with_indices(input, output_size)
        return (out, indices) if return_indices else out
    adaptive_max_pool.__doc__ = "The largest elements, down to a given size; with `return_indices` also where they lie."
    with_indices.__doc__ = "The largest elements, down to a given size, and where they lie."
    adaptive_max_pool.__name__ = adaptive_max_pool.__qualname__ = name
    with_indices.__name__ = with_indices.__qualname__ = name + "_with_indices"
    return adaptive_max_pool, with_indices


adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _adaptive_max_pool(1)
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _adaptive_max_pool(2)
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _adaptive_max_pool(3)


def _fractional_max_pool(dims):
    name = f"fractional_max_pool{dims}d"

    def with_indices(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if output_size is None:
            ratio = output_ratio if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * dims
            if len(ratio) > dims:
                raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
            output_size = [int(size * share) for size, share in zip(input.shape[-dims:], ratio)]
        sizes = list(output_size) if isinstance(output_size, (tuple, list)) else [output_size] * dims
        kernel = list(kernel_size) if isinstance(kernel_size, (tuple, list)) else [kernel_size] * dims
        if _random_samples is None:
            batch = 1 if input.dim() == dims + 1 else input.size(0)
            _random_samples = umbra.rand(batch, input.size(-dims - 1), dims, dtype=input.dtype, device=input.device)
        return getattr(umbra._C._nn, name)(input, kernel, sizes, _random_samples)

    def fractional_max_pool(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        out, indices = with_indices(input, kernel_size, output_size, output_ratio, True, _random_samples)
        return (out, indices) if return_indices else out
    fractional_max_pool.__doc__ = "The largest elements of windows whose places are drawn at random, down to a size or a share of it."
    with_indices.__doc__ = fractional_max_pool.__doc__[:-1] + "; and where they lie."
    fractional_max_pool.__name__ = fractional_max_pool.__qualname__ = name
    with_indices.__name__ = with_indices.__qualname__ = name + "_with_indices"
    return fractional_max_pool, with_indices


fractional_max_pool2d, fractional_max_pool2d_with_indices = _fractional_max_pool(2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _fractional_max_pool(3)


def _each(value, dims):
    return list(value) if isinstance(value, (tuple, list)) else [value] * dims


def _unpooled_size(input, kernel, stride, padding, output_size):
    """The size that was pooled: the plain one, or the one that is given, if it is near enough."""
    dims = len(kernel)
    plain = [(size - 1) * s + k - 2 * p for size, s, k, p in zip(input.shape[-dims:], stride, kernel, padding)]
    if output_size is None:
        return plain
    if len(output_size) == dims + 2:
        output_size = output_size[2:]
    if len(output_size) != dims:
        raise ValueError(f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it has a length of '{len(output_size)}'")
    for size, wanted, step in zip(output_size, plain, stride):
        if not wanted - step < size < wanted + step:
            least, most = [w - s for w, s in zip(plain, stride)], [w + s for w, s in zip(plain, stride)]
            raise ValueError(f'invalid output_size "{output_size}" (dim 0 must be between {least[0]} and {most[0]})')
    return list(output_size)


def _unpool(dims):
    name = f"max_unpool{dims}d"

    def max_unpool(input, indices, kernel_size, stride=None, padding=0, output_size=None):
        kernel, padding = _each(kernel_size, dims), _each(padding, dims)
        stride = kernel if stride is None else _each(stride, dims)
        size = _unpooled_size(input, kernel, stride, padding, output_size)
        if dims == 1:
            return umbra._C._nn.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), size + [1]).squeeze(-1)
        if dims == 2:
            return umbra._C._nn.max_unpool2d(input, indices, size)
        return umbra._C._nn.max_unpool3d(input, indices, size, stride, padding)
    max_unpool.__doc__ = "Maxima put back where they lay, among zeros."
    max_unpool.__name__ = max_unpool.__qualname__ = name
    return max_unpool


max_unpool1d, max_unpool2d, max_unpool3d = map(_unpool, (1, 2, 3))


def _lp_pool(dims):
    def lp_pool(input, norm_type, kernel_size, stride=None, ceil_mode=False):
        if isinstance(norm_type, (int, float)):
            if norm_type == 0:
                raise ValueError(f"norm_type must be a non-zero value, but got {norm_type}")
            if math.isinf(norm_type):
                size = input.abs() if norm_type > 0 else -input.abs()
                largest = globals()[f"max_pool{dims}d"](size, kernel_size, stride, 0, 1, ceil_mode)
                return largest if norm_type > 0 else -largest
        count = math.prod(_each(kernel_size, dims))
        powers = input.pow(norm_type)
        average = getattr(umbra._C._nn, f"avg_pool{dims}d")(powers, _each(kernel_size, dims), [] if stride is None else _each(stride, dims), [0] * dims,
                                                              ceil_mode)
        return (umbra.sign(average) * umbra.relu(umbra.abs(average))).mul(count).pow(1.0 / norm_type)
    lp_pool.__doc__ = "The root of the sum of powers in each window."
    lp_pool.__name__ = lp_pool.__qualname__ = f"lp_pool{dims}d"
    return lp_pool


lp_pool1d, lp_pool2d, lp_pool3d = map(_lp_pool, (1, 2, 3))


def adaptive_avg_pool1d(input, output_size):
    """Means, down to a given size."""
    return umbra.adaptive_avg_pool1d(input, output_size)


publish(globals())
