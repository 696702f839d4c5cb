// Orthogonal polynomials of degree n at x, by their recurrences; n is cut to an integer, below 0 they are 0.
#pragma once

#include "kernels/functors/functor.h"

namespace umbra::functors {

namespace polynomials {

/// A degree as an integer; what no integer holds (infinity, NaN) counts as below 0.
template <class T> int64_t degree(T n) {
  constexpr auto kLimit = static_cast<T>(0x1p63);
  return n > -kLimit && n < kLimit ? static_cast<int64_t>(n) : -1;
}

/// p(n) from p(0) = 1, p(1) and the step from p(k - 1) and p(k) to p(k + 1).
template <class T, class Step> T recurrence(int64_t n, T first, const Step& step) {
  if (n < 0) return T(0);
  if (n == 0) return T(1);
  T before = 1, now = first;
  for (int64_t k = 1; k < n && now == now; ++k) {
    T next = step(static_cast<T>(k), before, now);
    before = now;
    now = next;
  }
  return now;
}

/// The same for a register of degrees, each with as many steps as it needs. NaN counts as below 0.
inline constexpr double kMostSteps = 1 << 16;  // beyond, lanes go one by one
template <class V, class Step> V recurrence(V n, V first, const Step& step) {
  V before(1), now = first;
  for (V k(1);; k += V(1)) {
    auto goes_on = k < n;
    if (!any(goes_on & (now == now))) break;
    V next = step(k, before, now);
    before = select(goes_on, now, before);
    now = select(goes_on, next, now);
  }
  return select(n >= V(1), now, select(n >= V(0), V(1), V(0)));
}
template <class V> V degrees(V n) {
  n = trunc(n);
  return select(abs(n) < V(0x1p63), n, V(-1));
}

/// What a polynomial is at an end of its interval, where the recurrence is known to stay.
template <class T> T alternating(int64_t n, T value) { return n % 2 == 0 ? value : -value; }
template <class V> V alternating(V n, V value) {
  V half = n * V(0.5);
  return select(half == floor(half), value, -value);
}

}  // namespace polynomials

/// Chebyshev's four kinds share a recurrence; they differ in p(1) and, inside [-1, 1], in their form by angles, which
/// serves high degrees. The shifted ones have [0, 1] for their interval.
enum class ChebyshevKind { T, U, V, W };

template <ChebyshevKind kind, bool shifted> struct Chebyshev : Binary {
  static constexpr const char* name = [] {
    constexpr const char* kNames[2][4] = {{"chebyshev_polynomial_t_cpu", "chebyshev_polynomial_u_cpu",
                                           "chebyshev_polynomial_v_cpu", "chebyshev_polynomial_w_cpu"},
                                          {"shifted_chebyshev_polynomial_t_cpu", "shifted_chebyshev_polynomial_u_cpu",
                                           "shifted_chebyshev_polynomial_v_cpu", "shifted_chebyshev_polynomial_w_cpu"}};
    return kNames[shifted][static_cast<int>(kind)];
  }();
  static constexpr bool full_width_only = true;
  using types = Floating;

  template <class T> T operator()(T at, T degree) const {
    T x = shifted ? at + at - T(1) : at;
    if constexpr (math::is_plain_real<T>) return of_number(x, polynomials::degree(degree));
    else return of_register(x, polynomials::degrees(degree));
  }

 private:
  static constexpr int kHighDegree = 8;

  template <class T> static T of_number(T x, int64_t n) {
    if (n > 1 && x == T(1)) return at_one(static_cast<T>(n));
    if (n > 1 && x == T(-1)) return polynomials::alternating(n, size_at_minus_one(static_cast<T>(n)));
    if (n > kHighDegree && abs(x) < T(1)) return by_angles(static_cast<T>(n), x);
    return polynomials::recurrence(n, first(x), [x](T, T before, T now) { return (x + x) * now - before; });
  }
  template <class V> static V of_register(V x, V n) {
    if (any(n > V(polynomials::kMostSteps)))
      return map(x, n, [](auto at, auto degree) { return of_number(at, polynomials::degree(degree)); });
    const V one(1);
    auto above_one = n > one, angular = (n > V(kHighDegree)) & (abs(x) < one);
    V steps = select(angular, one, n);
    V value = polynomials::recurrence(steps, first(x), [x](V, V before, V now) { return (x + x) * now - before; });
    if (any(angular)) value = select(angular, by_angles(n, x), value);
    value = select(above_one & (x == one), at_one(n), value);
    return select(above_one & (x == -one), polynomials::alternating(n, size_at_minus_one(n)), value);
  }

  template <class T> static T first(T x) {
    if constexpr (kind == ChebyshevKind::T) return x;
    else if constexpr (kind == ChebyshevKind::V) return x + x - T(1);
    else if constexpr (kind == ChebyshevKind::W) return x + x + T(1);
    else return x + x;
  }
  template <class T> static T at_one(T n) {
    if constexpr (kind == ChebyshevKind::U) return n + T(1);
    else if constexpr (kind == ChebyshevKind::W) return n + n + T(1);
    else return T(1);
  }
  template <class T> static T size_at_minus_one(T n) {
    if constexpr (kind == ChebyshevKind::U) return n + T(1);
    else if constexpr (kind == ChebyshevKind::V) return n + n + T(1);
    else return T(1);
  }
  template <class T> static T by_angles(T n, T x) {
    T angle = acos(x);
    if constexpr (kind == ChebyshevKind::T) return cos(n * angle);
    else if constexpr (kind == ChebyshevKind::U) return sin((n + T(1)) * angle) / sin(angle);
    else if constexpr (kind == ChebyshevKind::V) return cos((n + T(0.5)) * angle) / cos(angle / T(2));
    else return sin((n + T(0.5)) * angle) / sin(angle / T(2));
  }
};

/// The others, by a family that says p(1), the step and what is special about it.
template <class Family> struct Polynomial : Binary {
  static constexpr const char* name = Family::name;
  static constexpr bool full_width_only = true;
  using types = Floating;

  template <class T> T operator()(T x, T degree) const {
    if constexpr (math::is_plain_real<T>) return of_number(x, polynomials::degree(degree));
    else return of_register(x, polynomials::degrees(degree));
  }

 private:
  template <class T> static T of_number(T x, int64_t n) {
    if constexpr (requires { Family::template kHighest<T>; })
      if (n > Family::template kHighest<T>) return std::numeric_limits<T>::quiet_NaN();
    if constexpr (requires { Family::is_end(x); })
      if (n > 0 && Family::is_end(x)) return Family::at_end(x, n);
    if constexpr (requires { Family::kByRecurrence; })
      if (n > Family::kByRecurrence && x == x) return static_cast<T>(Family::of_high_degree(x, n));
    return polynomials::recurrence(n, Family::first(x),
                                   [x](T k, T before, T now) { return Family::next(x, k, before, now); });
  }
  template <class V> static V of_register(V x, V n) {
    using T = typename V::Element;
    const V nan(std::numeric_limits<T>::quiet_NaN());
    auto too_high = n > V(polynomials::kMostSteps);
    if constexpr (requires { Family::template kHighest<T>; }) {
      too_high = n > V(Family::template kHighest<T>);
      n = select(too_high, V(0), n);
    } else if (any(too_high)) {
      return map(x, n, [](T at, T degree) { return of_number(at, polynomials::degree(degree)); });
    }
    V value = polynomials::recurrence(n, Family::first(x),
                                      [x](V k, V before, V now) { return Family::next(x, k, before, now); });
    if constexpr (requires { Family::is_end(x); })
      value = select((n > V(0)) & Family::is_end(x), Family::at_end(x, n), value);
    return select(too_high, nan, value);
  }
};

namespace polynomials {

struct Hermite {
  /// From here on they overflow nearly everywhere, and count as having no value.
  template <class T> static constexpr int64_t kHighest = std::is_same_v<T, double> ? 512 : 128;
};
struct PhysicistsHermite : Hermite {
  static constexpr const char* name = "hermite_polynomial_h_cpu";
  template <class T> static T first(T x) { return x + x; }
  template <class T> static T next(T x, T k, T before, T now) { return (x + x) * now - (k + k) * before; }
};
struct ProbabilistsHermite : Hermite {
  static constexpr const char* name = "hermite_polynomial_he_cpu";
  template <class T> static T first(T x) { return x; }
  template <class T> static T next(T x, T k, T before, T now) { return x * now - k * before; }
};
/// Degrees that a recurrence would take minutes for go by what the polynomials tend to: Bessel functions of order 0,
/// with an error of about 1 / degree of their amplitude. Where they overflow there is no value, as by recurrence.
struct ByRecurrence {
  static constexpr int64_t kByRecurrence = int64_t{1} << 26;
  static double finite_or_nan(double value) {
    return std::isfinite(value) ? value : std::numeric_limits<double>::quiet_NaN();
  }
  static double modified_bessel(double z) {
    constexpr double kLargest = 700;
    return z < kLargest ? std::cyl_bessel_i(0.0, z) : std::numeric_limits<double>::infinity();
  }
};
struct Laguerre : ByRecurrence {
  static double of_high_degree(double x, int64_t n) {
    double scale = 4 * static_cast<double>(n) + 2, t = std::abs(x) / scale, root = std::sqrt(t);
    if (x > 0 && t >= 1) return std::numeric_limits<double>::quiet_NaN();
    double phase =
        x > 0 ? (root * std::sqrt(1 - t) + std::asin(root)) / 2 : (root * std::sqrt(1 + t) + std::asinh(root)) / 2;
    double amplitude = std::exp(x / 2) * std::sqrt(phase / (root * std::sqrt(x > 0 ? 1 - t : 1 + t)));
    return finite_or_nan(amplitude * (x > 0 ? ::j0(scale * phase) : modified_bessel(scale * phase)));
  }
  static constexpr const char* name = "laguerre_polynomial_l_cpu";
  template <class T> static T first(T x) { return T(1) - x; }
  template <class T> static T next(T x, T k, T before, T now) {
    return (((k + k) + (T(1) - x)) * now - k * before) / (k + T(1));
  }
  template <class T> static auto is_end(T x) { return x == T(0); }
  template <class T, class N> static T at_end(T, N) { return T(1); }
};
struct Legendre : ByRecurrence {
  static double of_high_degree(double x, int64_t n) {
    long double size = std::abs(x), times = static_cast<long double>(n) + 0.5L;
    bool inside = size < 1;
    long double angle = inside ? std::acos(size) : std::acosh(size);
    auto z = static_cast<double>(times * angle), a = static_cast<double>(angle);
    double value = inside ? std::sqrt(a / std::sin(a)) * ::j0(z) : std::sqrt(a / std::sinh(a)) * modified_bessel(z);
    return finite_or_nan(x > 0 ? value : alternating(n, value));
  }
  static constexpr const char* name = "legendre_polynomial_p_cpu";
  template <class T> static T first(T x) { return x; }
  template <class T> static T next(T x, T k, T before, T now) {
    return ((k + k + T(1)) * x * now - k * before) / (k + T(1));
  }
  template <class T> static auto is_end(T x) { return abs(x) == T(1); }
  template <class T, class N> static T at_end(T x, N n) { return select(x > T(0), T(1), alternating(n, T(1))); }
};

}  // namespace polynomials

using HermiteH = Polynomial<polynomials::PhysicistsHermite>;
using HermiteHe = Polynomial<polynomials::ProbabilistsHermite>;
using LaguerreL = Polynomial<polynomials::Laguerre>;
using LegendreP = Polynomial<polynomials::Legendre>;
template <ChebyshevKind kind> using ChebyshevPolynomial = Chebyshev<kind, false>;
template <ChebyshevKind kind> using ShiftedChebyshevPolynomial = Chebyshev<kind, true>;

}  // namespace umbra::functors
