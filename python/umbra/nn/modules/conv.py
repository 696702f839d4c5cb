"""Convolutions."""
import math
from typing import Any

import umbra
from umbra.nn import functional as F
from umbra.nn import init
from umbra.nn.modules.lazy import LazyModuleMixin
from umbra.nn.modules.module import Module
from umbra.nn.modules.utils import own_constructors
from umbra.nn.parameter import Parameter, UninitializedParameter


def _spread(value, count):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


class _ConvNd(Module):
    _dimensions = 0
    transposed = False

    def __init__(self, in_channels, out_channels, kernel_size, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups=1, bias=True, padding_mode="zeros",
                 device=None, dtype=None):
        super().__init__()
        n = self._dimensions
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}")
        if padding == "same" and any(s != 1 for s in _spread(stride, n)):
            raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(f"padding_mode must be one of {{'zeros', 'reflect', 'replicate', 'circular'}}, but got padding_mode='{padding_mode}'")
        self.in_channels, self.out_channels, self.groups, self.padding_mode = in_channels, out_channels, groups, padding_mode
        self.kernel_size, self.stride, self.dilation = _spread(kernel_size, n), _spread(stride, n), _spread(dilation, n)
        self.padding = padding if isinstance(padding, str) else _spread(padding, n)
        self.output_padding, self.transposed = (0,) * n, self.transposed
        self._reversed_padding_repeated_twice = self._around()
        channels = (in_channels, out_channels // groups) if self.transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(umbra.empty((*channels, *self.kernel_size), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(umbra.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self):
        n = self._dimensions
        out = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * n:
            out += f", padding={self.padding}"
        if self.dilation != (1,) * n:
            out += f", dilation={self.dilation}"
        if self.output_padding != (0,) * n:
            out += f", output_padding={self.output_padding}"
        if self.groups != 1:
            out += f", groups={self.groups}"
        if self.bias is None:
            out += ", bias=False"
        if self.padding_mode != "zeros":
            out += f", padding_mode={self.padding_mode}"
        return out

    def _around(self):
        """How much goes before and after each dimension, from the last one on."""
        if self.padding == "valid":
            return [0, 0] * self._dimensions
        if self.padding == "same":
            totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
            return [part for total in reversed(totals) for part in (total // 2, total - total // 2)]
        return [p for p in reversed(self.padding) for _ in (0, 1)]

    def _convolve(self, operator, input, weight, bias):
        if self.padding_mode == "zeros":
            return operator(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        return operator(F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode), weight, bias, self.stride, (0,) * self._dimensions,
                        self.dilation, self.groups)


class Conv1d(_ConvNd):
    """A convolution over signals."""
    _dimensions = 1

    def _conv_forward(self, input, weight, bias):  # layers of packages call and replace it
        return self._convolve(F.conv1d, input, weight, bias)

    def forward(self, input):
        return self._conv_forward(input, self.weight, self.bias)


class Conv2d(_ConvNd):
    """A convolution over images."""
    _dimensions = 2

    def _conv_forward(self, input, weight, bias):  # layers of packages call and replace it
        return self._convolve(F.conv2d, input, weight, bias)

    def forward(self, input):
        return self._conv_forward(input, self.weight, self.bias)


class Conv3d(_ConvNd):
    """A convolution over volumes."""
    _dimensions = 3

    def _conv_forward(self, input, weight, bias):  # layers of packages call and replace it
        return self._convolve(F.conv3d, input, weight, bias)

    def forward(self, input):
        return self._conv_forward(input, self.weight, self.bias)


class _ConvTransposeNd(_ConvNd):
    transposed = True

    def __init__(self, in_channels, out_channels, kernel_size, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups=1, bias=True, dilation: Any = 1,
                 padding_mode="zeros", device=None, dtype=None):
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype)
        self.output_padding = _spread(output_padding, self._dimensions)

    def _output_padding(self, input, output_size, stride, padding, kernel_size, num_spatial_dims, dilation=None):
        if output_size is None:
            return self.output_padding
        n = num_spatial_dims
        dilation = (1,) * n if dilation is None else dilation
        if len(output_size) not in (n, input.dim()):
            raise ValueError(f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or {input.dim()} elements (got "
                             f"{len(output_size)})")
        wanted = list(output_size[-n:])
        least = [(input.size(i - n) - 1) * stride[i] - 2 * padding[i] + dilation[i] * (kernel_size[i] - 1) + 1 for i in range(n)]
        most = [size + step - 1 for size, step in zip(least, stride)]
        if any(not low <= size <= high for low, size, high in zip(least, wanted, most)):
            raise ValueError(f"requested an output size of {wanted}, but valid sizes range from {least} to {most} (for an input of "
                             f"{input.size()[-n:]})")
        return [size - low for size, low in zip(wanted, least)]

    def forward(self, input, output_size=None):
        operator = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[self._dimensions - 1]
        output_padding = self._output_padding(input, output_size, self.stride, self.padding, self.kernel_size, self._dimensions, self.dilation)
        return operator(input, self.weight, self.bias, self.stride, self.padding, output_padding, self.groups, self.dilation)


class _ConvTransposeMixin:
    """What packages still ask for; no layer is one."""


class ConvTranspose1d(_ConvTransposeNd):
    """The gradient of a convolution over signals as a layer: it makes them larger."""
    _dimensions = 1


class ConvTranspose2d(_ConvTransposeNd):
    """The gradient of a convolution over images as a layer: it makes them larger."""
    _dimensions = 2


class ConvTranspose3d(_ConvTransposeNd):
    """The gradient of a convolution over volumes as a layer: it makes them larger."""
    _dimensions = 3


# ---- convolutions whose channels are those of their first input ----

class _LazyConvXdMixin(LazyModuleMixin):
    def _make_lazy(self, out_channels, bias, device, dtype):
        """After the module was made for no channels at all."""
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self):
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input, *_, output_size=None):  # what ConvTranspose is called with
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        with umbra.no_grad():
            channels = ((self.in_channels, self.out_channels // self.groups) if self.transposed
                        else (self.out_channels, self.in_channels // self.groups))
            self.weight.materialize((*channels, *self.kernel_size))
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()

    def _get_num_spatial_dims(self):
        return self._dimensions

    def _get_in_channels(self, input):
        n = self._get_num_spatial_dims()
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {type(self).__name__}, but got input of size: "
                               f"{input.shape}")
        return input.shape[1] if input.dim() == n + 2 else input.shape[0]


class _LazyConv(_LazyConvXdMixin):
    def __init__(self, out_channels, kernel_size, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups=1, bias=True, padding_mode="zeros", device=None, dtype=None):
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._make_lazy(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConvXdMixin):
    def __init__(self, out_channels, kernel_size, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups=1, bias=True, dilation: Any = 1, padding_mode="zeros",
                 device=None, dtype=None):
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode)
        self._make_lazy(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """A convolution over signals whose number of channels is that of its first input."""
    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A convolution over images whose number of channels is that of its first input."""
    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A convolution over volumes whose number of channels is that of its first input."""
    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A transposed convolution over signals whose number of channels is that of its first input."""
    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A transposed convolution over images whose number of channels is that of its first input."""
    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A transposed convolution over volumes whose number of channels is that of its first input."""
    cls_to_become = ConvTranspose3d


own_constructors(Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, LazyConv1d, LazyConv2d, LazyConv3d, LazyConvTranspose1d,
                 LazyConvTranspose2d, LazyConvTranspose3d)
