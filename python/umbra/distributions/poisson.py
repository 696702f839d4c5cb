"""How many events happen at a rate."""
import umbra
from umbra.distributions import constraints
from umbra.distributions.exp_family import ExponentialFamily
from umbra.distributions.utils import broadcast_all

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """How many events there are when `rate` are expected."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate, validate_args=None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    mean = variance = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())

    def expand(self, batch_shape, _instance=None):
        batch_shape = umbra.Size(batch_shape)
        return self._expanded(Poisson, batch_shape, _instance, {"rate": self.rate.expand(batch_shape)})

    def sample(self, sample_shape=umbra.Size()):
        with umbra.no_grad():
            return umbra.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self):
        return (umbra.log(self.rate),)

    def _log_normalizer(self, x):
        return umbra.exp(x)
