// What draws a generator's numbers; whoever draws holds the lock.
#pragma once

#include <cstdint>
#include <mutex>

#include "umbra/core/generator.h"

namespace UMBRA_API umbra {

/// The state of a Mersenne twister (mt19937): its words, and the place of the next that was not drawn yet. Numbers are
/// drawn by kernels/random_draws.h.
struct Generator::Engine {
  static constexpr int kWords = 624;
  uint32_t words[kWords];
  int next = kWords;  // kWords: all are drawn
  std::mutex mutex;

  void seed(uint32_t seed);
};

}  // namespace umbra
