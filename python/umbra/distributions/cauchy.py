"""The Cauchy distribution, which has no mean."""
import math

import umbra
from umbra.distributions import constraints
from umbra.distributions.distribution import Distribution
from umbra.distributions.utils import broadcast_all

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """The ratio of two normal numbers: tails so heavy that there is no mean."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        batch_shape = umbra.Size(batch_shape)
        return self._expanded(Cauchy, batch_shape, _instance, {"loc": self.loc.expand(batch_shape), "scale": self.scale.expand(batch_shape)})

    def _everywhere(self, value):
        return umbra.full(self._extended_shape(), value, dtype=self.loc.dtype, device=self.loc.device)

    mean = property(lambda self: self._everywhere(math.nan))
    mode = property(lambda self: self.loc)
    variance = property(lambda self: self._everywhere(math.inf))

    def rsample(self, sample_shape=umbra.Size()):
        eps = umbra.empty(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device).cauchy_()
        return self.loc + eps * self.scale

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return umbra.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value):
        return umbra.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self):
        return math.log(4 * math.pi) + self.scale.log()
