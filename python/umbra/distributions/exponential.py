"""Waiting times at a constant rate."""
import umbra
from umbra.distributions import constraints
from umbra.distributions.exp_family import ExponentialFamily
from umbra.distributions.utils import broadcast_all

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """Times between events that come at a `rate`."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, rate, validate_args=None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    mean = property(lambda self: self.rate.reciprocal())
    mode = property(lambda self: umbra.zeros_like(self.rate))
    stddev = property(lambda self: self.rate.reciprocal())
    variance = property(lambda self: self.rate.pow(-2))

    def expand(self, batch_shape, _instance=None):
        batch_shape = umbra.Size(batch_shape)
        return self._expanded(Exponential, batch_shape, _instance, {"rate": self.rate.expand(batch_shape)})

    def rsample(self, sample_shape=umbra.Size()):
        shape = self._extended_shape(sample_shape)
        return umbra.empty(shape, dtype=self.rate.dtype, device=self.rate.device).exponential_() / self.rate

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return 1 - umbra.exp(-self.rate * value)

    def icdf(self, value):
        return -umbra.log1p(-value) / self.rate

    def entropy(self):
        return 1.0 - umbra.log(self.rate)

    @property
    def _natural_params(self):
        return (-self.rate,)

    def _log_normalizer(self, x):
        return -umbra.log(-x)
