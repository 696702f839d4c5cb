// A function's derivatives held against finite differences, as tests of autograd functions and operators do.
#pragma once

#include "umbra/transform/transform.h"

namespace UMBRA_API umbra {

struct GradcheckOptions {
  double eps = 1e-6, atol = 1e-5, rtol = 1e-3;
};

namespace transform {
void gradcheck(const TensorFunction& function, const std::vector<Tensor>& inputs, const GradcheckOptions& options);
}

/// `gradcheck(f, {x, weight})`: true, or an Error that shows both Jacobians of the first result that differs. Inputs
/// that require gradients are looked at; they are real, and float64 unless `eps` and the tolerances are made larger.
template <class F, size_t N> bool gradcheck(F f, const Tensor (&inputs)[N], const GradcheckOptions& options = {}) {
  transform::gradcheck(transform::detail::over_lists<N>(std::move(f)), {inputs, inputs + N}, options);
  return true;
}

}  // namespace umbra
