#include "umbra/core/generator.h"

#include <random>

#include "umbra/core/random_engine.h"

namespace umbra {

void Generator::Engine::seed(uint32_t seed) {
  words[0] = seed;
  for (int i = 1; i < kWords; ++i)
    words[i] = 1812433253u * (words[i - 1] ^ words[i - 1] >> 30) + static_cast<uint32_t>(i);
  next = kWords;
}

Generator::Generator(uint64_t seed) : engine_(std::make_unique<Engine>()) { manual_seed(seed); }
Generator::~Generator() = default;

void Generator::manual_seed(uint64_t seed) {
  seed_ = seed;
  engine_->seed(static_cast<uint32_t>(seed));
  cached_normal.reset();
}

namespace {
/// A seed that nobody chose: 53 bits, which every language's numbers can hold.
uint64_t fresh_seed() {
  std::random_device device;
  uint64_t bits = static_cast<uint64_t>(device()) << 32 | device();
  return bits >> 11;
}
}  // namespace

IntrusivePtr<Generator> default_generator() {
  static IntrusivePtr<Generator> generator = make_counted<Generator>(fresh_seed());
  return generator;
}

void manual_seed(uint64_t seed) {
  auto generator = default_generator();
  std::lock_guard lock(generator->engine().mutex);
  generator->manual_seed(seed);
}

}  // namespace umbra
