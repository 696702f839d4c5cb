// Weight and bias of layers that multiply their input by a weight.
#pragma once

#include <cmath>

#include "umbra/generated/functions.h"
#include "umbra/nn/init.h"

namespace umbra::nn {

/// Weights of linear and convolutional layers, then their bias, are drawn uniformly with a width that follows from the
/// number of inputs.
inline void reset_affine(const Tensor& weight, const Tensor& bias) {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  int64_t inputs = init::fans_of(weight).in;
  double bound = inputs > 0 ? 1 / std::sqrt(static_cast<double>(inputs)) : 0;
  init::uniform_(bias, -bound, bound);
}

inline Tensor optional_empty(bool wanted, SymIntArrayRef sizes, const TensorOptions& options) {
  return wanted ? empty(sizes, options) : Tensor();
}

}  // namespace umbra::nn
