"""Normal numbers as shares of a whole."""
from umbra.distributions import constraints
from umbra.distributions.independent import Independent
from umbra.distributions.normal import Normal
from umbra.distributions.transformed_distribution import TransformedDistribution
from umbra.distributions.transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Numbers that add up to 1, by the softmax of normal ones."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, _instance=self._get_checked_instance(LogisticNormal, _instance))

    @property
    def _normal(self):
        return self.base_dist.base_dist if isinstance(self.base_dist, Independent) else self.base_dist

    loc = property(lambda self: self._normal.loc)
    scale = property(lambda self: self._normal.scale)
