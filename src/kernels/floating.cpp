#include "kernels/floating.h"

#include <bit>
#include <cmath>

#include "kernels/copy.h"
#include "kernels/parallel.h"
#include "kernels/rows.h"
#include "kernels/visit.h"

namespace umbra::kernels {

void frexp(const Tensor& mantissa, const Tensor& exponent, const Tensor& self) {
  visit<FloatingTypes>(self.dtype(), "frexp_cpu", [&](auto tag) {
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

/// The next number after `from` on the way to `to`.
template <class T> T neighbour(T from, T to) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
  constexpr Bits sign = Bits{1} << (8 * sizeof(T) - 1);
  Compute<T> a = from, b = to;
  // The bits of a number count away from zero.
  auto bits = std::bit_cast<Bits>(from);
  Bits away = static_cast<Bits>(bits + 1), back = static_cast<Bits>(bits - 1), least = b < 0 ? Bits(sign | 1) : Bits{1};
  Bits next = a == 0 ? least : (a < b) == (a > 0) ? away : back;
  T found = std::bit_cast<T>(next);
  found = a == b ? to : found;
  return a != a || b != b ? static_cast<T>(a + b) : found;
}

}  // namespace

void nextafter(const Tensor& out, const Tensor& self, const Tensor& other) {
  visit<FloatingTypes>(out.dtype(), "nextafter_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto expanded = [&](const Tensor& t) {
      Tensor dense = scratch(out.sizes(), out.dtype());
      copy(dense, t);
      return dense;
    };
    if (out.numel() == 0) return;
    Tensor results = expanded(self);
    bool as_it_is = other.dtype() == out.dtype() && other.sizes() == out.sizes() && other.is_contiguous();
    Tensor goals = as_it_is ? other : expanded(other);
    T* __restrict from = results.data<T>();
    const T* __restrict to = goals.data<T>();
    parallel_for(0, out.numel(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) from[i] = neighbour(from[i], to[i]);
    });
    copy(out, results);
  });
}

}  // namespace umbra::kernels
