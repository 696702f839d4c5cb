// Special functions: one by one in double (kernels/special.h), save lgamma and erfinv, which there are for vectors.
#pragma once

#include "kernels/functors/functor.h"
#include "kernels/special.h"

namespace umbra::functors {

UMBRA_FUNCTOR_UNARY(Lgamma, "lgamma_vml_cpu", Floating, lgamma(x));

struct OneByOne {
  static constexpr bool scalar_only = true;
};
struct FullWidth : OneByOne {
  static constexpr bool full_width_only = true;
};

#define UMBRA_FUNCTOR_SPECIAL(Name, Kind, text, function)                                   \
  struct Name : Unary, Kind {                                                               \
    static constexpr const char* name = text;                                               \
    using types = Floating;                                                                 \
    template <class T> T operator()(T x) const { return T(kernels::special::function(x)); } \
  }
#define UMBRA_FUNCTOR_SPECIAL_BINARY(Name, Kind, text, function)                                    \
  struct Name : Binary, Kind {                                                                      \
    static constexpr const char* name = text;                                                       \
    using types = Floating;                                                                         \
    template <class T> T operator()(T a, T b) const { return T(kernels::special::function(a, b)); } \
  }

UMBRA_FUNCTOR_SPECIAL(Digamma, OneByOne, "digamma", digamma);
UMBRA_FUNCTOR_SPECIAL(Ndtri, FullWidth, "ndtri_cpu", ndtri);
UMBRA_FUNCTOR_SPECIAL(LogNdtr, FullWidth, "log_ndtr_cpu", log_ndtr);
UMBRA_FUNCTOR_SPECIAL(Erfcx, FullWidth, "erfcx_cpu", erfcx);
UMBRA_FUNCTOR_SPECIAL(BesselJ0, FullWidth, "bessel_j0_cpu", bessel_j0);
UMBRA_FUNCTOR_SPECIAL(BesselJ1, FullWidth, "bessel_j1_cpu", bessel_j1);
UMBRA_FUNCTOR_SPECIAL(BesselY0, FullWidth, "bessel_y0_cpu", bessel_y0);
UMBRA_FUNCTOR_SPECIAL(BesselY1, FullWidth, "bessel_y1_cpu", bessel_y1);
UMBRA_FUNCTOR_SPECIAL(BesselI0, OneByOne, "i0_vml_cpu", bessel_i0);
UMBRA_FUNCTOR_SPECIAL(BesselI1, OneByOne, "i1_cpu", bessel_i1);
UMBRA_FUNCTOR_SPECIAL(BesselI0e, OneByOne, "i0e_cpu", bessel_i0e);
UMBRA_FUNCTOR_SPECIAL(BesselI1e, OneByOne, "i1e_cpu", bessel_i1e);
UMBRA_FUNCTOR_SPECIAL(ModifiedBesselI0, FullWidth, "modified_bessel_i0_cpu", bessel_i0);
UMBRA_FUNCTOR_SPECIAL(ModifiedBesselI1, FullWidth, "modified_bessel_i1_cpu", bessel_i1);
UMBRA_FUNCTOR_SPECIAL(ModifiedBesselK0, FullWidth, "modified_bessel_k0_cpu", bessel_k0);
UMBRA_FUNCTOR_SPECIAL(ModifiedBesselK1, FullWidth, "modified_bessel_k1_cpu", bessel_k1);
UMBRA_FUNCTOR_SPECIAL(ScaledModifiedBesselK0, FullWidth, "scaled_modified_bessel_k0_cpu", bessel_k0e);
UMBRA_FUNCTOR_SPECIAL(ScaledModifiedBesselK1, FullWidth, "scaled_modified_bessel_k1_cpu", bessel_k1e);
UMBRA_FUNCTOR_SPECIAL(SphericalBesselJ0, FullWidth, "spherical_bessel_j0_cpu", spherical_bessel_j0);
UMBRA_FUNCTOR_SPECIAL(AiryAi, FullWidth, "airy_ai_cpu", airy_ai);
UMBRA_FUNCTOR_SPECIAL_BINARY(Zeta, FullWidth, "zeta_cpu", zeta);
UMBRA_FUNCTOR_SPECIAL_BINARY(Igamma, OneByOne, "igamma_cpu", lower_gamma);
UMBRA_FUNCTOR_SPECIAL_BINARY(Igammac, OneByOne, "igammac_cpu", upper_gamma);

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
    return [n = static_cast<double>(order)](T x) { return kernels::special::polygamma(n, x); };
  }
};

#undef UMBRA_FUNCTOR_SPECIAL
#undef UMBRA_FUNCTOR_SPECIAL_BINARY

}  // namespace umbra::functors
