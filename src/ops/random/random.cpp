#include "ops/random/random.h"

#include <cmath>
#include <limits>

#include "core/cpp_name.h"
#include "ops/pointwise/family.h"
#include "umbra/core/warning.h"

namespace umbra::ops {

bool any_negative(const Tensor& out, SymIntArrayRef sizes) {
  for (SymInt s : sizes) {
    if (s.is_symbolic() || s.value() >= 0) continue;
    check(!out.is_meta(), "Trying to create tensor with negative dimension ", s, ": ", to_string(sizes));
    return true;
  }
  return false;
}

Generator& generator_or_default(const GeneratorPointer& given) {
  static const GeneratorPointer fallback = default_generator();
  return given ? *given : *fallback;
}

namespace {

/// What a floating type makes of an integer.
int64_t as_held(int64_t value, DType dtype) {
  switch (dtype) {
    case DType::Float16: return static_cast<int64_t>(static_cast<float>(Half(static_cast<float>(value))));
    case DType::BFloat16: return static_cast<int64_t>(static_cast<float>(BFloat16(static_cast<float>(value))));
    case DType::Float32: return static_cast<int64_t>(static_cast<float>(value));
    default: return static_cast<int64_t>(static_cast<double>(value));
  }
}

int digits_of(DType dtype) {
  return dtype == DType::Float16 ? 11 : dtype == DType::BFloat16 ? 8 : dtype == DType::Float32 ? 24 : 53;
}

double largest_of(DType dtype) {
  switch (dtype) {
    case DType::Float16: return 65504;
    case DType::BFloat16: return 0x1.fep127;
    case DType::Float32: return std::numeric_limits<float>::max();
    default: return std::numeric_limits<double>::max();
  }
}

/// The distance between neighbours at the size of `value`.
int64_t spacing(int64_t value, DType dtype) {
  int power = 0;
  for (uint64_t size = static_cast<uint64_t>(std::abs(value)); size >>= 1;) ++power;
  return int64_t{1} << (power - digits_of(dtype) + 1);
}

// Rounding to the type must not lead out of the range: its ends move inwards to numbers that the type has.
int64_t first_held(int64_t from, DType dtype) {
  int64_t next = as_held(from + 1, dtype);
  return next < from ? next + spacing(from + 1, dtype) : from;
}
int64_t end_held(int64_t to, DType dtype) {
  int64_t last = as_held(to - 1, dtype);
  return last >= to ? last - spacing(to - 1, dtype) : to;
}

struct Integers {
  int64_t least, largest;
};
Integers integers_of(DType dtype) {
  switch (dtype) {
    case DType::Bool: return {0, 1};
    case DType::UInt8: return {0, 0xff};
    case DType::UInt16: return {0, 0xffff};
    case DType::UInt32: return {0, 0xffffffff};
    case DType::UInt64: return {0, std::numeric_limits<int64_t>::max()};
    case DType::Int8: return {-0x80, 0x7f};
    case DType::Int16: return {-0x8000, 0x7fff};
    case DType::Int32: return {-0x7fffffff - 1, 0x7fffffff};
    default: return {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  }
}

void check_held(int64_t value, const char* what, DType dtype) {
  bool held;
  if (is_floating(dtype)) {
    held = std::abs(static_cast<double>(value)) <= largest_of(dtype);
  } else {
    Integers range = integers_of(dtype);
    held = value >= range.least && value <= range.largest;
  }
  check(held, what, " is out of bounds for ", cpp_name(dtype));
  int digits = digits_of(dtype);
  if (is_floating(dtype) && std::abs(static_cast<double>(value)) > std::ldexp(1.0, digits))
    warn(what, " is out of bounds [-(2^", digits, "), 2^", digits, "]. Due to precision limitations ", cpp_name(dtype),
         " can support discrete uniform distribution only within this range. This warning will become an error in "
         "version 1.7 release, please fix the code in advance");
}

}  // namespace

IntegerRange integer_range(int64_t from, std::optional<int64_t> to, DType dtype) {
  bool floating = is_floating(dtype), known = floating || is_integral(dtype, true);
  if (!to && from == std::numeric_limits<int64_t>::min()) return {.all_bits = true};
  if (to) {
    check(from < *to, "random_ expects 'from' to be less than 'to', but got from=", from, " >= to=", *to);
    if (floating) {
      from = first_held(from, dtype);
      to = end_held(*to, dtype);
      check(from < *to,
            "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from=", from,
            " >= to=", *to);
    }
  } else {
    check(known, "random_from_to_impl handles only integral, floating-point and boolean types");
    if (floating) {
      to = (int64_t{1} << digits_of(dtype)) + 1;
      from = first_held(from, dtype);
      check(
          from < *to - 1,
          "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, but got from=",
          from, " > to_inc=", *to - 1);
    } else {
      // Above the largest int64 the sum wraps around, and the range with it; the largest uint64 is none that is held.
      uint64_t largest = dtype == DType::UInt64 ? ~uint64_t{0} : static_cast<uint64_t>(integers_of(dtype).largest);
      to = static_cast<int64_t>(largest + 1);
    }
  }
  check(known, "check_random_bounds handles only integral, floating-point and boolean types");
  check_held(from, "from", dtype);
  check_held(static_cast<int64_t>(static_cast<uint64_t>(*to) - 1), "to - 1", dtype);
  return {.from = from, .to = *to};
}

void draw_integers(const Tensor& out, const IntegerRange& range, Generator& generator) {
  if (out.numel() == 0) return;
  if (range.all_bits) kernels::random_full(out, generator);
  else kernels::random_between(out, range.from, range.to, generator);
}

}  // namespace umbra::ops
