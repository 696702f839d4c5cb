"""One trial that succeeds or not."""
import umbra
from umbra.distributions import constraints
from umbra.distributions._trials import Trial
from umbra.distributions.exp_family import ExponentialFamily
from umbra.distributions.utils import broadcast_all
from umbra.nn.functional import binary_cross_entropy_with_logits

__all__ = ["Bernoulli"]
nan = float("nan")


class Bernoulli(Trial, ExponentialFamily):
    """By the probability of 1 or its log odds."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._take_parameter(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        batch_shape = umbra.Size(batch_shape)
        return self._expanded(Bernoulli, batch_shape, _instance, self._parameters(batch_shape))

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    @property
    def mode(self):
        mode = (self.probs >= 0.5).to(self.probs)
        mode[self.probs == 0.5] = nan
        return mode

    def sample(self, sample_shape=umbra.Size()):
        with umbra.no_grad():
            return umbra.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self):
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand=True):
        values = umbra.arange(2, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + tuple(self._batch_shape)) if expand else values

    @property
    def _natural_params(self):
        return (umbra.logit(self.probs),)

    def _log_normalizer(self, x):
        return umbra.log1p(umbra.exp(x))
