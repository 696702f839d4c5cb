#include "umbra/core/dtype.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/cpp_name.h"
#include "core/stored_types.h"
#include "umbra/core/dtype_number.h"
#include "umbra/core/error.h"

namespace umbra {

namespace {
struct Names {
  const char* user;
  const char* kernel;
};
constexpr Names kNames[] = {{"uint8", "Byte"},
                            {"int8", "Char"},
                            {"int16", "Short"},
                            {"int32", "Int"},
                            {"int64", "Long"},
                            {"float16", "Half"},
                            {"float32", "Float"},
                            {"float64", "Double"},
                            {"complex32", "ComplexHalf"},
                            {"complex64", "ComplexFloat"},
                            {"complex128", "ComplexDouble"},
                            {"bool", "Bool"},
                            {"bfloat16", "BFloat16"},
                            {"float8_e5m2", "Float8_e5m2"},
                            {"float8_e4m3fn", "Float8_e4m3fn"},
                            {"float8_e5m2fnuz", "Float8_e5m2fnuz"},
                            {"float8_e4m3fnuz", "Float8_e4m3fnuz"},
                            {"float8_e8m0fnu", "Float8_e8m0fnu"},
                            {"uint16", "UInt16"},
                            {"uint32", "UInt32"},
                            {"uint64", "UInt64"},
                            {"undefined", "Undefined"}};
std::atomic<DType> g_default{DType::Float32};

// The bits of an 8-bit float with `mantissa` mantissa bits, from a float; ties to even.
template <int kMantissa, int kBias> uint8_t round_to_8_bits(float value, uint8_t overflow) {
  uint8_t sign = std::signbit(value) ? 0x80 : 0;
  float size = std::fabs(value);
  if (size == 0) return sign;
  int exponent;
  std::frexp(size, &exponent);
  exponent = std::max(exponent - 1, 1 - kBias);
  float step = std::ldexp(1.0f, exponent - kMantissa);
  float units = std::nearbyint(size / step);
  if (units >= (1 << (kMantissa + 1))) {
    units /= 2;
    ++exponent;
  }
  int code = static_cast<int>(units) + ((exponent + kBias - 1) << kMantissa);
  return sign | (code > overflow ? 0x7f : static_cast<uint8_t>(code));
}

constexpr uint8_t kOnlyNan = 0x80;

/// The same for a type with one zero and one NaN.
template <int kMantissa, int kBias> uint8_t round_without_infinity(float value, float too_large) {
  if (!(std::fabs(value) < too_large)) return kOnlyNan;
  uint8_t bits = round_to_8_bits<kMantissa, kBias>(value, 0x7f);
  return bits == kOnlyNan ? 0 : bits;
}
template <int kMantissa, int kBias> float widen_without_infinity(uint8_t bits) {
  if (bits == kOnlyNan) return std::nanf("");
  int exponent = (bits & 0x7f) >> kMantissa, mantissa = bits & ((1 << kMantissa) - 1);
  float size = exponent ? std::ldexp(static_cast<float>((1 << kMantissa) + mantissa), exponent - kBias - kMantissa)
                        : std::ldexp(static_cast<float>(mantissa), 1 - kBias - kMantissa);
  return bits & 0x80 ? -size : size;
}
}  // namespace

const char* name(DType t) { return kNames[static_cast<int>(t)].user; }
const char* kernel_name(DType t) { return kNames[static_cast<int>(t)].kernel; }

const char* cpp_name(DType dtype) {
  switch (dtype) {
    case DType::UInt8: return "unsigned char";
    case DType::Int8: return "signed char";
    case DType::Int16: return "short int";
    case DType::Int32: return "int";
    case DType::Int64: return "long int";
    case DType::UInt16: return "short unsigned int";
    case DType::UInt32: return "unsigned int";
    case DType::UInt64: return "long unsigned int";
    case DType::Float16: return "c10::Half";
    case DType::BFloat16: return "c10::BFloat16";
    case DType::Float32: return "float";
    case DType::Float64: return "double";
    case DType::Complex32: return "c10::complex<c10::Half>";
    case DType::Complex64: return "c10::complex<float>";
    case DType::Complex128: return "c10::complex<double>";
    case DType::Float8E5M2: return "c10::Float8_e5m2";
    case DType::Float8E4M3: return "c10::Float8_e4m3fn";
    case DType::Float8E5M2FNUZ: return "c10::Float8_e5m2fnuz";
    case DType::Float8E4M3FNUZ: return "c10::Float8_e4m3fnuz";
    case DType::Float8E8M0FNU: return "c10::Float8_e8m0fnu";
    default: return name(dtype);
  }
}
void check_out_dtype(DType wanted, DType given) {
  check(wanted == given, "Expected out tensor to have dtype ", cpp_name(wanted), ", but got ", cpp_name(given),
        " instead");
}
std::string to_string(DType t) { return std::string("torch.") + name(t); }

namespace {
// PyTorch's numbers are ours up to that of bool; behind it stand its quantised types.
constexpr std::pair<DType, int64_t> kLaterNumbers[] = {
    {DType::BFloat16, 15},       {DType::Float8E5M2, 23},     {DType::Float8E4M3, 24},
    {DType::Float8E5M2FNUZ, 25}, {DType::Float8E4M3FNUZ, 26}, {DType::UInt16, 27},
    {DType::UInt32, 28},         {DType::UInt64, 29},         {DType::Float8E8M0FNU, 44},
};
}  // namespace

int64_t number_of(DType dtype) {
  for (auto [type, number] : kLaterNumbers)
    if (type == dtype) return number;
  check<TypeError>(dtype <= DType::Bool, "no number for the type ", dtype);
  return static_cast<int64_t>(dtype);
}

DType dtype_of_number(int64_t number) {
  for (auto [type, its] : kLaterNumbers)
    if (its == number) return type;
  return number >= 0 && number <= static_cast<int64_t>(DType::Bool) ? static_cast<DType>(number) : DType::Undefined;
}

DType dtype_from_name(const std::string& text) {
  static constexpr std::pair<const char*, DType> kAliases[] = {
      {"float", DType::Float32},    {"double", DType::Float64},    {"half", DType::Float16},
      {"int", DType::Int32},        {"long", DType::Int64},        {"short", DType::Int16},
      {"cfloat", DType::Complex64}, {"cdouble", DType::Complex128}};
  for (int i = 0; i < kDTypeCount; ++i)
    if (text == kNames[i].user) return static_cast<DType>(i);
  for (auto& [alias, dtype] : kAliases)
    if (text == alias) return dtype;
  return DType::Undefined;
}

DType real_type(DType t) {
  switch (t) {
    case DType::Complex32: return DType::Float16;
    case DType::Complex64: return DType::Float32;
    case DType::Complex128: return DType::Float64;
    default: return t;
  }
}

DType complex_type(DType t) {
  check(!is_float8(t), "Unknown Complex ScalarType for ", kernel_name(t));
  switch (t) {
    case DType::Float16: return DType::Complex32;
    case DType::Float64: return DType::Complex128;
    case DType::BFloat16:
    case DType::Float32: return DType::Complex64;
    default: return is_complex(t) ? t : DType::Complex64;
  }
}

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::Undefined) return b;
  if (b == DType::Undefined) return a;
  check(!is_float8(a) && !is_float8(b), "Promotion for Float8 Types is not supported, attempted to promote ",
        kernel_name(a), " and ", kernel_name(b));
  auto wide_with_other = [](DType t, DType other) { return is_wide_unsigned(t) && !is_floating(other); };
  check(!wide_with_other(a, b) && !wide_with_other(b, a),
        "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote ", kernel_name(a), " and ",
        kernel_name(b));
  auto category = [](DType t) { return is_complex(t) ? 3 : is_floating(t) ? 2 : t == DType::Bool ? 0 : 1; };
  int ca = category(a), cb = category(b);
  if (ca < cb) std::swap(a, b), std::swap(ca, cb);  // a is of the higher category
  if (ca == 3) {
    if (cb < 2) return a;
    DType other = complex_type(b);
    if (b == DType::BFloat16 && a == DType::Complex32) return DType::Complex64;
    return item_size(other) > item_size(a) ? other : a;
  }
  if (ca == 2) {
    if (cb < 2) return a;
    if (item_size(a) == item_size(b)) return DType::Float32;  // half with bfloat16
    return item_size(a) > item_size(b) ? a : b;
  }
  if (cb == 0) return a;
  auto is_signed = [](DType t) { return t >= DType::Int8 && t <= DType::Int64; };
  if (is_signed(a) == is_signed(b)) return item_size(a) > item_size(b) ? a : b;
  DType plus = is_signed(a) ? a : b;  // the other one is uint8
  return plus == DType::Int8 ? DType::Int16 : plus;
}

bool can_cast(DType from, DType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating(from) && is_integral(to, true)) return false;
  if (from != DType::Bool && to == DType::Bool) return false;
  return true;
}

DType default_dtype() { return g_default.load(std::memory_order_relaxed); }
void set_default_dtype(DType t) {
  check<TypeError>(is_floating(t), "only floating-point types are supported as the default type");
  g_default = t;
}

Float8E4M3::Float8E4M3(float value) {
  constexpr float largest = 448;
  if (std::isnan(value)) bits = std::signbit(value) ? 0xff : 0x7f;
  else bits = round_to_8_bits<3, 7>(std::clamp(value, -largest, largest), 0x7e);
}
Float8E4M3::operator float() const {
  int exponent = (bits >> 3) & 15, mantissa = bits & 7;
  float size = (bits & 0x7f) == 0x7f ? std::nanf("")
               : exponent            ? std::ldexp(1.0f + mantissa / 8.0f, exponent - 7)
                                     : std::ldexp(mantissa / 8.0f, -6);
  return bits & 0x80 ? -size : size;
}
Float8E5M2::Float8E5M2(float value) {
  if (std::isnan(value)) bits = std::signbit(value) ? 0xff : 0x7f;
  else if (std::isinf(value)) bits = value > 0 ? 0x7c : 0xfc;
  else {
    bits = round_to_8_bits<2, 15>(value, 0x7b);
    if ((bits & 0x7f) == 0x7f) bits = (bits & 0x80) | 0x7c;  // overflow goes to infinity here
  }
}
Float8E4M3FNUZ::Float8E4M3FNUZ(float value) : bits(round_without_infinity<3, 8>(value, 248)) {}
Float8E4M3FNUZ::operator float() const { return widen_without_infinity<3, 8>(bits); }
Float8E5M2FNUZ::Float8E5M2FNUZ(float value) : bits(round_without_infinity<2, 16>(value, 61440)) {}
Float8E5M2FNUZ::operator float() const { return widen_without_infinity<2, 16>(bits); }
Float8E8M0FNU::Float8E8M0FNU(float value) {
  uint32_t raw = std::bit_cast<uint32_t>(value), exponent = raw >> 23 & 0xff, fraction = raw & 0x7fffff;
  // Halves go up, but for the one between the least number and what would be zero.
  bool up = exponent ? fraction >= 0x400000 : fraction > 0x400000;
  bits = static_cast<uint8_t>(exponent == 0xff ? exponent : exponent + up);
}

}  // namespace umbra
