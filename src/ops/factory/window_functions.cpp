// Windows of signal processing. A periodic one is a symmetric one of one element more, without its last.
#include <cmath>
#include <limits>

#include "kernels/special.h"
#include "ops/factory/factory.h"

namespace umbra::ops {
namespace {

void check_window(const char* name, int64_t length, const TensorOptions& options) {
  check(!options.layout || *options.layout == Layout::Strided, name, " is not implemented for sparse types");
  DType dtype = options.dtype.value_or(default_dtype());
  bool unchecked =
      options.device && options.device->type == DeviceType::Meta && std::string_view(name) == "hann_window";
  check(is_floating(dtype) || is_complex(dtype) || unchecked, name,
        " expects floating point dtypes, got: ", kernel_name(dtype));
  check(length >= 0, name, " requires non-negative window_length, got window_length=", length);
}

/// `make` gives a symmetric window of the length that it is told, which is two or more.
template <class Make>
Tensor window(const char* name, int64_t length, bool periodic, const TensorOptions& options, const Make& make) {
  check_window(name, length, options);
  if (length == 0) return empty({0}, options);
  if (length == 1) return ones({1}, options);
  TensorOptions known = options;
  known.dtype = options.dtype.value_or(default_dtype());
  check(length < std::numeric_limits<int64_t>::max(), name, " requires a smaller window_length, got ", length);
  int64_t whole = length + periodic;
  Tensor symmetric = make(arange(Scalar(whole), known), whole);
  return periodic ? symmetric.narrow(0, 0, whole - 1) : symmetric;
}

/// 0 to 1 to 0, in straight lines.
Tensor bartlett(int64_t length, bool periodic, const TensorOptions& options) {
  return window("bartlett_window", length, periodic, options, [](Tensor at, int64_t n) {
    int64_t rising = ((n - 1) >> 1) + 1;
    at.mul_(2.0 / static_cast<double>(n - 1));
    at.narrow(0, rising, n - rising).mul_(-1).add_(2);
    return at;
  });
}

Tensor blackman(int64_t length, bool periodic, const TensorOptions& options) {
  return window("blackman_window", length, periodic, options, [](Tensor at, int64_t n) {
    at.mul_(M_PI / static_cast<double>(n - 1));
    return at.mul(4).cos_().mul_(0.08).sub(at.mul(2).cos_().mul_(0.5)).add_(0.42);
  });
}

Tensor cosine(const char* name, int64_t length, bool periodic, double alpha, double beta,
              const TensorOptions& options) {
  return window(name, length, periodic, options, [&](Tensor at, int64_t n) {
    return at.mul_(2 * M_PI / static_cast<double>(n - 1)).cos_().mul_(-beta).add_(alpha);
  });
}
Tensor hamming(int64_t length, bool periodic, double alpha, double beta, const TensorOptions& options) {
  return cosine("hamming_window", length, periodic, alpha, beta, options);
}
Tensor hann(int64_t length, bool periodic, const TensorOptions& options) {
  return cosine("hann_window", length, periodic, 0.5, 0.5, options);
}

/// The Bessel function I0 over half a circle.
Tensor kaiser(int64_t length, bool periodic, double beta, const TensorOptions& options) {
  if (options.dtype && is_reduced_floating(*options.dtype)) {  // rounded at the end alone
    TensorOptions wide = options;
    wide.dtype = DType::Float32;
    return kaiser(length, periodic, beta, wide).to(*options.dtype);
  }
  return window("kaiser_window", length, periodic, options, [&](Tensor at, int64_t n) {
    at.mul_(2 / static_cast<double>(n - 1)).sub_(1);
    Tensor height = at.square_().neg_().add_(1).clamp_min_(0).sqrt_();
    return height.mul_(beta).i0_().div_(kernels::special::bessel_i0(beta));
  });
}

/// What is said of a window besides its formula `make(length, periodic, numbers..., options)`: of its length alone it
/// is periodic.
template <class Make> auto by_length(Make make) {
  return [make](OperatorBuilder& builder) {
    builder
        .all_backends([make](int64_t length, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
                             OptionalBool pin) { return make(length, true, options_of(dtype, layout, device, pin)); })
        .not_differentiable();
  };
}
template <class... Numbers, class Make> auto by_period(Make make) {
  return [make](OperatorBuilder& builder) {
    builder
        .all_backends([make](int64_t length, bool periodic, Numbers... numbers, OptionalDType dtype,
                             OptionalLayout layout, OptionalDevice device, OptionalBool pin) {
          return make(length, periodic, numbers..., options_of(dtype, layout, device, pin));
        })
        .not_differentiable();
  };
}

Tensor usual_hamming(int64_t length, bool periodic, const TensorOptions& options) {
  return hamming(length, periodic, 0.54, 0.46, options);
}
Tensor hamming_of_alpha(int64_t length, bool periodic, double alpha, const TensorOptions& options) {
  return hamming(length, periodic, alpha, 0.46, options);
}
Tensor usual_kaiser(int64_t length, bool periodic, const TensorOptions& options) {
  return kaiser(length, periodic, 12.0, options);
}

UMBRA_OPERATOR(
    "bartlett_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor")
    .generated_out("bartlett_window.out")
    .use(by_length(bartlett));
UMBRA_OPERATOR(
    "bartlett_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor")
    .generated_out("bartlett_window.periodic_out")
    .use(by_period(bartlett));

UMBRA_OPERATOR(
    "blackman_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor")
    .generated_out("blackman_window.out")
    .use(by_length(blackman));
UMBRA_OPERATOR(
    "blackman_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor")
    .generated_out("blackman_window.periodic_out")
    .use(by_period(blackman));

UMBRA_OPERATOR(
    "hann_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor")
    .generated_out("hann_window.out")
    .use(by_length(hann));
UMBRA_OPERATOR(
    "hann_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None) -> Tensor")
    .generated_out("hann_window.periodic_out")
    .use(by_period(hann));

UMBRA_OPERATOR(
    "hamming_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor")
    .generated_out("hamming_window.out")
    .use(by_length(usual_hamming));
UMBRA_OPERATOR(
    "hamming_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None) -> Tensor")
    .generated_out("hamming_window.periodic_out")
    .use(by_period(usual_hamming));
UMBRA_OPERATOR(
    "hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, *, ScalarType? dtype=None, Layout? "
    "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
    .generated_out("hamming_window.periodic_alpha_out")
    .use(by_period<double>(hamming_of_alpha));
UMBRA_OPERATOR(
    "hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta, *, ScalarType? "
    "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor")
    .generated_out("hamming_window.periodic_alpha_beta_out")
    .use(by_period<double, double>(hamming));

UMBRA_OPERATOR(
    "kaiser_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
    "pin_memory=None) -> Tensor")
    .generated_out("kaiser_window.out")
    .use(by_length(usual_kaiser));
UMBRA_OPERATOR(
    "kaiser_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? "
    "device=None, bool? pin_memory=None) -> Tensor")
    .generated_out("kaiser_window.periodic_out")
    .use(by_period(usual_kaiser));
UMBRA_OPERATOR(
    "kaiser_window.beta(int window_length, bool periodic, float beta, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor")
    .generated_out("kaiser_window.beta_out")
    .use(by_period<double>(kaiser));

}  // namespace
}  // namespace umbra::ops
