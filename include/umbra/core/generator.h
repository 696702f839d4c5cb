// Random numbers: a seeded engine, shared by all operators that are given none of their own.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <random>

#include "umbra/core/intrusive.h"

namespace UMBRA_API umbra {

/// A source of random numbers. `manual_seed(0)` makes what follows repeatable.
class Generator final : public RefCounted {
 public:
  explicit Generator(uint64_t seed = 67280421310721ull) { set_seed(seed); }
  void set_seed(uint64_t seed);
  uint64_t seed() const { return seed_; }
  std::mt19937& engine() { return engine_; }
  std::mutex& mutex() { return mutex_; }
  /// A half-used draw of the normal distribution, kept as PyTorch keeps it.
  std::optional<double> cached_normal;

 private:
  uint64_t seed_ = 0;
  std::mt19937 engine_;
  std::mutex mutex_;
};

IntrusivePtr<Generator> default_generator();
void manual_seed(uint64_t seed);

}  // namespace umbra
