// Single random numbers, drawn as PyTorch draws them. Who calls these holds the generator's lock.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>

#include "kernels/types.h"
#include "umbra/core/half.h"
#include "umbra/core/random_engine.h"

namespace umbra::kernels {

/// The next words of the twister, all of them at once.
void refill(Generator::Engine& engine);

/// A word of the twister as it is handed out.
inline uint32_t tempered(uint32_t word) {
  word ^= word >> 11;
  word ^= word << 7 & 0x9d2c5680u;
  word ^= word << 15 & 0xefc60000u;
  return word ^ word >> 18;
}
inline uint32_t draw32(Generator& g) {
  Generator::Engine& engine = g.engine();
  if (engine.next == Generator::Engine::kWords) refill(engine);
  return tempered(engine.words[engine.next++]);
}
inline uint64_t draw64(Generator& g) {
  uint64_t high = draw32(g);
  return high << 32 | draw32(g);
}
/// The next n words at once: what n calls of draw32 give, in a fraction of their time.
void draw_words(Generator& g, uint32_t* words, int64_t n);
/// Two words as draw64 joins them.
inline uint64_t joined(const uint32_t* words) {
  static_assert(std::endian::native == std::endian::little);
  uint64_t both;
  std::memcpy(&both, words, sizeof both);
  return std::rotl(both, 32);
}

template <class T> inline constexpr int kDigits = std::numeric_limits<T>::digits;
template <> inline constexpr int kDigits<Half> = 11;
template <> inline constexpr int kDigits<BFloat16> = 8;

/// How many words a number in [0, 1) takes.
template <class T> inline constexpr int64_t kWordsOf = std::is_same_v<T, double> ? 2 : 1;

/// In [0, 1), from random bits: as many of them as the type holds exactly.
template <class T> T unit_of(uint64_t bits) {
  if constexpr (std::is_same_v<T, double>) {
    // The halves of 53 bits as the last digits of 2^84 and of 2^52, which AVX2 can do: it has no conversion of 64 bits.
    double high = std::bit_cast<double>((bits >> 32 & 0x1fffff) | 0x4530000000000000);
    double low = std::bit_cast<double>((bits & 0xffffffff) | 0x4330000000000000);
    return (high - (0x1p84 + 0x1p52) + low) * 0x1p-53;
  } else {
    constexpr uint32_t kOne = uint32_t{1} << kDigits<T>;
    return static_cast<T>(static_cast<int32_t>(bits & (kOne - 1))) * (T(1) / static_cast<T>(kOne));
  }
}
template <class T> T unit_of(const uint32_t* words) {
  return unit_of<T>(kWordsOf<T> == 2 ? joined(words) : uint64_t{*words});
}
template <class T> T draw_unit(Generator& g) { return unit_of<T>(kWordsOf<T> == 2 ? draw64(g) : draw32(g)); }

/// Box and Muller's method gives two numbers; the second waits in the generator.
inline double draw_normal(Generator& g) {
  if (g.cached_normal) {
    double value = *g.cached_normal;
    g.cached_normal.reset();
    return value;
  }
  double u1 = draw_unit<double>(g), u2 = draw_unit<double>(g);
  double radius = std::sqrt(-2 * std::log1p(-u2)), angle = 2 * std::numbers::pi * u1;
  g.cached_normal = radius * std::sin(angle);
  return radius * std::cos(angle);
}

}  // namespace umbra::kernels
