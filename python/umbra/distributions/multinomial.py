"""How often each class came out of several draws."""
import umbra
from umbra.distributions import Categorical, constraints
from umbra.distributions.binomial import Binomial
from umbra.distributions.distribution import Distribution
from umbra.distributions.utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """How often each of several outcomes comes in `total_count` trials."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        batch_shape = umbra.Size(batch_shape)
        return self._expanded(Multinomial, batch_shape, _instance, {
            "total_count": self.total_count, "_categorical": self._categorical.expand(batch_shape),
            "_binomial": Binomial(total_count=self.total_count, probs=self._categorical.expand(batch_shape).probs)}, self.event_shape)

    def _new(self, *args, **kwargs):
        return self._categorical._new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))
    logits = property(lambda self: self._categorical.logits)
    probs = property(lambda self: self._categorical.probs)
    param_shape = property(lambda self: self._categorical.param_shape)

    def sample(self, sample_shape=umbra.Size()):
        sample_shape = umbra.Size(sample_shape)
        samples = self._categorical.sample(umbra.Size((self.total_count,)) + sample_shape)
        samples = samples.permute(*range(1, samples.dim()), 0)  # the draws last
        counts = samples.new_zeros(self._extended_shape(sample_shape)).scatter_add_(-1, samples, umbra.ones_like(samples))
        return counts.type_as(self.probs)

    def entropy(self):
        n = umbra.tensor(self.total_count)
        weights = umbra.exp(self._binomial.log_prob(self._binomial.enumerate_support(expand=False)[1:]))
        logs = umbra.lgamma(self._binomial.enumerate_support(expand=False)[1:] + 1)
        return n * self._categorical.entropy() - umbra.lgamma(n + 1) + (weights * logs).sum([0, -1])

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.clone(memory_format=umbra.contiguous_format)
        logits[(value == 0) & (logits == -umbra.inf)] = 0
        return umbra.lgamma(value.sum(-1) + 1) - umbra.lgamma(value + 1).sum(-1) + (logits * value).sum(-1)
