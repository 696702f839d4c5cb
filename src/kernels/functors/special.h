// Special functions: in registers of doubles (kernels/functors/series.h), or one by one in double (kernels/special.h).
#pragma once

#include "kernels/functors/bessel.h"
#include "kernels/functors/error_function.h"
#include "kernels/special.h"

namespace umbra::functors {

UMBRA_FUNCTOR_UNARY(Lgamma, "lgamma_vml_cpu", Floating, lgamma(x));

struct OneByOne {
  static constexpr bool scalar_only = true;
};
struct FullWidth {
  static constexpr bool full_width_only = true;
};
struct FullWidthOneByOne : OneByOne, FullWidth {};
struct AnyWidth {};

#define UMBRA_FUNCTOR_SPECIAL(Name, Kind, text, function)                                   \
  struct Name : Unary, Kind {                                                               \
    static constexpr const char* name = text;                                               \
    using types = Floating;                                                                 \
    template <class T> T operator()(T x) const { return T(kernels::special::function(x)); } \
  }
#define UMBRA_FUNCTOR_IN_DOUBLE(Name, Kind, text, function)                             \
  struct Name : Unary, Kind {                                                           \
    static constexpr const char* name = text;                                           \
    using types = Floating;                                                             \
    template <class T> T operator()(T x) const {                                        \
      return in_double(x, [](auto value, auto type) { return function(value, type); }); \
    }                                                                                   \
  }
#define UMBRA_FUNCTOR_SPECIAL_BINARY(Name, Kind, text, function)                                    \
  struct Name : Binary, Kind {                                                                      \
    static constexpr const char* name = text;                                                       \
    using types = Floating;                                                                         \
    template <class T> T operator()(T a, T b) const { return T(kernels::special::function(a, b)); } \
  }

UMBRA_FUNCTOR_SPECIAL(Digamma, OneByOne, "digamma", digamma);
UMBRA_FUNCTOR_IN_DOUBLE(Ndtri, FullWidth, "ndtri_cpu", error_function::ndtri);
UMBRA_FUNCTOR_IN_DOUBLE(LogNdtr, FullWidth, "log_ndtr_cpu", error_function::log_ndtr);
UMBRA_FUNCTOR_IN_DOUBLE(BesselJ0, FullWidth, "bessel_j0_cpu", bessel::j0);
UMBRA_FUNCTOR_IN_DOUBLE(BesselJ1, FullWidth, "bessel_j1_cpu", bessel::j1);
UMBRA_FUNCTOR_IN_DOUBLE(BesselY0, FullWidth, "bessel_y0_cpu", bessel::y0);
UMBRA_FUNCTOR_IN_DOUBLE(BesselY1, FullWidth, "bessel_y1_cpu", bessel::y1);
UMBRA_FUNCTOR_IN_DOUBLE(BesselI0, AnyWidth, "i0_vml_cpu", bessel::i0);
UMBRA_FUNCTOR_IN_DOUBLE(BesselI1, AnyWidth, "i1_cpu", bessel::i1);
UMBRA_FUNCTOR_IN_DOUBLE(BesselI0e, AnyWidth, "i0e_cpu", bessel::i0e);
UMBRA_FUNCTOR_IN_DOUBLE(BesselI1e, AnyWidth, "i1e_cpu", bessel::i1e);
UMBRA_FUNCTOR_IN_DOUBLE(ModifiedBesselI0, FullWidth, "modified_bessel_i0_cpu", bessel::i0);
UMBRA_FUNCTOR_IN_DOUBLE(ModifiedBesselI1, FullWidth, "modified_bessel_i1_cpu", bessel::i1);
UMBRA_FUNCTOR_IN_DOUBLE(ModifiedBesselK0, FullWidth, "modified_bessel_k0_cpu", bessel::k0);
UMBRA_FUNCTOR_IN_DOUBLE(ModifiedBesselK1, FullWidth, "modified_bessel_k1_cpu", bessel::k1);
UMBRA_FUNCTOR_IN_DOUBLE(ScaledModifiedBesselK0, FullWidth, "scaled_modified_bessel_k0_cpu", bessel::k0e);
UMBRA_FUNCTOR_IN_DOUBLE(ScaledModifiedBesselK1, FullWidth, "scaled_modified_bessel_k1_cpu", bessel::k1e);
UMBRA_FUNCTOR_IN_DOUBLE(SphericalBesselJ0, FullWidth, "spherical_bessel_j0_cpu", bessel::spherical_j0);
UMBRA_FUNCTOR_SPECIAL(AiryAi, FullWidthOneByOne, "airy_ai_cpu", airy_ai);
UMBRA_FUNCTOR_SPECIAL_BINARY(Zeta, FullWidthOneByOne, "zeta_cpu", zeta);
UMBRA_FUNCTOR_SPECIAL_BINARY(Igamma, OneByOne, "igamma_cpu", lower_gamma_or_nan);
UMBRA_FUNCTOR_SPECIAL_BINARY(Igammac, OneByOne, "igammac_cpu", upper_gamma_or_nan);

struct Erfcx : Unary, FullWidth {
  static constexpr const char* name = "erfcx_cpu";
  using types = Floating;
  template <class T> T operator()(T x) const {
    if constexpr (math::is_plain_real<T>) return error_function::erfcx(x, T());
    else return error_function::erfcx(x, typename T::Element());
  }
};

struct Erfinv : Unary {
  static constexpr const char* name = "erfinv_vml_cpu";
  using types = Floating;
  template <class T> T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) return T(kernels::special::erfinv(x));
    else return erfinv(x);
  }
};

struct Polygamma : Unary, OneByOne {
  static constexpr const char* name = "polygamma";
  using types = Floating;
  int64_t order = 0;
  template <class T> auto bind() const {
    // As in PyTorch an order beyond 32 bits is cut off to them.
    auto n = static_cast<int32_t>(order);
    bool pole = n == 0 && order != 0;  // the series of order 0, which has no limit
    return [n = static_cast<double>(n), pole](T x) {
      return pole ? -std::numeric_limits<T>::infinity() : kernels::special::polygamma(n, x);
    };
  }
};

#undef UMBRA_FUNCTOR_SPECIAL
#undef UMBRA_FUNCTOR_IN_DOUBLE
#undef UMBRA_FUNCTOR_SPECIAL_BINARY

}  // namespace umbra::functors
