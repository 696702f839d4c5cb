// Vec<float> and Vec<double>: as many lanes as a register of the instruction set has, with the functions that
// kernels/math.h has for plain numbers, so that a formula written once serves both.
//
// For files of kernels/vector only: they are compiled with UMBRA_ISA set to the name of an instruction set.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#ifndef UMBRA_ISA
#error "vec.h belongs to the files of kernels/vector, which are compiled for each instruction set"
#endif

namespace umbra::kernels::UMBRA_ISA {

#ifdef __AVX512F__
inline constexpr int kVectorBytes = 64;
#else
inline constexpr int kVectorBytes = 32;
#endif

template <class T> struct Vec;

/// Which lanes a condition holds in: all bits of the lane set, or none.
template <class T> struct Mask {
  using Int = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  static constexpr int size = kVectorBytes / sizeof(T);
  typedef Int Raw __attribute__((vector_size(kVectorBytes)));
  typedef int8_t Bytes __attribute__((vector_size(size)));
  Raw raw;

  Mask() = default;
  Mask(bool value) : raw(Raw{} - Int{value}) {}
  explicit Mask(Raw raw) : raw(raw) {}

  static Mask load(const bool* from) {
    Bytes bytes;
    std::memcpy(&bytes, from, size);
    return Mask(__builtin_convertvector(bytes != 0, Raw));
  }
  static Mask load(const bool* from, int64_t count) {
    bool lanes[size] = {};
    std::memcpy(lanes, from, count);
    return load(lanes);
  }
  void store(bool* to) const {
    Bytes bytes = __builtin_convertvector(raw, Bytes) & 1;
    std::memcpy(to, &bytes, size);
  }
  void store(bool* to, int64_t count) const {
    bool lanes[size];
    store(lanes);
    std::memcpy(to, lanes, count);
  }

  friend Mask operator&(Mask a, Mask b) { return Mask(a.raw & b.raw); }
  friend Mask operator|(Mask a, Mask b) { return Mask(a.raw | b.raw); }
  friend Mask operator^(Mask a, Mask b) { return Mask(a.raw ^ b.raw); }
  friend Mask operator!(Mask a) { return Mask(~a.raw); }
};

/// One register of numbers.
template <class T> struct Vec {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>);
  using Element = T;
  static constexpr int size = kVectorBytes / sizeof(T);
  typedef T Raw __attribute__((vector_size(kVectorBytes)));
  Raw raw;

  Vec() = default;
  /// The same number in every lane.
  template <class Number>
  requires std::is_arithmetic_v<Number> Vec(Number value)
      : raw(static_cast<T>(value) - Raw{}) {}  // minus 0: exact for -0.0 too
  explicit Vec(Raw raw) : raw(raw) {}

  static Vec load(const T* from) {
    Vec v;
    std::memcpy(&v.raw, from, sizeof(v.raw));
    return v;
  }
  /// The first `count` lanes; the rest are zero.
  static Vec load(const T* from, int64_t count);
  void store(T* to) const { std::memcpy(to, &raw, sizeof(raw)); }
  void store(T* to, int64_t count) const;
  T operator[](int lane) const { return raw[lane]; }

  friend Vec operator+(Vec a, Vec b) { return Vec(a.raw + b.raw); }
  friend Vec operator-(Vec a, Vec b) { return Vec(a.raw - b.raw); }
  friend Vec operator*(Vec a, Vec b) { return Vec(a.raw * b.raw); }
  friend Vec operator/(Vec a, Vec b) { return Vec(a.raw / b.raw); }
  friend Vec operator-(Vec a) { return Vec(-a.raw); }
  Vec& operator+=(Vec b) { return *this = *this + b; }
  Vec& operator-=(Vec b) { return *this = *this - b; }
  Vec& operator*=(Vec b) { return *this = *this * b; }

  friend Mask<T> operator==(Vec a, Vec b) { return Mask<T>(a.raw == b.raw); }
  friend Mask<T> operator!=(Vec a, Vec b) { return Mask<T>(a.raw != b.raw); }
  friend Mask<T> operator<(Vec a, Vec b) { return Mask<T>(a.raw < b.raw); }
  friend Mask<T> operator<=(Vec a, Vec b) { return Mask<T>(a.raw <= b.raw); }
  friend Mask<T> operator>(Vec a, Vec b) { return Mask<T>(a.raw > b.raw); }
  friend Mask<T> operator>=(Vec a, Vec b) { return Mask<T>(a.raw >= b.raw); }
};

#ifdef __AVX512F__
template <> inline Vec<float> Vec<float>::load(const float* from, int64_t count) {
  return Vec(_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), from));
}
template <> inline Vec<double> Vec<double>::load(const double* from, int64_t count) {
  return Vec(_mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << count) - 1), from));
}
template <> inline void Vec<float>::store(float* to, int64_t count) const {
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << count) - 1), raw);
}
template <> inline void Vec<double>::store(double* to, int64_t count) const {
  _mm512_mask_storeu_pd(to, static_cast<__mmask8>((1u << count) - 1), raw);
}
#else
inline __m256i first_lanes(float, int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline __m256i first_lanes(double, int64_t count) {
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
}
template <> inline Vec<float> Vec<float>::load(const float* from, int64_t count) {
  return Vec(_mm256_maskload_ps(from, first_lanes(0.0f, count)));
}
template <> inline Vec<double> Vec<double>::load(const double* from, int64_t count) {
  return Vec(_mm256_maskload_pd(from, first_lanes(0.0, count)));
}
template <> inline void Vec<float>::store(float* to, int64_t count) const {
  _mm256_maskstore_ps(to, first_lanes(0.0f, count), raw);
}
template <> inline void Vec<double>::store(double* to, int64_t count) const {
  _mm256_maskstore_pd(to, first_lanes(0.0, count), raw);
}
#endif

template <class T> Vec<T> select(Mask<T> mask, Vec<T> a, Vec<T> b) { return Vec<T>(mask.raw ? a.raw : b.raw); }
template <class T> Vec<T> select(Mask<T> mask, Vec<T> a, std::type_identity_t<T> b) {
  return select(mask, a, Vec<T>(b));
}
template <class T> Vec<T> select(Mask<T> mask, std::type_identity_t<T> a, Vec<T> b) {
  return select(mask, Vec<T>(a), b);
}

/// The larger, or NaN where one of them is. (The hardware's max gives its second operand where either is NaN.) In a
/// loop the new value goes first: what is known of it does not wait for the other.
#ifdef __AVX512F__
#define UMBRA_EXTREME(T, name, instruction, type)                                    \
  inline Vec<T> name(Vec<T> a, Vec<T> b) {                                           \
    auto numbers = _mm512_cmp_##type##_mask(a.raw, a.raw, _CMP_ORD_Q);               \
    return Vec<T>(_mm512_mask_##instruction##_##type(a.raw, numbers, a.raw, b.raw)); \
  }
#else
#define UMBRA_EXTREME(T, name, instruction, type)                                                  \
  inline Vec<T> name(Vec<T> a, Vec<T> b) {                                                         \
    auto nans = _mm256_cmp_##type(a.raw, a.raw, _CMP_UNORD_Q);                                     \
    return Vec<T>(_mm256_blendv_##type(_mm256_##instruction##_##type(a.raw, b.raw), a.raw, nans)); \
  }
#endif
UMBRA_EXTREME(float, maximum, max, ps)
UMBRA_EXTREME(double, maximum, max, pd)
UMBRA_EXTREME(float, minimum, min, ps)
UMBRA_EXTREME(double, minimum, min, pd)
#undef UMBRA_EXTREME

/// The lanes' bits as integers, and back.
template <class T> typename Mask<T>::Raw bits(Vec<T> a) { return reinterpret_cast<typename Mask<T>::Raw>(a.raw); }
template <class T> Vec<T> from_bits(typename Mask<T>::Raw a) {
  return Vec<T>(reinterpret_cast<typename Vec<T>::Raw>(a));
}
template <class T> typename Mask<T>::Raw sign_bits() { return bits(Vec<T>(-0.0)); }

template <class T> Vec<T> abs(Vec<T> a) { return from_bits<T>(bits(a) & ~sign_bits<T>()); }
template <class T> Vec<T> copysign(Vec<T> magnitude, Vec<T> sign) {
  return from_bits<T>((bits(magnitude) & ~sign_bits<T>()) | (bits(sign) & sign_bits<T>()));
}
template <class T> Mask<T> signbit(Vec<T> a) { return Mask<T>(bits(a) < 0); }
template <class T> Mask<T> isnan(Vec<T> a) { return a != a; }
template <class T> Mask<T> isinf(Vec<T> a) { return abs(a) == Vec<T>(__builtin_inf()); }
template <class T> Mask<T> isfinite(Vec<T> a) { return abs(a) < Vec<T>(__builtin_inf()); }

#ifdef __AVX512F__
// All lanes wanted, zeros elsewhere: the forms without a mask draw a false warning from the compiler's header.
#define UMBRA_FMA(type) _mm512_fmadd_##type(a.raw, b.raw, c.raw)
#define UMBRA_ROUND(type, mode) _mm512_maskz_roundscale_##type(-1, a.raw, _MM_FROUND_##mode | _MM_FROUND_NO_EXC)
#else
#define UMBRA_FMA(type) _mm256_fmadd_##type(a.raw, b.raw, c.raw)
#define UMBRA_ROUND(type, mode) _mm256_round_##type(a.raw, _MM_FROUND_##mode | _MM_FROUND_NO_EXC)
#endif
#define UMBRA_VEC_BASICS(T, type)                                                     \
  inline Vec<T> fma(Vec<T> a, Vec<T> b, Vec<T> c) { return Vec<T>(UMBRA_FMA(type)); } \
  inline Vec<T> floor(Vec<T> a) { return Vec<T>(UMBRA_ROUND(type, TO_NEG_INF)); }     \
  inline Vec<T> ceil(Vec<T> a) { return Vec<T>(UMBRA_ROUND(type, TO_POS_INF)); }      \
  inline Vec<T> trunc(Vec<T> a) { return Vec<T>(UMBRA_ROUND(type, TO_ZERO)); }        \
  inline Vec<T> round(Vec<T> a) { return Vec<T>(UMBRA_ROUND(type, TO_NEAREST_INT)); }
UMBRA_VEC_BASICS(float, ps)
UMBRA_VEC_BASICS(double, pd)
#undef UMBRA_VEC_BASICS
#undef UMBRA_FMA
#undef UMBRA_ROUND

#ifdef __AVX512F__
/// Rounded as the instruction does, in a third to half of its time: an estimate of 1 / sqrt(a) to 14 bits, doubled by
/// each step, and the exact remainder in the end. The instruction runs for what is 0, infinite, or so small that
/// remainders vanish.
inline Vec<float> sqrt(Vec<float> a) {
  const __m512i least = _mm512_set1_epi32(0x10000000), count = _mm512_set1_epi32(0x7f800000 - 0x10000000);
  if (_mm512_cmpge_epu32_mask(_mm512_sub_epi32(_mm512_castps_si512(a.raw), least), count)) [[unlikely]]
    return Vec<float>(_mm512_maskz_sqrt_ps(-1, a.raw));
  Vec<float> estimate(_mm512_maskz_rsqrt14_ps(-1, a.raw)), root = a * estimate, half = estimate * Vec<float>(0.5f);
  Vec<float> error = fma(-half, root, Vec<float>(0.5f));
  root = fma(root, error, root);
  half = fma(half, error, half);  // with 14 bits of it one root in 160,000 is rounded the other way
  return fma(half, fma(-root, root, a), root);
}
inline Vec<double> sqrt(Vec<double> a) {
  const __m512i least = _mm512_set1_epi64(0x1000000000000000),
                count = _mm512_set1_epi64(0x7ff0000000000000 - 0x1000000000000000);
  if (_mm512_cmpge_epu64_mask(_mm512_sub_epi64(_mm512_castpd_si512(a.raw), least), count)) [[unlikely]]
    return Vec<double>(_mm512_maskz_sqrt_pd(-1, a.raw));
  Vec<double> estimate(_mm512_maskz_rsqrt14_pd(-1, a.raw)), root = a * estimate, half = estimate * Vec<double>(0.5);
  for (int step = 0; step < 2; ++step) {
    Vec<double> error = fma(-half, root, Vec<double>(0.5));
    root = fma(root, error, root);
    half = fma(half, error, half);
  }
  return fma(half, fma(-root, root, a), root);
}
#else
inline Vec<float> sqrt(Vec<float> a) { return Vec<float>(_mm256_sqrt_ps(a.raw)); }
inline Vec<double> sqrt(Vec<double> a) { return Vec<double>(_mm256_sqrt_pd(a.raw)); }
#endif

template <class T> Vec<T> rsqrt(Vec<T> a) { return Vec<T>(1) / sqrt(a); }

/// Calls a function of plain numbers for each lane: for what has no vector form.
template <class T, class Fn> Vec<T> map(Vec<T> a, const Fn& fn) {
  for (int i = 0; i < Vec<T>::size; ++i) a.raw[i] = fn(a.raw[i]);
  return a;
}
template <class T, class Fn> Vec<T> map(Vec<T> a, Vec<T> b, const Fn& fn) {
  for (int i = 0; i < Vec<T>::size; ++i) a.raw[i] = fn(a.raw[i], b.raw[i]);
  return a;
}

/// `fn(x, float())` computed in double, in two halves; and in the lanes' own type.
template <class Fn> Vec<float> in_double(Vec<float> a, const Fn& fn) {
  typedef float Half __attribute__((vector_size(kVectorBytes / 2)));
  Half halves[2];
  std::memcpy(halves, &a.raw, sizeof(halves));
  for (Half& half : halves)
    half = __builtin_convertvector(fn(Vec<double>(__builtin_convertvector(half, Vec<double>::Raw)), 0.0f).raw, Half);
  std::memcpy(&a.raw, halves, sizeof(halves));
  return a;
}
template <class Fn> Vec<double> in_double(Vec<double> a, const Fn& fn) { return fn(a, 0.0); }

/// Lanes that lie `distance` apart, each in the other's place: by halves of registers, which are fast to exchange.
template <int distance, class T> Vec<T> swapped(Vec<T> a) {
  return [&]<int... lane>(std::integer_sequence<int, lane...>) {
    return Vec<T>(__builtin_shufflevector(a.raw, a.raw, (lane ^ distance)...));
  }
  (std::make_integer_sequence<int, Vec<T>::size>());
}
/// Combines the lanes pairwise: `reduce(v, [](Vec<T> a, Vec<T> b) { return a + b; })`.
template <class T, class Fn> T reduce(Vec<T> a, const Fn& fn) {
  if constexpr (Vec<T>::size == 16) a = fn(a, swapped<8>(a));
  if constexpr (Vec<T>::size >= 8) a = fn(a, swapped<4>(a));
  a = fn(a, swapped<2>(a));
  return fn(a, swapped<1>(a))[0];
}
template <class T> bool any(Mask<T> mask) {
#ifdef __AVX512F__
  auto raw = reinterpret_cast<__m512i>(mask.raw);
  return _mm512_test_epi32_mask(raw, raw) != 0;
#else
  auto raw = reinterpret_cast<__m256i>(mask.raw);
  return !_mm256_testz_si256(raw, raw);
#endif
}

}  // namespace umbra::kernels::UMBRA_ISA

#include "kernels/vector/vec_math.h"
