// What draws a generator's numbers; whoever draws holds the lock.
#pragma once

#include <mutex>
#include <random>

#include "umbra/core/generator.h"

namespace UMBRA_API umbra {

struct Generator::Engine {
  std::mt19937 numbers;
  std::mutex mutex;
};

}  // namespace umbra
