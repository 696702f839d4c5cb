"""A Bernoulli density over the whole unit interval (Loaiza-Ganem and Cunningham, 2019)."""
import math

import umbra
from umbra.distributions import constraints
from umbra.distributions._trials import Trial
from umbra.distributions.exp_family import ExponentialFamily
from umbra.distributions.utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs, probs_to_logits
from umbra.nn.functional import binary_cross_entropy_with_logits

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(Trial, ExponentialFamily):
    """Between `lims`, where its formulas divide zero by zero, it is computed by their series."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        self._take_parameter(probs, logits)
        if probs is not None:
            if validate_args is not None and not self.arg_constraints["probs"].check(self.probs).all():
                raise ValueError("The parameter probs has invalid values")
            self.probs = self._param = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        batch_shape = umbra.Size(batch_shape)
        return self._expanded(ContinuousBernoulli, batch_shape, _instance, {**self._parameters(batch_shape), "_lims": self._lims})

    def _outside_unstable_region(self):
        return umbra.max(umbra.le(self.probs, self._lims[0]), umbra.gt(self.probs, self._lims[1]))

    def _cut_probs(self):
        return umbra.where(self._outside_unstable_region(), self.probs, self._lims[0] * umbra.ones_like(self.probs))

    def _either(self, exact, series):
        return umbra.where(self._outside_unstable_region(), exact, series)

    def _cont_bern_log_norm(self):
        p = self._cut_probs()
        below = umbra.where(umbra.le(p, 0.5), p, umbra.zeros_like(p))
        above = umbra.where(umbra.ge(p, 0.5), p, umbra.ones_like(p))
        exact = umbra.log(umbra.abs(umbra.log1p(-p) - umbra.log(p))) - umbra.where(
            umbra.le(p, 0.5), umbra.log1p(-2.0 * below), umbra.log(2.0 * above - 1.0))
        x = umbra.pow(self.probs - 0.5, 2)
        return self._either(exact, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self):
        p, x = self._cut_probs(), self.probs - 0.5
        exact = p / (2.0 * p - 1.0) + 1.0 / (umbra.log1p(-p) - umbra.log(p))
        return self._either(exact, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * umbra.pow(x, 2)) * x)

    stddev = property(lambda self: umbra.sqrt(self.variance))

    @property
    def variance(self):
        p, x = self._cut_probs(), umbra.pow(self.probs - 0.5, 2)
        exact = p * (p - 1.0) / umbra.pow(1.0 - 2.0 * p, 2) + 1.0 / umbra.pow(umbra.log1p(-p) - umbra.log(p), 2)
        return self._either(exact, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    @lazy_property
    def logits(self):
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self):
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def sample(self, sample_shape=umbra.Size()):
        with umbra.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=umbra.Size()):
        return self.icdf(umbra.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none") + self._cont_bern_log_norm()

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        p = self._cut_probs()
        exact = (umbra.pow(p, value) * umbra.pow(1.0 - p, 1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        inside = self._either(exact, value)
        return umbra.where(umbra.le(value, 0.0), umbra.zeros_like(value), umbra.where(umbra.ge(value, 1.0), umbra.ones_like(value), inside))

    def icdf(self, value):
        p = self._cut_probs()
        exact = (umbra.log1p(-p + value * (2.0 * p - 1.0)) - umbra.log1p(-p)) / (umbra.log(p) - umbra.log1p(-p))
        return self._either(exact, value)

    def entropy(self):
        log_failure, log_success = umbra.log1p(-self.probs), umbra.log(self.probs)
        return self.mean * (log_failure - log_success) - self._cont_bern_log_norm() - log_failure

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        outside = umbra.max(umbra.le(x, self._lims[0] - 0.5), umbra.gt(x, self._lims[1] - 0.5))
        cut = umbra.where(outside, x, (self._lims[0] - 0.5) * umbra.ones_like(x))
        exact = umbra.log(umbra.abs(umbra.special.expm1(cut))) - umbra.log(umbra.abs(cut))
        return umbra.where(outside, exact, 0.5 * x + umbra.pow(x, 2) / 24.0 - umbra.pow(x, 4) / 2880.0)
