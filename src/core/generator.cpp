#include "umbra/core/generator.h"

namespace umbra {

void Generator::set_seed(uint64_t seed) {
  seed_ = seed;
  engine_.seed(static_cast<uint32_t>(seed));
  cached_normal.reset();
}

IntrusivePtr<Generator> default_generator() {
  static IntrusivePtr<Generator> generator = make_counted<Generator>();
  return generator;
}

void manual_seed(uint64_t seed) {
  auto generator = default_generator();
  std::lock_guard lock(generator->mutex());
  generator->set_seed(seed);
}

}  // namespace umbra
