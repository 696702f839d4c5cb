"""The generalised Pareto distribution: what lies beyond a threshold."""
from numbers import Number

import umbra
from umbra import inf, nan
from umbra.distributions import constraints
from umbra.distributions.distribution import Distribution
from umbra.distributions.utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Excesses over a threshold, with a tail of the shape `concentration`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc, scale, concentration, validate_args=None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        plain = all(isinstance(p, Number) for p in (loc, scale, concentration))
        super().__init__(umbra.Size() if plain else self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        batch_shape = umbra.Size(batch_shape)
        return self._expanded(GeneralizedPareto, batch_shape, _instance, {
            n: getattr(self, n).expand(batch_shape) for n in ("loc", "scale", "concentration")})

    def _by_concentration(self):
        """Where the concentration is 0, and one that is safe to divide by."""
        zero = umbra.isclose(self.concentration, self.concentration.new_zeros(()))
        return zero, umbra.where(zero, umbra.ones_like(self.concentration), self.concentration)

    def _z(self, x):
        return (x - self.loc) / self.scale

    def rsample(self, sample_shape=umbra.Size()):
        return self.icdf(umbra.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        zero, safe = self._by_concentration()
        y = 1 / safe + umbra.ones_like(z)
        tail = umbra.where(y == 0, y, y * umbra.log1p(safe * z))
        return -self.scale.log() - umbra.where(zero, z, tail)

    def log_survival_function(self, value):
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        zero, safe = self._by_concentration()
        return umbra.where(zero, -z, -umbra.log1p(safe * z) / safe)

    def log_cdf(self, value):
        return umbra.log1p(-umbra.exp(self.log_survival_function(value)))

    def cdf(self, value):
        return umbra.exp(self.log_cdf(value))

    def icdf(self, value):
        zero, safe = self._by_concentration()
        log_survival = umbra.log1p(-value)
        return umbra.where(zero, self.loc - self.scale * log_survival,
                           self.loc + self.scale * umbra.expm1(-safe * log_survival) / safe)

    @property
    def mean(self):
        exists = self.concentration < 1
        safe = umbra.where(exists, self.concentration, 0.5)
        return umbra.where(exists, self.loc + self.scale / (1 - safe), nan)

    @property
    def variance(self):
        exists = self.concentration < 0.5
        safe = umbra.where(exists, self.concentration, 0.25)
        return umbra.where(exists, self.scale**2 / ((1 - safe) ** 2 * (1 - 2 * safe)), nan)

    def entropy(self):
        return (umbra.log(self.scale) + self.concentration + 1).expand(self._batch_shape)

    mode = property(lambda self: self.loc)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        lower = self.loc
        upper = umbra.where(self.concentration < 0, lower - self.scale / self.concentration, inf)
        return constraints.interval(lower, upper)
