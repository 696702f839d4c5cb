"""How many trials fail before one succeeds."""
import umbra
from umbra.distributions import constraints
from umbra.distributions._trials import Odds
from umbra.distributions.distribution import Distribution
from umbra.distributions.utils import broadcast_all
from umbra.nn.functional import binary_cross_entropy_with_logits

__all__ = ["Geometric"]


class Geometric(Odds, Distribution):
    """How many trials fail before one succeeds."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args=None):
        (given,) = self._take(probs, logits)
        super().__init__(given.size(), validate_args=validate_args)
        if self._validate_args and probs is not None:
            value = self.probs
            if not (value > 0).all():
                raise ValueError(f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of distribution {self!r} to be "
                                 f"positive but found invalid values:\n{value[~(value > 0)]}")

    def expand(self, batch_shape, _instance=None):
        parameters = {n: self.__dict__[n].expand(batch_shape) for n in ("probs", "logits") if n in self.__dict__}
        return self._expanded(Geometric, batch_shape, _instance, parameters)

    mean = property(lambda self: 1.0 / self.probs - 1.0)
    mode = property(lambda self: umbra.zeros_like(self.probs))
    variance = property(lambda self: (1.0 / self.probs - 1.0) / self.probs)

    def sample(self, sample_shape=umbra.Size()):
        tiny = umbra.finfo(self.probs.dtype).tiny
        with umbra.no_grad():
            u = umbra.empty(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device).uniform_(tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.clone(memory_format=umbra.contiguous_format)
        probs[(probs == 1) & (value == 0)] = 0
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self):
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
