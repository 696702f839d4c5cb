"""The F distribution: the ratio of two variances."""
import umbra
from umbra import nan
from umbra.distributions import constraints
from umbra.distributions.distribution import Distribution
from umbra.distributions.gamma import Gamma
from umbra.distributions.utils import broadcast_all

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The ratio of two chi-squared numbers, each divided by its degrees of freedom."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1, df2, validate_args=None):
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1, self._gamma2 = Gamma(self.df1 * 0.5, self.df1), Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        batch_shape = umbra.Size(batch_shape)
        return self._expanded(FisherSnedecor, batch_shape, _instance, {
            "df1": self.df1.expand(batch_shape), "df2": self.df2.expand(batch_shape),
            "_gamma1": self._gamma1.expand(batch_shape), "_gamma2": self._gamma2.expand(batch_shape)})

    @property
    def mean(self):
        df2 = self.df2.clone(memory_format=umbra.contiguous_format)
        df2[df2 <= 2] = nan
        return df2 / (df2 - 2)

    @property
    def mode(self):
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        mode[self.df1 <= 2] = nan
        return mode

    @property
    def variance(self):
        df2 = self.df2.clone(memory_format=umbra.contiguous_format)
        df2[df2 <= 4] = nan
        return 2 * df2.pow(2) * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape=umbra.Size()):
        shape = self._extended_shape(sample_shape)
        x1, x2 = self._gamma1.rsample(sample_shape).view(shape), self._gamma2.rsample(sample_shape).view(shape)
        tiny = umbra.finfo(x2.dtype).tiny
        x2.clamp_(min=tiny)
        y = x1 / x2
        y.clamp_(min=tiny)
        return y

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        ct1, ct2, ct3 = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        t1 = (ct1 + ct2).lgamma() - ct1.lgamma() - ct2.lgamma()
        t2 = ct1 * ct3.log() + (ct1 - 1) * umbra.log(value)
        return t1 + t2 - (ct1 + ct2) * umbra.log1p(ct3 * value)
