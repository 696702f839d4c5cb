"""Distributions: densities, moments, samples with gradients, transforms and divergences."""
# Some build on others: the order is theirs.
from umbra.distributions import constraints, transforms  # noqa: F401
from umbra.distributions.distribution import Distribution
from umbra.distributions.exp_family import ExponentialFamily
from umbra.distributions.bernoulli import Bernoulli
from umbra.distributions.dirichlet import Dirichlet
from umbra.distributions.beta import Beta
from umbra.distributions.binomial import Binomial
from umbra.distributions.categorical import Categorical
from umbra.distributions.cauchy import Cauchy
from umbra.distributions.gamma import Gamma
from umbra.distributions.chi2 import Chi2
from umbra.distributions.constraint_registry import biject_to, transform_to
from umbra.distributions.continuous_bernoulli import ContinuousBernoulli
from umbra.distributions.exponential import Exponential
from umbra.distributions.fishersnedecor import FisherSnedecor
from umbra.distributions.generalized_pareto import GeneralizedPareto
from umbra.distributions.geometric import Geometric
from umbra.distributions.gumbel import Gumbel
from umbra.distributions.half_cauchy import HalfCauchy
from umbra.distributions.half_normal import HalfNormal
from umbra.distributions.independent import Independent
from umbra.distributions.inverse_gamma import InverseGamma
from umbra.distributions.kumaraswamy import Kumaraswamy
from umbra.distributions.laplace import Laplace
from umbra.distributions.lkj_cholesky import LKJCholesky
from umbra.distributions.log_normal import LogNormal
from umbra.distributions.logistic_normal import LogisticNormal
from umbra.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from umbra.distributions.mixture_same_family import MixtureSameFamily
from umbra.distributions.multinomial import Multinomial
from umbra.distributions.multivariate_normal import MultivariateNormal
from umbra.distributions.negative_binomial import NegativeBinomial
from umbra.distributions.normal import Normal
from umbra.distributions.one_hot_categorical import OneHotCategorical, OneHotCategoricalStraightThrough
from umbra.distributions.pareto import Pareto
from umbra.distributions.poisson import Poisson
from umbra.distributions.relaxed_bernoulli import RelaxedBernoulli
from umbra.distributions.relaxed_categorical import RelaxedOneHotCategorical
from umbra.distributions.studentT import StudentT
from umbra.distributions.transformed_distribution import TransformedDistribution
from umbra.distributions.transforms import *  # noqa: F403
from umbra.distributions.uniform import Uniform
from umbra.distributions.von_mises import VonMises
from umbra.distributions.weibull import Weibull
from umbra.distributions.wishart import Wishart
from umbra.distributions.kl import kl_divergence, register_kl

__all__ = [
    "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ContinuousBernoulli", "Dirichlet", "Distribution", "Exponential",
    "ExponentialFamily", "FisherSnedecor", "Gamma", "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent",
    "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal", "LowRankMultivariateNormal", "MixtureSameFamily",
    "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough", "Pareto",
    "Poisson", "RelaxedBernoulli", "RelaxedOneHotCategorical", "StudentT", "TransformedDistribution", "Uniform", "VonMises", "Weibull",
    "Wishart", "biject_to", "kl_divergence", "register_kl", "transform_to", *transforms.__all__,
]
