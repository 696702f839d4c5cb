// Random numbers: the same streams as PyTorch draws on the CPU from the same seed.
//
// To the last bit: where PyTorch's compiler joins a product and a sum, so do these (std::fma).
//
// Each fills `self` in place, in the order in which its elements lie in memory, and holds the generator's lock while it
// draws.
#pragma once

#include "umbra/core/generator.h"
#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// Uniform in [from, to).
void uniform(const Tensor& self, double from, double to, Generator& generator);
/// Gaussian. Of complex tensors, each part with half the variance.
void normal(const Tensor& self, double mean, double deviation, Generator& generator);
/// One with probability p, else zero; p one number, or one for each element (broadcast).
void bernoulli(const Tensor& self, double p, Generator& generator);
void bernoulli(const Tensor& self, const Tensor& p, Generator& generator);
/// Integers in [from, to). Without bounds, in [0, largest that the type holds exactly].
void random_between(const Tensor& self, int64_t from, int64_t to, Generator& generator);
void random(const Tensor& self, Generator& generator);
/// All 64 bits: the whole range of int64.
void random_full(const Tensor& self, Generator& generator);
/// A permutation of 0 .. n - 1; out has n elements.
void randperm(const Tensor& out, Generator& generator);

void exponential(const Tensor& self, double lambda, Generator& generator);
void geometric(const Tensor& self, double p, Generator& generator);
void cauchy(const Tensor& self, double median, double sigma, Generator& generator);
void log_normal(const Tensor& self, double mean, double deviation, Generator& generator);

/// Draws out.size(-1) classes from each row of unnormalised probabilities, and puts them back; both have two
/// dimensions.
void multinomial(const Tensor& out, const Tensor& probabilities, Generator& generator);
/// The numbers of events at the rates of `rate`.
void poisson(const Tensor& out, const Tensor& rate, Generator& generator);
/// The numbers of successes among `count` trials (broadcast) of probability `p` (broadcast).
void binomial(const Tensor& out, const Tensor& count, const Tensor& p, Generator& generator);
/// Gamma distributed numbers of scale 1 and the shapes of `alpha`.
void standard_gamma(const Tensor& out, const Tensor& alpha, Generator& generator);
/// Points of the simplex over the last dimension, by the concentrations of `alpha`.
void dirichlet(const Tensor& out, const Tensor& alpha, Generator& generator);
/// Negative elements are scaled by slopes from [lower, upper); `noise` gets each element's slope.
void randomized_relu(const Tensor& out, const Tensor& noise, const Tensor& self, double lower, double upper,
                     Generator& generator);

}  // namespace umbra::kernels
