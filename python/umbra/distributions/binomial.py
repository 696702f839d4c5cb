"""How many of several trials succeed."""
import umbra
from umbra.distributions import constraints
from umbra.distributions._trials import Trial
from umbra.distributions.distribution import Distribution

__all__ = ["Binomial"]


def _clamp_by_zero(x):
    """max(x, 0) whose gradient at 0 is 1/2."""
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(Trial, Distribution):
    """How many of `total_count` trials succeed."""

    arg_constraints = {"total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval, "logits": constraints.real}
    has_enumerate_support = True

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        self._take_parameter(probs, logits, total_count)
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        batch_shape = umbra.Size(batch_shape)
        return self._expanded(Binomial, batch_shape, _instance, self._parameters(batch_shape))

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape=umbra.Size()):
        shape = self._extended_shape(sample_shape)
        with umbra.no_grad():
            return umbra.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        choose = umbra.lgamma(self.total_count + 1) - umbra.lgamma(value + 1) - umbra.lgamma(self.total_count - value + 1)
        # log(1 + exp(logits)) from the larger of both terms.
        rest = self.total_count * _clamp_by_zero(self.logits) + self.total_count * umbra.log1p(umbra.exp(-umbra.abs(self.logits)))
        return value * self.logits + choose - rest

    def entropy(self):
        if not int(self.total_count.max()) == self.total_count.min():
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(umbra.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand=True):
        total = int(self.total_count.max())
        if not self.total_count.min() == total:
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = umbra.arange(1 + total, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + tuple(self._batch_shape)) if expand else values
