#include "kernels/sequence.h"

#include <cmath>
#include <complex>
#include <limits>

#include "kernels/copy.h"
#include "kernels/fits.h"
#include "kernels/visit.h"

namespace umbra::kernels {
namespace {

// Integers take their steps in double, narrow types in float.
template <class T> using Step = std::conditional_t<std::is_integral_v<T>, double, Compute<T>>;

template <class T> T times_plus(T a, T b, T c) {
  if constexpr (std::is_floating_point_v<T>) return std::fma(a, b, c);
  else return a * b.real() + c;  // b is a count: infinite parts stay by themselves
}

template <class T> T divided(T a, int64_t count) {
  if constexpr (std::is_floating_point_v<T>) return a / static_cast<T>(count);
  else return a / static_cast<typename T::value_type>(count);
}

template <class T, class S> T rounded(S value) {
  if constexpr (!std::is_integral_v<T>) return static_cast<T>(value);
  // What does not fit is what the processor makes of it.
  else if constexpr (sizeof(T) == 8)
    return std::abs(value) < 0x1p63 ? static_cast<T>(value) : std::numeric_limits<T>::min();
  else
    return static_cast<T>(std::abs(value) < 0x1p31 ? static_cast<int32_t>(value) : std::numeric_limits<int32_t>::min());
}

/// The i-th exponent or number: from the nearer end, so that both ends are met exactly.
template <class T, class Fn>
void fill_between(const Tensor& out, const Scalar& start, const Scalar& end, const Fn& fn) {
  using S = Step<T>;
  int64_t n = out.numel(), stride = n > 0 ? out.stride(0) : 1;
  if (n == 0) return;
  const S first = static_cast<S>(start.to<T>()), last = static_cast<S>(end.to<T>());
  const S step = n > 1 ? divided(last - first, n - 1) : S(0);
  T* data = out.data<T>();
  for (int64_t i = 0; i < n; ++i) {
    bool lower = n == 1 || i < n / 2;
    S value = lower ? times_plus(step, static_cast<S>(i), first) : times_plus(-step, static_cast<S>(n - 1 - i), last);
    data[i * stride] = rounded<T>(fn(value));
  }
}

}  // namespace

void linspace(const Tensor& out, const Scalar& start, const Scalar& end) {
  // Nothing is computed of less than two steps, so any type will do.
  if (out.numel() == 0) return;
  if (out.numel() == 1) return fill(out, start);
  visit<NumberTypes>(out.dtype(), "linspace_cpu", [&](auto tag) {
    fill_between<typename decltype(tag)::type>(out, start, end, [](auto value) { return value; });
  });
}

void logspace(const Tensor& out, const Scalar& start, const Scalar& end, double base) {
  if (out.numel() == 0) return;
  if (out.numel() == 1) {  // one number, which has to fit
    Scalar number = is_complex(out.dtype()) ? Scalar(std::pow(base, start.to_complex()))
                                            : Scalar(std::pow(base, start.to_double()));
    check_fits(number, out.dtype());
    return fill(out, number);
  }
  visit<NumberTypes>(out.dtype(), "logspace_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_between<T>(out, start, end, [base = static_cast<Step<T>>(base)](auto value) { return std::pow(base, value); });
  });
}

}  // namespace umbra::kernels
