"""The beta distribution: a Dirichlet distribution of two parts."""
import umbra
from umbra.distributions import constraints
from umbra.distributions.dirichlet import Dirichlet
from umbra.distributions.exp_family import ExponentialFamily
from umbra.distributions.utils import broadcast_all

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """Numbers between 0 and 1, by the strengths `concentration1` and `concentration0` of both ends."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        if not isinstance(concentration1, umbra.Tensor) and not isinstance(concentration0, umbra.Tensor):
            both = umbra.tensor([float(concentration1), float(concentration0)])
        else:
            both = umbra.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        batch_shape = umbra.Size(batch_shape)
        return self._expanded(Beta, batch_shape, _instance, {"_dirichlet": self._dirichlet.expand(umbra.Size(batch_shape))})

    @property
    def mean(self):
        return self.concentration1 / (self.concentration1 + self.concentration0)

    mode = property(lambda self: self._dirichlet.mode[..., 0])

    @property
    def variance(self):
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape=()):
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return self._dirichlet.log_prob(umbra.stack([value, 1.0 - value], -1))

    def entropy(self):
        return self._dirichlet.entropy()

    concentration1 = property(lambda self: self._dirichlet.concentration[..., 0])
    concentration0 = property(lambda self: self._dirichlet.concentration[..., 1])

    @property
    def _natural_params(self):
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x, y):
        return umbra.lgamma(x) + umbra.lgamma(y) - umbra.lgamma(x + y)
