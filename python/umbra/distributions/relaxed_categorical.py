"""Classes as points of the simplex, through which gradients pass."""
import umbra
from umbra.distributions import constraints
from umbra.distributions.categorical import Categorical
from umbra.distributions.distribution import Distribution
from umbra.distributions.transformed_distribution import TransformedDistribution
from umbra.distributions.transforms import ExpTransform
from umbra.distributions.utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """The logarithm of a relaxed class."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        batch_shape = umbra.Size(batch_shape)
        return self._expanded(ExpRelaxedCategorical, batch_shape, _instance,
                              {"temperature": self.temperature, "_categorical": self._categorical.expand(umbra.Size(batch_shape))},
                              self.event_shape)

    def _new(self, *args, **kwargs):
        return self._categorical._new(*args, **kwargs)

    param_shape = property(lambda self: self._categorical.param_shape)
    logits = property(lambda self: self._categorical.logits)
    probs = property(lambda self: self._categorical.probs)

    def rsample(self, sample_shape=umbra.Size()):
        shape = self._extended_shape(sample_shape)
        uniforms = clamp_probs(umbra.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-(uniforms.log())).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        n = self._categorical._num_events
        logits, value = broadcast_all(self.logits, value)
        log_scale = umbra.full_like(self.temperature, float(n)).lgamma() - self.temperature.log().mul(-(n - 1))
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + log_scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """One of several outcomes, softened so that samples have gradients."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, _instance=self._get_checked_instance(RelaxedOneHotCategorical, _instance))

    temperature = property(lambda self: self.base_dist.temperature)
    logits = property(lambda self: self.base_dist.logits)
    probs = property(lambda self: self.base_dist.probs)
