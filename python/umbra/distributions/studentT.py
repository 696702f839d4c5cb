"""Student's t distribution."""
import math

import umbra
from umbra import inf, nan
from umbra.distributions import Chi2, constraints
from umbra.distributions.distribution import Distribution
from umbra.distributions.utils import _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """A normal number over the root of a chi-squared one, divided by its degrees of freedom."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    @property
    def mean(self):
        m = self.loc.clone(memory_format=umbra.contiguous_format)
        m[self.df <= 1] = nan
        return m

    mode = property(lambda self: self.loc)

    @property
    def variance(self):
        m = self.df.clone(memory_format=umbra.contiguous_format)
        m[self.df > 2] = self.scale[self.df > 2].pow(2) * self.df[self.df > 2] / (self.df[self.df > 2] - 2)
        m[(self.df <= 2) & (self.df > 1)] = inf
        m[self.df <= 1] = nan
        return m

    def expand(self, batch_shape, _instance=None):
        batch_shape = umbra.Size(batch_shape)
        return self._expanded(StudentT, batch_shape, _instance, {
            "df": self.df.expand(batch_shape), "loc": self.loc.expand(batch_shape), "scale": self.scale.expand(batch_shape),
            "_chi2": self._chi2.expand(batch_shape)})

    def rsample(self, sample_shape=umbra.Size()):
        shape = self._extended_shape(sample_shape)
        x = _standard_normal(shape, dtype=self.df.dtype, device=self.df.device)
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (x * umbra.rsqrt(z / self.df))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        z = (self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + umbra.lgamma(0.5 * self.df)
             - umbra.lgamma(0.5 * (self.df + 1.0)))
        return -0.5 * (self.df + 1.0) * umbra.log1p(y**2.0 / self.df) - z

    def entropy(self):
        lbeta = umbra.lgamma(0.5 * self.df) + math.lgamma(0.5) - umbra.lgamma(0.5 * (self.df + 1))
        return (self.scale.log() + 0.5 * (self.df + 1) * (umbra.digamma(0.5 * (self.df + 1)) - umbra.digamma(0.5 * self.df))
                + 0.5 * self.df.log() + lbeta)
