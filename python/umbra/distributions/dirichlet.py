"""The Dirichlet distribution over the simplex."""
import umbra
from umbra.autograd import Function
from umbra.distributions import constraints
from umbra.distributions.exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


class _Dirichlet(Function):
    """A sample whose gradient is that of its parts' beta distributions."""

    @staticmethod
    def forward(ctx, concentration):
        x = umbra._sample_dirichlet(concentration)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    def backward(ctx, grad):
        x, concentration = ctx.saved_tensors
        total = concentration.sum(-1, True).expand_as(concentration)
        slope = umbra._dirichlet_grad(x, concentration, total)
        return slope * (grad - (x * grad).sum(-1, True))


class Dirichlet(ExponentialFamily):
    """Numbers that add up to 1, by the strengths `concentration`."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration, validate_args=None):
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        shape = tuple(batch_shape) + tuple(self.event_shape)
        return self._expanded(Dirichlet, batch_shape, _instance, {"concentration": self.concentration.expand(shape)}, self.event_shape)

    def rsample(self, sample_shape=()):
        return _Dirichlet.apply(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return (umbra.xlogy(self.concentration - 1.0, value).sum(-1) + umbra.lgamma(self.concentration.sum(-1))
                - umbra.lgamma(self.concentration).sum(-1))

    mean = property(lambda self: self.concentration / self.concentration.sum(-1, True))

    @property
    def mode(self):
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        none = (self.concentration < 1).all(dim=-1)
        mode[none] = umbra.nn.functional.one_hot(mode[none].argmax(dim=-1), above.shape[-1]).to(mode)
        return mode

    @property
    def variance(self):
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self):
        k, total = self.concentration.size(-1), self.concentration.sum(-1)
        return (umbra.lgamma(self.concentration).sum(-1) - umbra.lgamma(total) - (k - total) * umbra.digamma(total)
                - ((self.concentration - 1.0) * umbra.digamma(self.concentration)).sum(-1))

    @property
    def _natural_params(self):
        return (self.concentration,)

    def _log_normalizer(self, x):
        return x.lgamma().sum(-1) - umbra.lgamma(x.sum(-1))
