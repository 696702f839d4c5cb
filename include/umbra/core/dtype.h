// Element types, their properties, and how they combine.
#pragma once

#include <complex>
#include <cstdint>
#include <string>

#include "umbra/core/half.h"

namespace UMBRA_API umbra {

enum class DType : uint8_t {
  UInt8,
  Int8,
  Int16,
  Int32,
  Int64,
  Float16,
  Float32,
  Float64,
  Complex32,
  Complex64,
  Complex128,
  Bool,
  BFloat16,
  Float8E5M2,
  Float8E4M3,
  Float8E5M2FNUZ,
  Float8E4M3FNUZ,
  Float8E8M0FNU,
  UInt16,
  UInt32,
  UInt64,
  Undefined,
};
inline constexpr int kDTypeCount = static_cast<int>(DType::Undefined);

namespace detail {
inline constexpr uint8_t kItemSize[] = {1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 2, 1, 1, 1, 1, 1, 2, 4, 8, 0};
}
inline int64_t item_size(DType t) { return detail::kItemSize[static_cast<int>(t)]; }
inline bool is_complex(DType t) { return t == DType::Complex64 || t == DType::Complex128 || t == DType::Complex32; }
inline bool is_floating(DType t) {
  return t == DType::Float32 || t == DType::Float64 || t == DType::Float16 || t == DType::BFloat16 ||
         (t >= DType::Float8E5M2 && t <= DType::Float8E8M0FNU);
}
inline bool is_reduced_floating(DType t) { return t == DType::Float16 || t == DType::BFloat16; }
/// Integers, with or without bool.
inline bool is_integral(DType t, bool include_bool) {
  return t <= DType::Int64 || (t >= DType::UInt16 && t <= DType::UInt64) || (include_bool && t == DType::Bool);
}
inline bool is_differentiable(DType t) { return is_floating(t) || is_complex(t); }
/// complex64 -> float32 and so on; real types stay.
DType real_type(DType t);
/// float32 -> complex64 and so on; complex types stay.
DType complex_type(DType t);
/// The type in which sums and maths of a narrow type are done: bfloat16 -> float32.
inline DType compute_type(DType t) { return is_reduced_floating(t) ? DType::Float32 : t; }

/// "float32": the name users write. `to_string` gives "torch.float32", as messages do.
const char* name(DType t);
/// "Float": the name that kernels' messages use ("not implemented for 'Half'").
const char* kernel_name(DType t);
std::string to_string(DType t);
/// The dtype of that name ("float32"), or Undefined.
DType dtype_from_name(const std::string& name);

/// The common type of two operands of equal standing.
DType promote_types(DType a, DType b);
/// Whether a result of type `from` may be written to a tensor of type `to` (float into int may not).
bool can_cast(DType from, DType to);

/// The type that floating factories take when none is given.
DType default_dtype();
void set_default_dtype(DType t);

template <class T> inline constexpr DType dtype_of = DType::Undefined;
template <> inline constexpr DType dtype_of<uint8_t> = DType::UInt8;
template <> inline constexpr DType dtype_of<int8_t> = DType::Int8;
template <> inline constexpr DType dtype_of<int16_t> = DType::Int16;
template <> inline constexpr DType dtype_of<int32_t> = DType::Int32;
template <> inline constexpr DType dtype_of<int64_t> = DType::Int64;
template <> inline constexpr DType dtype_of<uint16_t> = DType::UInt16;
template <> inline constexpr DType dtype_of<uint32_t> = DType::UInt32;
template <> inline constexpr DType dtype_of<uint64_t> = DType::UInt64;
template <> inline constexpr DType dtype_of<Half> = DType::Float16;
template <> inline constexpr DType dtype_of<BFloat16> = DType::BFloat16;
template <> inline constexpr DType dtype_of<float> = DType::Float32;
template <> inline constexpr DType dtype_of<double> = DType::Float64;
template <> inline constexpr DType dtype_of<std::complex<float>> = DType::Complex64;
template <> inline constexpr DType dtype_of<std::complex<double>> = DType::Complex128;
template <> inline constexpr DType dtype_of<bool> = DType::Bool;
template <> inline constexpr DType dtype_of<Float8E4M3> = DType::Float8E4M3;
template <> inline constexpr DType dtype_of<Float8E5M2> = DType::Float8E5M2;
template <> inline constexpr DType dtype_of<Float8E4M3FNUZ> = DType::Float8E4M3FNUZ;
template <> inline constexpr DType dtype_of<Float8E5M2FNUZ> = DType::Float8E5M2FNUZ;
template <> inline constexpr DType dtype_of<Float8E8M0FNU> = DType::Float8E8M0FNU;

}  // namespace umbra
