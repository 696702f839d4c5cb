"""The Kumaraswamy distribution, much like a beta distribution with a simple cumulative function."""
import umbra
from umbra import nan
from umbra.distributions import constraints
from umbra.distributions.transformed_distribution import TransformedDistribution
from umbra.distributions.transforms import AffineTransform, PowerTransform
from umbra.distributions.uniform import Uniform
from umbra.distributions.utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


def _moments(a, b, n):
    """The n-th moment."""
    first = 1 + n / a
    return b * umbra.exp(umbra.lgamma(first) + umbra.lgamma(b) - umbra.lgamma(first + b))


class Kumaraswamy(TransformedDistribution):
    """Numbers between 0 and 1, like those of Beta, with a closed form."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(umbra.full_like(self.concentration0, 0), umbra.full_like(self.concentration0, 1), validate_args=validate_args)
        transforms = [PowerTransform(exponent=self.concentration0.reciprocal()), AffineTransform(loc=1.0, scale=-1.0),
                      PowerTransform(exponent=self.concentration1.reciprocal())]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Kumaraswamy, _instance)
        new.concentration1, new.concentration0 = self.concentration1.expand(batch_shape), self.concentration0.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    mean = property(lambda self: _moments(self.concentration1, self.concentration0, 1))

    @property
    def mode(self):
        log_mode = (self.concentration0.reciprocal() * (-self.concentration0).log1p()
                    - (-self.concentration0 * self.concentration1).log1p())
        log_mode[(self.concentration0 < 1) | (self.concentration1 < 1)] = nan
        return log_mode.exp()

    @property
    def variance(self):
        return _moments(self.concentration1, self.concentration0, 2) - umbra.pow(self.mean, 2)

    def entropy(self):
        t1, t0 = 1 - self.concentration1.reciprocal(), 1 - self.concentration0.reciprocal()
        harmonic = umbra.digamma(self.concentration0 + 1) + euler_constant
        return t0 + t1 * harmonic - umbra.log(self.concentration1) - umbra.log(self.concentration0)
