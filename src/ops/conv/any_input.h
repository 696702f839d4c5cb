// Convolutions of complex numbers by those of real ones.
#pragma once

#include <complex>

#include "umbra/generated/functions.h"

namespace umbra::ops {

/// Three real convolutions: (a + bi)(c + di) = ac - bd + ((a + b)(c + d) - ac - bd)i. `convolve` takes an input, a
/// weight and a bias, which may be undefined; so may the bias here.
template <class F> Tensor by_real_parts(const Tensor& input, const Tensor& weight, const Tensor& bias, F&& convolve) {
  struct Parts {
    Tensor real, imaginary;
    explicit Parts(const Tensor& t) {
      if (!t.defined()) return;
      Tensor pairs = view_as_real(t.resolve_conj());
      real = pairs.select(-1, 0);
      imaginary = pairs.select(-1, 1);
    }
    Tensor sum() const { return real.defined() ? real.add(imaginary) : real; }
  };
  Parts x(input), w(weight), b(bias);
  Tensor first = convolve(x.real, w.real, b.real), second = convolve(x.imaginary, w.imaginary, Tensor());
  Tensor inputs = x.sum(), weights = w.sum();
  Tensor third = convolve(inputs, weights, b.sum());
  Tensor imaginary = third.sub(first).sub(second).mul(Scalar(std::complex<double>(0, 1)));
  return first.sub(second).add(imaginary);
}

inline bool all_complex(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  return input.is_complex() && weight.is_complex() && (!bias.defined() || bias.is_complex());
}

}  // namespace umbra::ops
