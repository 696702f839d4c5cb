"""The size of what is Cauchy distributed around 0."""
import math

import umbra
from umbra.distributions._half import _Half
from umbra.distributions.cauchy import Cauchy

__all__ = ["HalfCauchy"]


class HalfCauchy(_Half):
    """The size of a Cauchy number."""

    _whole = Cauchy

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, _instance=self._get_checked_instance(HalfCauchy, _instance))

    variance = property(lambda self: self.base_dist.variance)

    @property
    def mean(self):
        return umbra.full(self._extended_shape(), math.inf, dtype=self.scale.dtype, device=self.scale.device)

    def _as_number(self, value):
        return umbra.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
