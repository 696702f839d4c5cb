"""The Weibull distribution: waiting times at a rate that grows or falls."""
import umbra
from umbra.distributions import constraints
from umbra.distributions.exponential import Exponential
from umbra.distributions.gumbel import euler_constant
from umbra.distributions.transformed_distribution import TransformedDistribution
from umbra.distributions.transforms import AffineTransform, PowerTransform
from umbra.distributions.utils import broadcast_all

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """Times until something fails, at a rate that changes as a power of time."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale, concentration, validate_args=None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(umbra.ones_like(self.scale), validate_args=validate_args)
        transforms = [PowerTransform(exponent=self.concentration_reciprocal), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Weibull, _instance)
        new.scale, new.concentration = self.scale.expand(batch_shape), self.concentration.expand(batch_shape)
        new.concentration_reciprocal = new.concentration.reciprocal()
        base = self.base_dist.expand(batch_shape)
        transforms = [PowerTransform(exponent=new.concentration_reciprocal), AffineTransform(loc=0, scale=new.scale)]
        super(Weibull, new).__init__(base, transforms, validate_args=False)
        new._validate_args = self._validate_args
        return new

    mean = property(lambda self: self.scale * umbra.exp(umbra.lgamma(1 + self.concentration_reciprocal)))

    @property
    def mode(self):
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration.reciprocal()

    @property
    def variance(self):
        first, second = umbra.lgamma(1 + self.concentration_reciprocal), umbra.lgamma(1 + 2 * self.concentration_reciprocal)
        return self.scale.pow(2) * (umbra.exp(second) - umbra.exp(2 * first))

    def entropy(self):
        return euler_constant * (1 - self.concentration_reciprocal) + umbra.log(self.scale * self.concentration_reciprocal) + 1
