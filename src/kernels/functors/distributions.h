// How random numbers move with the parameters of their distribution, one by one in double.
#pragma once

#include "kernels/distribution_gradients.h"
#include "kernels/functors/functor.h"

namespace umbra::functors {

struct StandardGammaGrad : Binary {
  static constexpr const char* name = "_standard_gamma_grad_cpu";
  static constexpr bool scalar_only = true, full_width_only = true;
  using types = Floating;
  template <class T> T operator()(T shape, T x) const { return T(kernels::standard_gamma_gradient(shape, x)); }
};
struct DirichletGrad : Ternary {
  static constexpr const char* name = "_dirichlet_grad_cpu";
  static constexpr bool scalar_only = true, full_width_only = true;
  using types = Floating;
  template <class T> T operator()(T x, T alpha, T total) const {
    return T(kernels::dirichlet_gradient(x, alpha, total));
  }
};

}  // namespace umbra::functors
