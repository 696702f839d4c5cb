"""What the sizes of numbers that are distributed evenly around 0 share."""
import math

import umbra
from umbra import inf
from umbra.distributions import constraints
from umbra.distributions.transformed_distribution import TransformedDistribution
from umbra.distributions.transforms import AbsTransform


class _Half(TransformedDistribution):
    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _whole = None  # the distribution of the numbers themselves

    def __init__(self, scale, validate_args=None):
        super().__init__(self._whole(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    scale = property(lambda self: self.base_dist.scale)
    mode = property(lambda self: umbra.zeros_like(self.scale))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value = self._as_number(value)
        return umbra.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -inf)

    def _as_number(self, value):
        return value

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob):
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self):
        return self.base_dist.entropy() - math.log(2)
