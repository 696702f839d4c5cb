"""Cholesky factors of correlation matrices (Lewandowski, Kurowicka and Joe, 2009)."""
import math

import umbra
from umbra.distributions import Beta, constraints
from umbra.distributions.distribution import Distribution
from umbra.distributions.utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices of the size `dim`."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        batch_shape = self.concentration.size()
        # Of the onion method: how much of each row's length lies off the diagonal.
        marginal = self.concentration + 0.5 * (dim - 2)
        offset = umbra.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        offset = umbra.cat([offset.new_zeros((1,)), offset])
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(batch_shape, umbra.Size((dim, dim)), validate_args)

    def expand(self, batch_shape, _instance=None):
        batch_shape = umbra.Size(batch_shape)
        return self._expanded(LKJCholesky, batch_shape, _instance, {
            "dim": self.dim, "concentration": self.concentration.expand(batch_shape),
            "_beta": self._beta.expand(batch_shape + (self.dim,))}, self.event_shape)

    def sample(self, sample_shape=umbra.Size()):
        y = self._beta.sample(sample_shape).unsqueeze(-1)
        normal = umbra.randn(self._extended_shape(sample_shape), dtype=y.dtype, device=y.device).tril(-1)
        direction = normal / normal.norm(dim=-1, keepdim=True)
        direction[..., 0, :].fill_(0.0)
        w = umbra.sqrt(y) * direction
        diagonal = umbra.clamp(1 - umbra.sum(w**2, dim=-1), min=umbra.finfo(w.dtype).tiny).sqrt()
        w += umbra.diag_embed(diagonal)
        return w

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = umbra.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        unnormalized = umbra.sum(order * diagonal.log(), dim=-1)
        rest = self.dim - 1
        alpha = self.concentration + 0.5 * rest
        normalizer = 0.5 * rest * math.log(math.pi) + umbra.mvlgamma(alpha - 0.5, rest) - umbra.lgamma(alpha) * rest
        return unnormalized - normalizer
