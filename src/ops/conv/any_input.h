// What all forms of convolution do with their input: complex numbers by real ones, and inputs without a batch.
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

/// `convolve` of an input that may be complex, and may have no batch: one of size 1 is put in front and taken away
/// again.
template <class F>
Tensor convolve_any(const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t spatial, F&& convolve) {
  bool batched = input.dim() == spatial + 2;
  Tensor x = batched ? input : input.unsqueeze(0);
  Tensor out = all_complex(input, weight, bias) ? by_real_parts(x, weight, bias, convolve) : convolve(x, weight, bias);
  return batched ? out : out.squeeze(0);
}

inline void check_rank(const Tensor& input, int64_t spatial) {
  check(input.dim() == spatial + 2 || input.dim() == spatial + 1, "Expected ", spatial + 1, "D (unbatched) or ",
        spatial + 2, "D (batched) input to conv", spatial, "d, but got input of size: ", input.sym_sizes());
}

}  // namespace umbra::ops
