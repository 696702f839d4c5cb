"""The Wishart distribution of covariance matrices."""
import math
import warnings

import umbra
from umbra.distributions import constraints
from umbra.distributions.exp_family import ExponentialFamily
from umbra.distributions.multivariate_normal import _precision_to_scale_tril
from umbra.distributions.utils import lazy_property

__all__ = ["Wishart"]
_log_2 = math.log(2)


def _mvdigamma(x, p):
    """The slope of mvlgamma."""
    if not x.gt((p - 1) / 2).all():
        raise AssertionError("Wrong domain for multivariate digamma function.")
    return umbra.digamma(x.unsqueeze(-1) - umbra.arange(p, dtype=x.dtype, device=x.device).div(2).expand(x.shape + (-1,))).sum(-1)


def _clamp_above_eps(x):
    return x.clamp(min=umbra.finfo(x.dtype).eps)


class Wishart(ExponentialFamily):
    """By degrees of freedom and one of: covariance matrix, precision matrix, Cholesky factor of the covariance."""

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self):
        return {"covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite,
                "scale_tril": constraints.lower_cholesky, "df": constraints.greater_than(self.event_shape[-1] - 1)}

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        given = {n: m for n, m in (("scale_tril", scale_tril), ("covariance_matrix", covariance_matrix),
                                   ("precision_matrix", precision_matrix)) if m is not None}
        if len(given) != 1:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        if isinstance(df, (int, float)):
            batch_shape = umbra.Size(matrix.shape[:-2])
            self.df = umbra.tensor(df, dtype=matrix.dtype, device=matrix.device)
        else:
            batch_shape = umbra.broadcast_shapes(matrix.shape[:-2], df.shape)
            self.df = df.expand(batch_shape)
        event_shape = matrix.shape[-2:]
        if self.df.le(event_shape[-1] - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event_shape[-1] - 1}.")
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        self._batch_shape, self._event_shape = batch_shape, event_shape
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        if self.df.lt(event_shape[-1]).any():
            warnings.warn("Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.", stacklevel=2)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = umbra.linalg.cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(matrix)
        self._dist_chi2 = self._chi2_for(batch_shape)

    def _chi2_for(self, batch_shape):
        p = self._event_shape[-1]
        steps = umbra.arange(p, dtype=self._unbroadcasted_scale_tril.dtype, device=self._unbroadcasted_scale_tril.device)
        return umbra.distributions.chi2.Chi2(df=self.df.unsqueeze(-1) - steps.expand(tuple(batch_shape) + (-1,)))

    def expand(self, batch_shape, _instance=None):
        batch_shape = umbra.Size(batch_shape)
        new = self._get_checked_instance(Wishart, _instance)
        square = batch_shape + self.event_shape
        for n in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if n in self.__dict__:
                setattr(new, n, self.__dict__[n].expand(square))
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(square)
        new.df = self.df.expand(batch_shape)
        new._event_shape = self._event_shape
        new._dist_chi2 = new._chi2_for(batch_shape)
        super(Wishart, new).__init__(batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @lazy_property
    def scale_tril(self):
        return self._unbroadcasted_scale_tril.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self):
        return (self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self):
        identity = umbra.eye(self._event_shape[-1], device=self._unbroadcasted_scale_tril.device, dtype=self._unbroadcasted_scale_tril.dtype)
        return umbra.cholesky_solve(identity, self._unbroadcasted_scale_tril).expand(self._batch_shape + self._event_shape)

    @property
    def mean(self):
        return self.df.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def mode(self):
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = umbra.where(factor <= 0, umbra.nan, factor)
        return factor.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def variance(self):
        V = self.covariance_matrix
        diagonal = V.diagonal(dim1=-2, dim2=-1)
        return self.df.view(self._batch_shape + (1, 1)) * (V.pow(2) + umbra.einsum("...i,...j->...ij", diagonal, diagonal))

    def _bartlett_sampling(self, sample_shape=umbra.Size()):
        p = self._event_shape[-1]
        noise = _clamp_above_eps(self._dist_chi2.rsample(sample_shape).sqrt()).diag_embed(dim1=-2, dim2=-1)
        i, j = umbra.tril_indices(p, p, offset=-1)
        noise[..., i, j] = umbra.randn(umbra.Size(sample_shape) + self._batch_shape + (int(p * (p - 1) / 2),), dtype=noise.dtype,
                                       device=noise.device)
        chol = self._unbroadcasted_scale_tril @ noise
        return chol @ chol.mT

    def rsample(self, sample_shape=umbra.Size(), max_try_correction=None):
        if max_try_correction is None:
            max_try_correction = 10
        sample = self._bartlett_sampling(umbra.Size(sample_shape))
        # As in PyTorch, whose samples these are, the first ones count as singular where they are not, and are drawn again.
        again = self._over_batch(self.support.check(sample))
        if again.any():
            warnings.warn("Singular sample detected.", stacklevel=2)
            for _ in range(max_try_correction):
                drawn = self._bartlett_sampling(again[again].shape)
                sample[again] = drawn
                again[again.clone()] = self._over_batch(~self.support.check(drawn))
                if not again.any():
                    break
        return sample

    def _over_batch(self, flags):
        """Whether any of a batch has a flag."""
        return flags.amax(tuple(range(-len(self._batch_shape), 0))) if self._batch_shape else flags

    def _half_log_det(self):
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        nu, p = self.df, self._event_shape[-1]
        return (-nu * (p * _log_2 / 2 + self._half_log_det()) - umbra.mvlgamma(nu / 2, p=p)
                + (nu - p - 1) / 2 * umbra.linalg.slogdet(value).logabsdet
                - umbra.cholesky_solve(value, self._unbroadcasted_scale_tril).diagonal(dim1=-2, dim2=-1).sum(dim=-1) / 2)

    def entropy(self):
        nu, p = self.df, self._event_shape[-1]
        return ((p + 1) * (p * _log_2 / 2 + self._half_log_det()) + umbra.mvlgamma(nu / 2, p=p)
                - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p=p) + nu * p / 2)

    @property
    def _natural_params(self):
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x, y):
        p = self._event_shape[-1]
        return (y + (p + 1) / 2) * (-umbra.linalg.slogdet(-2 * x).logabsdet + _log_2 * p) + umbra.mvlgamma(y + (p + 1) / 2, p=p)
