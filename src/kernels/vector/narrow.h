// Registers of float from memory that holds float16 or bfloat16, and back: converted on the way, with no buffer
// between.
#pragma once

#include "kernels/vector/vec.h"
#include "umbra/core/half.h"

namespace umbra::kernels::UMBRA_ISA {

template <class T> inline constexpr bool is_narrow = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/// As many narrow numbers as there are lanes of float.
#ifdef __AVX512F__
using NarrowLanes = __m256i;
#else
using NarrowLanes = __m128i;
#endif
static_assert(sizeof(NarrowLanes) == Vec<float>::size * sizeof(uint16_t));

inline Vec<float> widened(NarrowLanes lanes, Half) {
#ifdef __AVX512F__
  return Vec<float>(_mm512_maskz_cvtph_ps(-1, lanes));
#else
  return Vec<float>(_mm256_cvtph_ps(lanes));
#endif
}
inline Vec<float> widened(NarrowLanes lanes, BFloat16) {
#ifdef __AVX512F__
  return Vec<float>(_mm512_castsi512_ps(_mm512_maskz_slli_epi32(-1, _mm512_maskz_cvtepu16_epi32(-1, lanes), 16)));
#else
  return Vec<float>(_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(lanes), 16)));
#endif
}

inline NarrowLanes narrowed(Vec<float> v, Half) {
  constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
#ifdef __AVX512F__
  return _mm512_maskz_cvtps_ph(-1, v.raw, nearest);
#else
  return _mm256_cvtps_ph(v.raw, nearest);
#endif
}
typedef uint32_t Words __attribute__((vector_size(kVectorBytes)));

/// To the nearest bfloat16, of two as near the even one: in the upper half of each lane, with anything in the lower.
/// Every NaN is one NaN (BFloat16's constructor).
inline Words rounded_to_upper_half(Vec<float> v) {
  Words raw = reinterpret_cast<Words>(v.raw), rounded = raw + 0x7fff + ((raw >> 16) & 1);
  return v.raw == v.raw ? rounded : Words{} + 0x7fc00000;
}
inline NarrowLanes narrowed(Vec<float> v, BFloat16) {
  typedef uint16_t Lanes __attribute__((vector_size(sizeof(NarrowLanes))));
  return reinterpret_cast<NarrowLanes>(__builtin_convertvector(rounded_to_upper_half(v) >> 16, Lanes));
}

inline Vec<float> load_lanes(const float* from) { return Vec<float>::load(from); }
inline Vec<float> load_lanes(const float* from, int64_t count) { return Vec<float>::load(from, count); }
inline Vec<double> load_lanes(const double* from) { return Vec<double>::load(from); }
inline Vec<double> load_lanes(const double* from, int64_t count) { return Vec<double>::load(from, count); }
template <class Narrow> Vec<float> load_lanes(const Narrow* from) {
  NarrowLanes lanes;
  std::memcpy(&lanes, from, sizeof(lanes));
  return widened(lanes, Narrow());
}
template <class Narrow> Vec<float> load_lanes(const Narrow* from, int64_t count) {
  NarrowLanes lanes{};
  std::memcpy(&lanes, from, static_cast<size_t>(count) * sizeof(Narrow));
  return widened(lanes, Narrow());
}
template <class Narrow> void store_lanes(Vec<float> v, Narrow* to) {
  NarrowLanes lanes = narrowed(v, Narrow());
  std::memcpy(static_cast<void*>(to), &lanes, sizeof(lanes));
}
template <class Narrow> void store_lanes(Vec<float> v, Narrow* to, int64_t count) {
  NarrowLanes lanes = narrowed(v, Narrow());
  std::memcpy(static_cast<void*>(to), &lanes, static_cast<size_t>(count) * sizeof(Narrow));
}

/// A whole register of bfloat16, which is two of float: every other number in each. What goes through them element by
/// element comes back in order, and nothing has to be moved between lanes.
struct TwoOfFloat {
  static constexpr int size = 2 * Vec<float>::size;
  Vec<float> even, odd;

  static TwoOfFloat load(const BFloat16* from) {
    Words words;
    std::memcpy(&words, from, sizeof(words));
    return {from_words(words << 16), from_words(words & 0xffff0000)};
  }
  void store(BFloat16* to) const {
    Words words = rounded_to_upper_half(even) >> 16 | (rounded_to_upper_half(odd) & 0xffff0000);
    std::memcpy(static_cast<void*>(to), &words, sizeof(words));
  }

 private:
  static Vec<float> from_words(Words words) { return Vec<float>(reinterpret_cast<Vec<float>::Raw>(words)); }
};

}  // namespace umbra::kernels::UMBRA_ISA
