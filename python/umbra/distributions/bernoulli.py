"""One trial that succeeds or not."""
import umbra
from umbra.distributions import constraints
from umbra.distributions.exp_family import ExponentialFamily
from umbra.distributions.utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits
from umbra.nn.functional import binary_cross_entropy_with_logits

__all__ = ["Bernoulli"]
nan = float("nan")


class Bernoulli(ExponentialFamily):
    """By the probability of 1 or its log odds."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, validate_args=None):
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        self._param = self.logits if probs is None else self.probs
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        parameters = {n: self.__dict__[n].expand(batch_shape) for n in ("probs", "logits") if n in self.__dict__}
        parameters["_param"] = parameters["probs" if "probs" in parameters else "logits"]
        return self._expanded(Bernoulli, batch_shape, _instance, parameters)

    def _new(self, *args, **kwargs):
        return self._param.new(*args, **kwargs)

    mean = property(lambda self: self.probs)
    variance = property(lambda self: self.probs * (1 - self.probs))

    @property
    def mode(self):
        mode = (self.probs >= 0.5).to(self.probs)
        mode[self.probs == 0.5] = nan
        return mode

    @lazy_property
    def logits(self):
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self):
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self):
        return self._param.size()

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
