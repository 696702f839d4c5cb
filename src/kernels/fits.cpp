#include "kernels/fits.h"

#include <cmath>
#include <limits>

#include "core/cpp_name.h"
#include "core/stored_types.h"
#include "umbra/core/error.h"

namespace umbra::kernels {

namespace {

constexpr double kLeastScale = 0x1p-127;

bool is_signed(DType dtype) { return dtype >= DType::Int8 && dtype <= DType::Int64; }

bool integer_fits(int64_t value, DType dtype) {
  int bits = static_cast<int>(8 * item_size(dtype)) - is_signed(dtype);
  if (bits >= 63) return true;
  int64_t limit = int64_t{1} << bits;
  return value < limit && value >= (is_signed(dtype) ? -limit : 1 - limit);
}

bool float_fits_integer(double value, DType dtype) {
  double limit = std::ldexp(1.0, static_cast<int>(8 * item_size(dtype)) - is_signed(dtype));
  return value >= (is_signed(dtype) ? -limit : 0.0) && value < limit;
}

/// What lies between the least number and the largest; infinities where the type has them.
bool float_fits_float(double value, DType dtype) {
  bool has_infinity = !is_float8(dtype) || dtype == DType::Float8E5M2;
  if (std::isnan(value) || (std::isinf(value) && has_infinity)) return true;
  if (dtype == DType::Float8E8M0FNU && value < kLeastScale) return false;
  return std::abs(value) <= largest_number(dtype);
}

/// The type as messages about conversions spell it: integers by their widths.
const char* spelling(DType dtype) {
  switch (dtype) {
    case DType::UInt8: return "uint8_t";
    case DType::Int8: return "int8_t";
    case DType::Int16: return "int16_t";
    case DType::Int64: return "int64_t";
    case DType::UInt16: return "uint16_t";
    case DType::UInt32: return "uint32_t";
    case DType::UInt64: return "uint64_t";
    default: return cpp_name(dtype);
  }
}

}  // namespace

double largest_number(DType dtype) {
  switch (dtype) {
    case DType::Float16: return 65504;
    case DType::BFloat16: return 0x1.fep127;
    case DType::Float32: return std::numeric_limits<float>::max();
    case DType::Float8E4M3: return 448;
    case DType::Float8E4M3FNUZ: return 240;
    case DType::Float8E5M2:
    case DType::Float8E5M2FNUZ: return 57344;
    case DType::Float8E8M0FNU: return 0x1p127;
    default: return std::numeric_limits<double>::max();
  }
}

bool fits(const Scalar& value, DType dtype) {
  if (value.is_symbolic() || dtype == DType::Bool) return true;
  if (value.kind() == Scalar::Kind::UInt && is_integral(dtype, false)) return dtype == DType::UInt64;
  if (is_integral(dtype, false) && value.is_integral(true)) return integer_fits(value.to_int(), dtype);
  // Of an integer the size alone counts: a scale has no sign.
  if (is_floating(dtype) && value.is_integral(true)) return std::abs(value.to_double()) <= largest_number(dtype);
  std::complex<double> number = value.to_complex();
  if (is_complex(dtype))
    return float_fits_float(number.real(), real_type(dtype)) && float_fits_float(number.imag(), real_type(dtype));
  if (value.is_complex() && number.imag() != 0) return false;
  return is_floating(dtype) ? float_fits_float(number.real(), dtype) : float_fits_integer(number.real(), dtype);
}

void check_fits(const Scalar& value, DType dtype) {
  check(fits(value, dtype), "value cannot be converted to type ", spelling(dtype), " without overflow");
}

}  // namespace umbra::kernels
