// Single random numbers, drawn as PyTorch draws them. Who calls these holds the generator's lock.
#pragma once

#include <cmath>
#include <numbers>

#include "kernels/types.h"
#include "umbra/core/half.h"
#include "umbra/core/random_engine.h"

namespace umbra::kernels {

/// The next words of the twister, all of them at once.
void refill(Generator::Engine& engine);

inline uint32_t draw32(Generator& g) {
  Generator::Engine& engine = g.engine();
  if (engine.next == Generator::Engine::kWords) refill(engine);
  uint32_t word = engine.words[engine.next++];
  word ^= word >> 11;
  word ^= word << 7 & 0x9d2c5680u;
  word ^= word << 15 & 0xefc60000u;
  return word ^ word >> 18;
}
inline uint64_t draw64(Generator& g) {
  uint64_t high = draw32(g);
  return high << 32 | draw32(g);
}

template <class T> inline constexpr int kDigits = std::numeric_limits<T>::digits;
template <> inline constexpr int kDigits<Half> = 11;
template <> inline constexpr int kDigits<BFloat16> = 8;

/// In [0, 1): as many bits as the type holds exactly.
template <class T> T draw_unit(Generator& g) {
  uint64_t bits = std::is_same_v<T, double> ? draw64(g) : draw32(g);
  constexpr uint64_t kOne = uint64_t{1} << kDigits<T>;
  return static_cast<T>(bits & (kOne - 1)) * (T(1) / static_cast<T>(kOne));
}

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

inline double draw_exponential(Generator& g, double lambda) { return -1 / lambda * std::log1p(-draw_unit<double>(g)); }

}  // namespace umbra::kernels
