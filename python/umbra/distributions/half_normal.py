"""The size of what is normal around 0."""
import math

from umbra.distributions._half import _Half
from umbra.distributions.normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(_Half):
    """The size of a normal number."""

    _whole = Normal

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, _instance=self._get_checked_instance(HalfNormal, _instance))

    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = property(lambda self: self.scale.pow(2) * (1 - 2 / math.pi))
