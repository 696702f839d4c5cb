#include "kernels/floating.h"

#include <cmath>

#include "kernels/rows.h"
#include "kernels/visit.h"

namespace umbra::kernels {

void frexp(const Tensor& mantissa, const Tensor& exponent, const Tensor& self) {
  visit<FloatingTypes>(self.dtype(), "frexp", [&](auto tag) {
    using T = Compute<typename decltype(tag)::type>;
    std::vector<T> values = read_vector<T>(self);
    std::vector<int32_t> exponents(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      int power = 0;
      values[i] = std::frexp(values[i], &power);
      exponents[i] = std::isfinite(values[i]) ? power : 0;
    }
    write_vector(mantissa, values);
    write_vector(exponent, exponents);
  });
}

namespace {

template <class T> T neighbour(T from, T to) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::nextafter(from, to);
  } else {
    float a = from, b = to;
    if (std::isnan(a) || std::isnan(b)) return T(a + b);
    if (a == b) return to;
    if (a == 0) return T::from_bits(static_cast<uint16_t>(b < 0 ? 0x8001 : 1));
    // The bits of a number count away from zero.
    return T::from_bits(static_cast<uint16_t>(from.bits + ((a < b) == (a > 0) ? 1 : -1)));
  }
}

}  // namespace

void nextafter(const Tensor& out, const Tensor& self, const Tensor& other) {
  visit<FloatingTypes>(out.dtype(), "nextafter_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto expanded = [&](const Tensor& t) {
      Tensor dense = scratch(out.sizes(), out.dtype());
      copy(dense, t);
      return read_vector<T>(dense);
    };
    std::vector<T> from = expanded(self), to = expanded(other);
    for (size_t i = 0; i < from.size(); ++i) from[i] = neighbour(from[i], to[i]);
    write_vector(out, from);
  });
}

}  // namespace umbra::kernels
