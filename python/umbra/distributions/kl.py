"""Divergences between pairs of distributions, and the table that they are found in."""
import math
import warnings

import umbra
from umbra import inf
from umbra.distributions.bernoulli import Bernoulli
from umbra.distributions.beta import Beta
from umbra.distributions.binomial import Binomial
from umbra.distributions.categorical import Categorical
from umbra.distributions.cauchy import Cauchy
from umbra.distributions.continuous_bernoulli import ContinuousBernoulli
from umbra.distributions.dirichlet import Dirichlet
from umbra.distributions.distribution import Distribution
from umbra.distributions.exp_family import ExponentialFamily
from umbra.distributions.exponential import Exponential
from umbra.distributions.gamma import Gamma
from umbra.distributions.geometric import Geometric
from umbra.distributions.gumbel import Gumbel
from umbra.distributions.half_normal import HalfNormal
from umbra.distributions.independent import Independent
from umbra.distributions.laplace import Laplace
from umbra.distributions.lowrank_multivariate_normal import (
    _batch_lowrank_logdet, _batch_lowrank_mahalanobis, LowRankMultivariateNormal)
from umbra.distributions.multivariate_normal import _batch_mahalanobis, MultivariateNormal
from umbra.distributions.normal import Normal
from umbra.distributions.one_hot_categorical import OneHotCategorical
from umbra.distributions.pareto import Pareto
from umbra.distributions.poisson import Poisson
from umbra.distributions.transformed_distribution import TransformedDistribution
from umbra.distributions.uniform import Uniform
from umbra.distributions.utils import _sum_rightmost, euler_constant as _euler

__all__ = ["register_kl", "kl_divergence"]
_KL_REGISTRY = {}
_KL_MEMOIZE = {}


def register_kl(type_p, type_q):
    """A decorator: the function computes the divergence between distributions of these classes."""
    if not isinstance(type_p, type) and issubclass(type_p, Distribution):
        raise TypeError(f"Expected type_p to be a Distribution subclass but got {type_p}")
    if not isinstance(type_q, type) and issubclass(type_q, Distribution):
        raise TypeError(f"Expected type_q to be a Distribution subclass but got {type_q}")

    def register(function):
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function
    return register


def _dispatch_kl(type_p, type_q):
    """The entry for the closest pair of base classes; None where there is none."""
    pairs = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not pairs:
        return NotImplemented

    def rank(pair):
        return type_p.__mro__.index(pair[0]), type_q.__mro__.index(pair[1])
    left, right = min(pairs, key=rank), min(pairs, key=lambda pair: rank(pair)[::-1])
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        warnings.warn(f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl({left[0].__name__}, "
                      f"{right[1].__name__})", RuntimeWarning, stacklevel=2)
    return _KL_REGISTRY[left]


def kl_divergence(p, q):
    """How far q is from p: the mean of log p(x) - log q(x) over x from p."""
    key = type(p), type(q)
    if key not in _KL_MEMOIZE:
        _KL_MEMOIZE[key] = _dispatch_kl(*key)
    function = _KL_MEMOIZE[key]
    if function is NotImplemented:
        raise NotImplementedError(f"No KL(p || q) is implemented for p type {p.__class__.__name__} and q type {q.__class__.__name__}")
    return function(p, q)


def _infinite_like(tensor):
    return umbra.full_like(tensor, inf)


def _x_log_x(tensor):
    return umbra.special.xlogy(tensor, tensor)


def _batch_trace_XXT(matrix):
    """The trace of a matrix times its transpose."""
    n, m = matrix.size(-1), matrix.size(-2)
    return matrix.reshape(-1, m * n).pow(2).sum(-1).reshape(matrix.shape[:-2])


# ---- within a family ----

@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(p, q):
    softplus = umbra.nn.functional.softplus
    t1 = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    t1[q.probs == 0] = inf
    t1[p.probs == 0] = 0
    t2 = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    t2[q.probs == 1] = inf
    t2[p.probs == 1] = 0
    return t1 + t2


@register_kl(Beta, Beta)
def _kl_beta_beta(p, q):
    total_p, total_q = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    t1 = q.concentration1.lgamma() + q.concentration0.lgamma() + total_p.lgamma()
    t2 = p.concentration1.lgamma() + p.concentration0.lgamma() + total_q.lgamma()
    t3 = (p.concentration1 - q.concentration1) * umbra.digamma(p.concentration1)
    t4 = (p.concentration0 - q.concentration0) * umbra.digamma(p.concentration0)
    return t1 - t2 + t3 + t4 + (total_q - total_p) * umbra.digamma(total_p)


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p, q):
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    beyond = p.total_count > q.total_count
    kl[beyond] = _infinite_like(kl[beyond])
    return kl


@register_kl(Categorical, Categorical)
def _kl_categorical_categorical(p, q):
    t = p.probs * (p.logits - q.logits)
    t[(q.probs == 0).expand_as(t)] = inf
    t[(p.probs == 0).expand_as(t)] = 0
    return t.sum(-1)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl_continuous_bernoulli_continuous_bernoulli(p, q):
    t1 = p.mean * (p.logits - q.logits)
    return t1 + p._cont_bern_log_norm() + umbra.log1p(-p.probs) - q._cont_bern_log_norm() - umbra.log1p(-q.probs)


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(p, q):
    total_p, total_q = p.concentration.sum(-1), q.concentration.sum(-1)
    t1 = total_p.lgamma() - total_q.lgamma()
    t2 = (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    t3 = p.concentration - q.concentration
    t4 = p.concentration.digamma() - total_p.digamma().unsqueeze(-1)
    return t1 - t2 + (t3 * t4).sum(-1)


@register_kl(Exponential, Exponential)
def _kl_exponential_exponential(p, q):
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p, q):
    if type(p) is not type(q):
        raise NotImplementedError("The cross KL-divergence between different exponential families cannot be computed using Bregman divergences")
    of_p = [n.detach().requires_grad_() for n in p._natural_params]
    of_q = q._natural_params
    normalizer = p._log_normalizer(*of_p)
    gradients = umbra.autograd.grad(normalizer.sum(), of_p, create_graph=True)
    result = q._log_normalizer(*of_q) - normalizer
    for a, b, g in zip(of_p, of_q, gradients):
        result = result - _sum_rightmost((b - a) * g, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _kl_gamma_gamma(p, q):
    t1 = q.concentration * (p.rate / q.rate).log()
    t2 = umbra.lgamma(q.concentration) - umbra.lgamma(p.concentration)
    t3 = (p.concentration - q.concentration) * umbra.digamma(p.concentration)
    return t1 + t2 + t3 + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(Gumbel, Gumbel)
def _kl_gumbel_gumbel(p, q):
    ratio, loc_q, loc_p = p.scale / q.scale, q.loc / q.scale, p.loc / q.scale
    t1 = -ratio.log() - loc_q + loc_p
    t3 = umbra.exp(loc_q + (1 + ratio).lgamma() - loc_p)
    return t1 + ratio * _euler + t3 - (1 + _euler)


@register_kl(Geometric, Geometric)
def _kl_geometric_geometric(p, q):
    return -p.entropy() - umbra.log1p(-q.probs) / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _kl_halfnormal_halfnormal(p, q):
    return _kl_normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _kl_laplace_laplace(p, q):
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * umbra.exp(-distance / p.scale) - 1


@register_kl(Normal, Normal)
def _kl_normal_normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_onehotcategorical_onehotcategorical(p, q):
    return _kl_categorical_categorical(p._categorical, q._categorical)


@register_kl(Pareto, Pareto)
def _kl_pareto_pareto(p, q):
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    result[p.support.lower_bound < q.support.lower_bound] = inf
    return result


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed_transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _kl_uniform_uniform(p, q):
    result = ((q.high - q.low) / (p.high - p.low)).log()
    result[(q.low > p.low) | (q.high < p.high)] = inf
    return result


@register_kl(Independent, Independent)
def _kl_independent_independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Cauchy, Cauchy)
def _kl_cauchy_cauchy(p, q):
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


# ---- normal vectors ----

def _check_event_shapes(p, q, kind):
    if p.event_shape != q.event_shape:
        raise ValueError(f"KL-divergence between two {kind}Multivariate Normals with different event shapes cannot be computed")


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _kl_lowrankmultivariatenormal_lowrankmultivariatenormal(p, q):
    _check_event_shapes(p, q, "Low Rank ")
    Wp, Dp, Wq, Dq = (p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag, q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag)
    term1 = _batch_lowrank_logdet(Dq, q._capacitance_tril) - _batch_lowrank_logdet(Dp, p._capacitance_tril)
    term3 = _batch_lowrank_mahalanobis(Wq, Dq, q.loc - p.loc, q._capacitance_tril)
    # The trace of inv(WqWqᵀ + Dq) (WpWpᵀ + Dp), by Woodbury's formula.
    Wqt_Dinv = Wq.mT / Dq.unsqueeze(-2)
    A = umbra.linalg.solve_triangular(q._capacitance_tril, Wqt_Dinv, upper=False)
    term21 = (Dp / Dq).sum(-1)
    term22 = _batch_trace_XXT(Wp * Dq.rsqrt().unsqueeze(-1))
    term23 = _batch_trace_XXT(A * Dp.sqrt().unsqueeze(-2))
    term24 = _batch_trace_XXT(A.matmul(Wp))
    return 0.5 * (term1 + term21 + term22 - term23 - term24 + term3 - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _kl_multivariatenormal_lowrankmultivariatenormal(p, q):
    _check_event_shapes(p, q, "(Low Rank) ")
    Wq, Dq, Lp = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, p._unbroadcasted_scale_tril
    term1 = _batch_lowrank_logdet(Dq, q._capacitance_tril) - 2 * p._half_log_det()
    term3 = _batch_lowrank_mahalanobis(Wq, Dq, q.loc - p.loc, q._capacitance_tril)
    A = umbra.linalg.solve_triangular(q._capacitance_tril, Wq.mT / Dq.unsqueeze(-2), upper=False)
    term21 = _batch_trace_XXT(Lp * Dq.rsqrt().unsqueeze(-1))
    term22 = _batch_trace_XXT(A.matmul(Lp))
    return 0.5 * (term1 + term21 - term22 + term3 - p.event_shape[0])


def _traces_over(q, *factors):
    """Squared lengths of factors of p's covariance, seen through q's triangular one; sizes of batches may differ."""
    n = q.event_shape[0]
    batch = umbra.broadcast_shapes(q._unbroadcasted_scale_tril.shape[:-2], *(f.shape[:-2] for f in factors))
    tril = q._unbroadcasted_scale_tril.expand(batch + (n, n))
    return sum(_batch_trace_XXT(umbra.linalg.solve_triangular(tril, f.expand(batch + f.shape[-2:]), upper=False)) for f in factors)


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _kl_lowrankmultivariatenormal_multivariatenormal(p, q):
    _check_event_shapes(p, q, "(Low Rank) ")
    term1 = 2 * q._half_log_det() - _batch_lowrank_logdet(p._unbroadcasted_cov_diag, p._capacitance_tril)
    term3 = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    term2 = _traces_over(q, p._unbroadcasted_cov_factor, umbra.diag_embed(p._unbroadcasted_cov_diag.sqrt()))
    return 0.5 * (term1 + term2 + term3 - p.event_shape[0])


@register_kl(MultivariateNormal, MultivariateNormal)
def _kl_multivariatenormal_multivariatenormal(p, q):
    _check_event_shapes(p, q, "")
    half_term1 = q._half_log_det() - p._half_log_det()
    term2 = _traces_over(q, p._unbroadcasted_scale_tril)
    term3 = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    return half_term1 + 0.5 * (term2 + term3 - p.event_shape[0])


# ---- between families: where p has values that q has not, the divergence is infinite ----

def _register_infinite(type_p, like, *types_q):
    for type_q in types_q:
        register_kl(type_p, type_q)(lambda p, q: _infinite_like(getattr(p, like)))


_register_infinite(Beta, "concentration1", Pareto)
_register_infinite(ContinuousBernoulli, "probs", Pareto)
_register_infinite(Exponential, "rate", Beta, ContinuousBernoulli, Pareto, Uniform)
_register_infinite(Gamma, "concentration", Beta, ContinuousBernoulli, Pareto, Uniform)
_register_infinite(Gumbel, "loc", Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_register_infinite(Laplace, "loc", Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_register_infinite(Normal, "loc", Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_register_infinite(Pareto, "scale", Beta, ContinuousBernoulli, Uniform)
_register_infinite(Poisson, "rate", Bernoulli, Binomial)


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _kl_beta_continuous_bernoulli(p, q):
    return -p.entropy() - p.mean * q.logits - umbra.log1p(-q.probs) - q._cont_bern_log_norm()


@register_kl(Beta, Exponential)
def _kl_beta_exponential(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def _kl_beta_gamma(p, q):
    t2 = q.concentration.lgamma() - q.concentration * q.rate.log()
    t3 = (q.concentration - 1) * (p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma())
    return -p.entropy() + t2 - t3 + q.rate * p.mean


@register_kl(Beta, Normal)
def _kl_beta_normal(p, q):
    mean, variance = p.mean, q.scale.pow(2)
    t2 = 0.5 * (variance * 2 * math.pi).log()
    t3 = (mean * (1 - mean) / (p.concentration1 + p.concentration0 + 1) + mean.pow(2)) * 0.5
    return -p.entropy() + t2 + (t3 - q.loc * mean + q.loc.pow(2) * 0.5) / variance


@register_kl(Beta, Uniform)
def _kl_beta_uniform(p, q):
    result = -p.entropy() + (q.high - q.low).log()
    result[(q.low > p.support.lower_bound) | (q.high < p.support.upper_bound)] = inf
    return result


@register_kl(ContinuousBernoulli, Exponential)
def _kl_continuous_bernoulli_exponential(p, q):
    return -p.entropy() - umbra.log(q.rate) + q.rate * p.mean


@register_kl(ContinuousBernoulli, Normal)
def _kl_continuous_bernoulli_normal(p, q):
    t2 = 0.5 * (math.log(2.0 * math.pi) + umbra.square(q.loc / q.scale)) + umbra.log(q.scale)
    t3 = (p.variance + umbra.square(p.mean) - 2.0 * q.loc * p.mean) / (2.0 * umbra.square(q.scale))
    return -p.entropy() + t2 + t3


@register_kl(ContinuousBernoulli, Uniform)
def _kl_continuous_bernoulli_uniform(p, q):
    result = -p.entropy() + (q.high - q.low).log()
    beyond = umbra.max(umbra.ge(q.low, p.support.lower_bound), umbra.le(q.high, p.support.upper_bound))
    return umbra.where(beyond, umbra.ones_like(result) * inf, result)


@register_kl(Exponential, Gamma)
def _kl_exponential_gamma(p, q):
    ratio = q.rate / p.rate
    return -q.concentration * umbra.log(ratio) + ratio + umbra.lgamma(q.concentration) + q.concentration * _euler - (1 + _euler)


@register_kl(Exponential, Gumbel)
def _kl_exponential_gumbel(p, q):
    product, shift = p.rate * q.scale, q.loc / q.scale
    return product.log() - 1 - shift + umbra.exp(shift) * product / (product + 1) + product.reciprocal()


@register_kl(Exponential, Normal)
def _kl_exponential_normal(p, q):
    variance, square = q.scale.pow(2), p.rate.pow(2)
    t1 = 0.5 * umbra.log(square * variance * 2 * math.pi)
    return t1 - 1 + (square.reciprocal() - q.loc / p.rate + q.loc.pow(2) * 0.5) / variance


@register_kl(Gamma, Exponential)
def _kl_gamma_exponential(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def _kl_gamma_gumbel(p, q):
    product, shift = p.rate * q.scale, q.loc / q.scale
    t1 = (p.concentration - 1) * p.concentration.digamma() - p.concentration.lgamma() - p.concentration
    t2 = product.log() + p.concentration / product
    return t1 + t2 + umbra.exp(shift) * (1 + product.reciprocal()).pow(-p.concentration) - shift


@register_kl(Gamma, Normal)
def _kl_gamma_normal(p, q):
    variance, square = q.scale.pow(2), p.rate.pow(2)
    t1 = 0.5 * umbra.log(square * variance * 2 * math.pi) - p.concentration - p.concentration.lgamma()
    t2 = 0.5 * (p.concentration.pow(2) + p.concentration) / square
    t3 = q.loc * p.concentration / p.rate
    return t1 + (p.concentration - 1) * p.concentration.digamma() + (t2 - t3 + 0.5 * q.loc.pow(2)) / variance


@register_kl(Gumbel, Normal)
def _kl_gumbel_normal(p, q):
    ratio = p.scale / q.scale
    t1 = (ratio / math.sqrt(2 * math.pi)).log()
    t2 = (math.pi * ratio * 0.5).pow(2) / 3
    t3 = ((p.loc + p.scale * _euler - q.loc) / q.scale).pow(2) * 0.5
    return -t1 + t2 + t3 - (_euler + 1)


@register_kl(Laplace, Normal)
def _kl_laplace_normal(p, q):
    variance = q.scale.pow(2)
    ratio = p.scale.pow(2) / variance
    t1 = 0.5 * umbra.log(2 * ratio / math.pi)
    return -t1 + ratio + (0.5 * p.loc.pow(2) - p.loc * q.loc + 0.5 * q.loc.pow(2)) / variance - 1


@register_kl(Normal, Gumbel)
def _kl_normal_gumbel(p, q):
    mean, ratio, shift = p.loc / q.scale, (p.scale / q.scale).pow(2), q.loc / q.scale
    t3 = umbra.exp(-mean + 0.5 * ratio + shift)
    return -ratio.log() * 0.5 + mean - shift + t3 - 0.5 * (1 + math.log(2 * math.pi))


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p, q):
    difference = p.loc - q.loc
    scaled = difference / p.scale
    t2 = math.sqrt(2 / math.pi) * p.scale * umbra.exp(-0.5 * scaled.pow(2))
    t3 = difference * umbra.erf(math.sqrt(0.5) * scaled)
    return -umbra.log(p.scale / q.scale) + (t2 + t3) / q.scale - 0.5 * (1 + math.log(0.5 * math.pi))


@register_kl(Pareto, Exponential)
def _kl_pareto_exponential(p, q):
    product = p.scale * q.rate
    result = (p.alpha / product).log() - p.alpha.reciprocal() + p.alpha * product / (p.alpha - 1) - 1
    result[p.alpha <= 1] = inf
    return result


@register_kl(Pareto, Gamma)
def _kl_pareto_gamma(p, q):
    common = p.scale.log() + p.alpha.reciprocal()
    t2 = q.concentration.lgamma() - q.concentration * q.rate.log()
    t4 = q.rate * p.alpha * p.scale / (p.alpha - 1)
    result = p.alpha.log() - common + t2 + (1 - q.concentration) * common + t4 - 1
    result[p.alpha <= 1] = inf
    return result


@register_kl(Pareto, Normal)
def _kl_pareto_normal(p, q):
    variance, common = 2 * q.scale.pow(2), p.scale / (p.alpha - 1)
    t1 = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log()
    t3 = p.alpha * common.pow(2) / (p.alpha - 2)
    result = t1 - p.alpha.reciprocal() + (t3 + (p.alpha * common - q.loc).pow(2)) / variance - 1
    result[p.alpha <= 2] = inf
    return result


@register_kl(Uniform, Beta)
def _kl_uniform_beta(p, q):
    width = p.high - p.low
    t2 = (q.concentration1 - 1) * (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    t3 = (q.concentration0 - 1) * (_x_log_x(1 - p.high) - _x_log_x(1 - p.low) + width) / width
    t4 = q.concentration1.lgamma() + q.concentration0.lgamma() - (q.concentration1 + q.concentration0).lgamma()
    result = t3 + t4 - umbra.log(width) - t2
    result[(p.high > q.support.upper_bound) | (p.low < q.support.lower_bound)] = inf
    return result


@register_kl(Uniform, ContinuousBernoulli)
def _kl_uniform_continuous_bernoulli(p, q):
    result = -p.entropy() - p.mean * q.logits - umbra.log1p(-q.probs) - q._cont_bern_log_norm()
    beyond = umbra.max(umbra.ge(p.high, q.support.upper_bound), umbra.le(p.low, q.support.lower_bound))
    return umbra.where(beyond, umbra.ones_like(result) * inf, result)


@register_kl(Uniform, Exponential)
def _kl_uniform_exponential(p, q):
    result = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    result[p.low < q.support.lower_bound] = inf
    return result


@register_kl(Uniform, Gamma)
def _kl_uniform_gamma(p, q):
    width = p.high - p.low
    t2 = q.concentration.lgamma() - q.concentration * q.rate.log()
    t3 = (1 - q.concentration) * (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    result = -width.log() + t2 + t3 + q.rate * (p.high + p.low) / 2
    result[p.low < q.support.lower_bound] = inf
    return result


@register_kl(Uniform, Gumbel)
def _kl_uniform_gumbel(p, q):
    ratio, high, low = q.scale / (p.high - p.low), (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return ratio.log() + 0.5 * (high + low) - ratio * (umbra.exp(-high) - umbra.exp(-low))


@register_kl(Uniform, Normal)
def _kl_uniform_normal(p, q):
    width = p.high - p.low
    t1 = (math.sqrt(math.pi * 2) * q.scale / width).log()
    return t1 + 0.5 * (width.pow(2) / 12 + ((p.high + p.low - 2 * q.loc) / 2).pow(2)) / q.scale.pow(2)


@register_kl(Uniform, Pareto)
def _kl_uniform_pareto(p, q):
    width = p.high - p.low
    t1 = (q.alpha * q.scale.pow(q.alpha) * width).log()
    result = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width * (q.alpha + 1) - t1
    result[p.low < q.support.lower_bound] = inf
    return result
