"""The size of what is Cauchy distributed around 0."""
import math

import umbra
from umbra import inf
from umbra.distributions import constraints
from umbra.distributions.cauchy import Cauchy
from umbra.distributions.transformed_distribution import TransformedDistribution
from umbra.distributions.transforms import AbsTransform

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
    """The size of a Cauchy number."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale, validate_args=None):
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, _instance=self._get_checked_instance(HalfCauchy, _instance))

    scale = property(lambda self: self.base_dist.scale)
    mode = property(lambda self: umbra.zeros_like(self.scale))
    variance = property(lambda self: self.base_dist.variance)

    @property
    def mean(self):
        return umbra.full(self._extended_shape(), math.inf, dtype=self.scale.dtype, device=self.scale.device)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value = umbra.as_tensor(value, dtype=self.base_dist.scale.dtype, device=self.base_dist.scale.device)
        return umbra.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -inf)

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob):
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self):
        return self.base_dist.entropy() - math.log(2)
