// LAPACK's routines by one name for all four element types. Matrices are column-major; results are LAPACK's `info`.
#pragma once

#include <complex>
#include <type_traits>

#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <lapacke.h>

namespace umbra::kernels::lapack {

/// Chooses among the routines of the four types.
template <class T, class S, class D, class C, class Z> constexpr auto choose(S s, D d, C c, Z z) {
  if constexpr (std::is_same_v<T, float>) return s;
  else if constexpr (std::is_same_v<T, double>) return d;
  else if constexpr (std::is_same_v<T, std::complex<float>>) return c;
  else return z;
}

/// LAPACKE counts its own first argument when it names a wrong one; LAPACK's number is one less.
inline int info_of(int lapacke) { return lapacke < 0 ? lapacke + 1 : lapacke; }

/// `getrf<T>(m, n, a, lda, pivots)`: LAPACKE's function without its first argument.
#define UMBRA_LAPACK(name, s, d, c, z)                                            \
  template <class T, class... Args> int name(Args... args) {                      \
    auto routine = choose<T>(LAPACKE_##s, LAPACKE_##d, LAPACKE_##c, LAPACKE_##z); \
    return info_of(routine(LAPACK_COL_MAJOR, args...));                           \
  }
UMBRA_LAPACK(getrf, sgetrf, dgetrf, cgetrf, zgetrf)
UMBRA_LAPACK(getrs, sgetrs, dgetrs, cgetrs, zgetrs)
UMBRA_LAPACK(potrf, spotrf, dpotrf, cpotrf, zpotrf)
UMBRA_LAPACK(potrs, spotrs, dpotrs, cpotrs, zpotrs)
UMBRA_LAPACK(trtri, strtri, dtrtri, ctrtri, ztrtri)
UMBRA_LAPACK(lauum, slauum, dlauum, clauum, zlauum)
UMBRA_LAPACK(sytrf, ssytrf, dsytrf, csytrf, zsytrf)
UMBRA_LAPACK(sytrs, ssytrs, dsytrs, csytrs, zsytrs)
UMBRA_LAPACK(hetrf, ssytrf, dsytrf, chetrf, zhetrf)
UMBRA_LAPACK(hetrs, ssytrs, dsytrs, chetrs, zhetrs)
UMBRA_LAPACK(geqr2_work, sgeqr2_work, dgeqr2_work, cgeqr2_work, zgeqr2_work)
UMBRA_LAPACK(larft_work, slarft_work, dlarft_work, clarft_work, zlarft_work)
UMBRA_LAPACK(larfb_work, slarfb_work, dlarfb_work, clarfb_work, zlarfb_work)
UMBRA_LAPACK(orgqr_work, sorgqr_work, dorgqr_work, cungqr_work, zungqr_work)
UMBRA_LAPACK(ormqr, sormqr, dormqr, cunmqr, zunmqr)
UMBRA_LAPACK(heevd, ssyevd, dsyevd, cheevd, zheevd)
UMBRA_LAPACK(gesdd, sgesdd, dgesdd, cgesdd, zgesdd)
UMBRA_LAPACK(gels, sgels, dgels, cgels, zgels)
UMBRA_LAPACK(gelsy, sgelsy, dgelsy, cgelsy, zgelsy)
UMBRA_LAPACK(gelsd, sgelsd, dgelsd, cgelsd, zgelsd)
UMBRA_LAPACK(gelss, sgelss, dgelss, cgelss, zgelss)
#undef UMBRA_LAPACK

/// The steps of eigenvalues of real symmetric matrices.
#define UMBRA_LAPACK_OF_REALS(name, s, d)                                                 \
  template <class T, class... Args> int name(Args... args) {                              \
    return info_of(choose<T>(LAPACKE_##s, LAPACKE_##d, 0, 0)(LAPACK_COL_MAJOR, args...)); \
  }
UMBRA_LAPACK_OF_REALS(sytrd_work, ssytrd_work, dsytrd_work)
UMBRA_LAPACK_OF_REALS(stedc_work, sstedc_work, dstedc_work)
UMBRA_LAPACK_OF_REALS(ormtr_work, sormtr_work, dormtr_work)
#undef UMBRA_LAPACK_OF_REALS

}  // namespace umbra::kernels::lapack
