"""The gamma distribution."""
import umbra
from umbra.distributions import constraints
from umbra.distributions.exp_family import ExponentialFamily
from umbra.distributions.utils import broadcast_all

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """By shape `concentration` and inverse scale `rate`."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration, rate, validate_args=None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate.pow(2))

    def expand(self, batch_shape, _instance=None):
        batch_shape = umbra.Size(batch_shape)
        return self._expanded(Gamma, batch_shape, _instance, {
            "concentration": self.concentration.expand(batch_shape), "rate": self.rate.expand(batch_shape)})

    def sample(self, sample_shape=umbra.Size(), *, generator=None):
        with umbra.no_grad():
            return self.rsample(sample_shape, generator)

    def rsample(self, sample_shape=umbra.Size(), generator=None):
        shape = self._extended_shape(sample_shape)
        value = umbra._standard_gamma(self.concentration.expand(shape), generator=generator) / self.rate.expand(shape)
        value.detach().clamp_(min=umbra.finfo(value.dtype).tiny)  # 0 has no density
        return value

    def log_prob(self, value):
        value = umbra.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        return (umbra.xlogy(self.concentration, self.rate) + umbra.xlogy(self.concentration - 1, value) - self.rate * value
                - umbra.lgamma(self.concentration))

    def entropy(self):
        return (self.concentration - umbra.log(self.rate) + umbra.lgamma(self.concentration)
                + (1.0 - self.concentration) * umbra.digamma(self.concentration))

    @property
    def _natural_params(self):
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x, y):
        return umbra.lgamma(x + 1) + (x + 1) * umbra.log(-y.reciprocal())

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return umbra.special.gammainc(self.concentration, self.rate * value)
