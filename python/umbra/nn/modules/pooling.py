"""Pooling over one to three dimensions."""
from typing import Any

from umbra.nn import functional as F
from umbra.nn.modules._functional_members import Functional
from umbra.nn.modules.module import Module
from umbra.nn.modules.utils import own_constructors


class _Pool(Module):
    def extra_repr(self):
        return ", ".join(f"{name}={getattr(self, name)}" for name in self._shown)


class _MaxPoolNd(_Pool):
    _shown = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")

    def __init__(self, kernel_size, stride=None, padding: Any = 0, dilation: Any = 1, return_indices=False, ceil_mode=False):
        super().__init__()
        self.kernel_size, self.stride, self.padding, self.dilation = kernel_size, kernel_size if stride is None else stride, padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input):
        return self._pool(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices)


class MaxPool1d(_MaxPoolNd):
    """The maximum of each window of signals."""
    _pool = Functional("max_pool1d")


class MaxPool2d(_MaxPoolNd):
    """The maximum of each window of images."""
    _pool = Functional("max_pool2d")


class MaxPool3d(_MaxPoolNd):
    """The maximum of each window of volumes."""
    _pool = Functional("max_pool3d")


class _MaxUnpoolNd(_Pool):
    _shown = ("kernel_size", "stride", "padding")
    _dims = 0

    def __init__(self, kernel_size, stride=None, padding: Any = 0):
        super().__init__()
        self.kernel_size = self._each(kernel_size)
        self.stride = self._each(kernel_size if stride is None else stride)
        self.padding = self._each(padding)

    def _each(self, value):
        return tuple(value) if isinstance(value, (tuple, list)) else (value,) * self._dims

    def forward(self, input, indices, output_size=None):
        return self._unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpoolNd):
    """Puts the maxima that MaxPool found in signals back to their places; all else is zero."""
    _dims, _unpool = 1, Functional("max_unpool1d")


class MaxUnpool2d(_MaxUnpoolNd):
    """Puts the maxima that MaxPool found in images back to their places; all else is zero."""
    _dims, _unpool = 2, Functional("max_unpool2d")


class MaxUnpool3d(_MaxUnpoolNd):
    """Puts the maxima that MaxPool found in volumes back to their places; all else is zero."""
    _dims, _unpool = 3, Functional("max_unpool3d")


class _AvgPoolNd(_Pool):
    _shown = ("kernel_size", "stride", "padding")


class AvgPool1d(_AvgPoolNd):
    """The mean of each window of signals."""

    def __init__(self, kernel_size, stride=None, padding: Any = 0, ceil_mode=False, count_include_pad=True):
        super().__init__()
        self.kernel_size, self.stride, self.padding = (
            (value,) if isinstance(value, int) else value for value in (kernel_size, kernel_size if stride is None else stride, padding))
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input):
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AvgPoolOfPlaces(_AvgPoolNd):
    """Averages over places of two and three dimensions, whose divisor can be given."""

    def __init__(self, kernel_size, stride=None, padding: Any = 0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, kernel_size if stride is None else stride, padding
        self.ceil_mode, self.count_include_pad, self.divisor_override = ceil_mode, count_include_pad, divisor_override

    def forward(self, input):
        return self._pool(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override)


class AvgPool2d(_AvgPoolOfPlaces):
    """The mean of each window of images."""
    _pool = Functional("avg_pool2d")


class AvgPool3d(_AvgPoolOfPlaces):
    """The mean of each window of volumes."""
    _pool = Functional("avg_pool3d")


class _FractionalMaxPool(Module):
    _dims = 0

    def __init__(self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        super().__init__()
        each = lambda value: tuple(value) if isinstance(value, (tuple, list)) else (value,) * self._dims  # noqa: E731
        self.kernel_size, self.return_indices = each(kernel_size), return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = each(output_size) if output_size is not None else None
        self.output_ratio = each(output_ratio) if output_ratio is not None else None
        name = type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input):
        return self._pool(input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPool):
    """The maximum of each window of images, at places that are drawn."""
    _dims, _pool = 2, Functional("fractional_max_pool2d")


class FractionalMaxPool3d(_FractionalMaxPool):
    """The maximum of each window of volumes, at places that are drawn."""
    _dims, _pool = 3, Functional("fractional_max_pool3d")


class _LPPoolNd(_Pool):
    _shown = ("norm_type", "kernel_size", "stride", "ceil_mode")

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        if norm_type == 0:
            raise ValueError(f"norm_type must be a non-zero value, but got {norm_type}")
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input):
        return self._pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool1d(_LPPoolNd):
    """The root of the sum of powers of each window of signals."""
    _pool = Functional("lp_pool1d")


class LPPool2d(_LPPoolNd):
    """The root of the sum of powers of each window of images."""
    _pool = Functional("lp_pool2d")


class LPPool3d(_LPPoolNd):
    """The root of the sum of powers of each window of volumes."""
    _pool = Functional("lp_pool3d")


class _AdaptiveAvgPoolNd(_Pool):
    _shown = ("output_size",)

    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def forward(self, input):
        return self._pool(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Means over signals, down to a given size."""
    _pool = Functional("adaptive_avg_pool1d")


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Means over images, down to a given size."""
    _pool = Functional("adaptive_avg_pool2d")


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Means over volumes, down to a given size."""
    _pool = Functional("adaptive_avg_pool3d")


class _AdaptiveMaxPoolNd(_Pool):
    _shown = ("output_size",)

    def __init__(self, output_size, return_indices=False):
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input):
        return self._pool(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maxima over signals, down to a given size."""
    _pool = Functional("adaptive_max_pool1d")


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maxima over images, down to a given size."""
    _pool = Functional("adaptive_max_pool2d")


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maxima over volumes, down to a given size."""
    _pool = Functional("adaptive_max_pool3d")


own_constructors(AvgPool2d, AvgPool3d, FractionalMaxPool2d, FractionalMaxPool3d, MaxUnpool1d, MaxUnpool2d, MaxUnpool3d)
