"""How many trials succeed before a number of them fail."""
import umbra
import umbra.nn.functional as F
from umbra.distributions import constraints
from umbra.distributions._trials import Trial
from umbra.distributions.distribution import Distribution
from umbra.distributions.gamma import Gamma
from umbra.distributions.utils import lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(Trial, Distribution):
    """How many trials succeed before `total_count` fail."""

    arg_constraints = {"total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0), "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        self._take_parameter(probs, logits, total_count)
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        batch_shape = umbra.Size(batch_shape)
        return self._expanded(NegativeBinomial, batch_shape, _instance, self._parameters(batch_shape))

    mean = property(lambda self: self.total_count * umbra.exp(self.logits))
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0))
    variance = property(lambda self: self.mean / umbra.sigmoid(-self.logits))

    @lazy_property
    def _gamma(self):
        """The rates of which these are Poisson counts."""
        return Gamma(concentration=self.total_count, rate=umbra.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape=umbra.Size()):
        with umbra.no_grad():
            return umbra.poisson(self._gamma.sample(sample_shape=sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        unnormalized = self.total_count * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        normalization = -umbra.lgamma(self.total_count + value) + umbra.lgamma(1.0 + value) + umbra.lgamma(self.total_count)
        # lgamma(0) is infinite, and a count of 0 with 0 failures is certain.
        normalization = normalization.masked_fill(self.total_count + value == 0.0, 0.0)
        return unnormalized - normalization
