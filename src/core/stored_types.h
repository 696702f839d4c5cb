// Types that are stored and converted, and hardly computed with: complex32, 8-bit floats, the wide unsigned integers.
#pragma once

#include <complex>

#include "umbra/core/dtype.h"

namespace umbra {

/// An element of complex32. It is computed with as std::complex<float>.
struct ComplexHalf {
  Half real, imag;
  ComplexHalf() = default;
  ComplexHalf(std::complex<float> value) : real(value.real()), imag(value.imag()) {}
  operator std::complex<float>() const { return {real, imag}; }
};
template <> inline constexpr DType dtype_of<ComplexHalf> = DType::Complex32;

inline bool is_float8(DType t) { return t >= DType::Float8E5M2 && t <= DType::Float8E8M0FNU; }
/// uint16, uint32 and uint64, which promote with floating types only.
inline bool is_wide_unsigned(DType t) { return t >= DType::UInt16 && t <= DType::UInt64; }

}  // namespace umbra
