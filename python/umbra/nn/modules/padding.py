"""Padding as a layer."""
from umbra.nn import functional as F
from umbra.nn.modules.module import Module
from umbra.nn.modules.utils import own_constructors


class _Pad(Module):
    _dims, _mode = 0, "constant"

    def __init__(self, padding):
        super().__init__()
        self.padding = tuple(padding) if isinstance(padding, (tuple, list)) else (padding,) * (2 * self._dims)

    def forward(self, input):
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self):
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class _Zero:
    """Padding by the constant 0, over a class that pads by any constant."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class _ReflectionPadNd(_Pad):
    _mode = "reflect"


class _ReplicationPadNd(_Pad):
    _mode = "replicate"


class _CircularPadNd(_Pad):
    _mode = "circular"

    def _check_input_dim(self, input):
        if input.dim() != self._dims + 1 and input.dim() != self._dims + 2:
            raise ValueError(f"expected {self._dims + 1}D or {self._dims + 2}D input (got {input.dim()}D input)")

    def forward(self, input):
        self._check_input_dim(input)
        return F.pad(input, self.padding, self._mode)


class ConstantPad1d(_ConstantPadNd):
    """Margins of one number around signals."""
    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Margins of one number around images."""
    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Margins of one number around volumes."""
    _dims = 3


class ZeroPad1d(_Zero, ConstantPad1d):
    """Margins of zeros around signals."""


class ZeroPad2d(_Zero, ConstantPad2d):
    """Margins of zeros around images."""


class ZeroPad3d(_Zero, ConstantPad3d):
    """Margins of zeros around volumes."""


class ReflectionPad1d(_ReflectionPadNd):
    """Margins around signals that mirror what is next to the border."""
    _dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Margins around images that mirror what is next to the border."""
    _dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Margins around volumes that mirror what is next to the border."""
    _dims = 3


class ReplicationPad1d(_ReplicationPadNd):
    """Margins around signals that repeat the border."""
    _dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Margins around images that repeat the border."""
    _dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Margins around volumes that repeat the border."""
    _dims = 3


class CircularPad1d(_CircularPadNd):
    """Margins around signals of what is at the other end."""
    _dims = 1


class CircularPad2d(_CircularPadNd):
    """Margins around images of what is at the other end."""
    _dims = 2


class CircularPad3d(_CircularPadNd):
    """Margins around volumes of what is at the other end."""
    _dims = 3


own_constructors(CircularPad1d, CircularPad2d, CircularPad3d, ConstantPad1d, ConstantPad2d, ConstantPad3d, ReflectionPad1d, ReflectionPad2d,
                 ReflectionPad3d, ReplicationPad1d, ReplicationPad2d, ReplicationPad3d, ZeroPad1d, ZeroPad2d, ZeroPad3d)
