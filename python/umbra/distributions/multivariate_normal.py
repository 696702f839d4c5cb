"""The normal distribution of vectors."""
import math

import umbra
from umbra.distributions import constraints
from umbra.distributions.distribution import Distribution
from umbra.distributions.utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


def _batch_mv(matrix, vector):
    """Matrix times vector, both in batches."""
    return umbra.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(factor, difference):
    """The squared length of a vector seen through the inverse of a triangular factor, which may have fewer batch dimensions."""
    n = difference.size(-1)
    shape = difference.shape[:-1]
    batch = umbra.broadcast_shapes(shape, factor.shape[:-2])
    solved = umbra.linalg.solve_triangular(factor.expand(batch + (n, n)), difference.expand(batch + (n,)).unsqueeze(-1), upper=False)
    return solved.squeeze(-1).pow(2).sum(-1)


def _precision_to_scale_tril(precision):
    """The Cholesky factor of an inverse, without inverting: by the factor of the matrix turned upside down."""
    flipped = umbra.linalg.cholesky(umbra.flip(precision, (-2, -1)))
    inverse = umbra.transpose(umbra.flip(flipped, (-2, -1)), -2, -1)
    identity = umbra.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return umbra.linalg.solve_triangular(inverse, identity, upper=False)


class MultivariateNormal(Distribution):
    """By a mean and one of: covariance matrix, precision matrix, Cholesky factor of the covariance."""

    arg_constraints = {"loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
                       "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {n: m for n, m in (("covariance_matrix", covariance_matrix), ("scale_tril", scale_tril),
                                   ("precision_matrix", precision_matrix)) if m is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(f"{name}{' matrix' if name == 'scale_tril' else ''} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = umbra.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        self.loc = loc.expand(batch_shape + (-1,))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = umbra.linalg.cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(matrix)

    def expand(self, batch_shape, _instance=None):
        batch_shape = umbra.Size(batch_shape)
        square = batch_shape + self.event_shape + self.event_shape
        parameters = {n: self.__dict__[n].expand(square) for n in ("covariance_matrix", "scale_tril", "precision_matrix") if n in self.__dict__}
        return self._expanded(MultivariateNormal, batch_shape, _instance, {
            **parameters, "loc": self.loc.expand(batch_shape + self.event_shape),
            "_unbroadcasted_scale_tril": self._unbroadcasted_scale_tril}, self.event_shape)

    @property
    def _square(self):
        return self._batch_shape + self._event_shape + self._event_shape

    @lazy_property
    def scale_tril(self):
        return self._unbroadcasted_scale_tril.expand(self._square)

    @lazy_property
    def covariance_matrix(self):
        return umbra.matmul(self._unbroadcasted_scale_tril, self._unbroadcasted_scale_tril.mT).expand(self._square)

    @lazy_property
    def precision_matrix(self):
        return umbra.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._square)

    mean = mode = property(lambda self: self.loc)

    @property
    def variance(self):
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape=umbra.Size()):
        eps = _standard_normal(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, eps)

    def _half_log_det(self):
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()

    def entropy(self):
        entropy = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return entropy if len(self._batch_shape) == 0 else entropy.expand(self._batch_shape)
