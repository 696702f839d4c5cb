"""Dropout, of elements and of whole channels."""
from umbra.nn.functional._dropout import _check_probability
from umbra.nn.modules._functional_members import Functional
from umbra.nn.modules.module import Module


class _DropoutNd(Module):
    _function = None

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        _check_probability(p)
        self.p, self.inplace = p, inplace

    def forward(self, input):
        return self._function(input, self.p, self.training, self.inplace)

    def extra_repr(self):
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Zeroes elements with probability p in training, and scales the others up."""
    _function = Functional("dropout")


class Dropout1d(_DropoutNd):
    """Zeroes whole channels of signals with probability p in training, and scales the others up."""
    _function = Functional("dropout1d")


class Dropout2d(_DropoutNd):
    """Zeroes whole channels of images with probability p in training, and scales the others up."""
    _function = Functional("dropout2d")


class Dropout3d(_DropoutNd):
    """Zeroes whole channels of volumes with probability p in training, and scales the others up."""
    _function = Functional("dropout3d")


class _OutOfPlace(_DropoutNd):
    def forward(self, input):
        return self._function(input, self.p, self.training)  # never in place, whatever `inplace` says: so in PyTorch


class AlphaDropout(_OutOfPlace):
    """Dropout that keeps mean and variance, for networks of SELU. `inplace` is shown and has no effect."""
    _function = Functional("alpha_dropout")


class FeatureAlphaDropout(_OutOfPlace):
    """Alpha dropout of whole channels. `inplace` is shown and has no effect."""
    _function = Functional("feature_alpha_dropout")
