"""The Laplace distribution: exponential to both sides."""
import umbra
from umbra.distributions import constraints
from umbra.distributions.distribution import Distribution
from umbra.distributions.utils import broadcast_all

__all__ = ["Laplace"]


class Laplace(Distribution):
    """Two exponential distributions back to back."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    mean = mode = property(lambda self: self.loc)
    variance = property(lambda self: 2 * self.scale.pow(2))
    stddev = property(lambda self: 2**0.5 * self.scale)

    def expand(self, batch_shape, _instance=None):
        batch_shape = umbra.Size(batch_shape)
        return self._expanded(Laplace, batch_shape, _instance, {"loc": self.loc.expand(batch_shape), "scale": self.scale.expand(batch_shape)})

    def rsample(self, sample_shape=umbra.Size()):
        eps = umbra.finfo(self.loc.dtype).eps
        u = umbra.empty(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device).uniform_(eps - 1, 1)
        return self.loc - self.scale * u.sign() * umbra.log1p(-u.abs())

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return -umbra.log(2 * self.scale) - umbra.abs(value - self.loc) / self.scale

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return 0.5 - 0.5 * (value - self.loc).sign() * umbra.expm1(-(value - self.loc).abs() / self.scale)

    def icdf(self, value):
        term = value - 0.5
        return self.loc - self.scale * term.sign() * umbra.log1p(-2 * term.abs())

    def entropy(self):
        return 1 + umbra.log(2 * self.scale)
