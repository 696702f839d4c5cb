// Random numbers: a seeded engine, shared by all operators that are given none of their own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "umbra/core/export.h"
#include "umbra/core/intrusive.h"

namespace UMBRA_API umbra {

/// A source of random numbers. `manual_seed(0)` makes what follows repeatable.
class Generator final : public RefCounted {
 public:
  /// The engine and its lock (core/random_engine.h).
  struct Engine;

  explicit Generator(uint64_t seed = 67280421310721ull);
  ~Generator() override;
  void manual_seed(uint64_t seed);
  uint64_t seed() const { return seed_; }
  Engine& engine() { return *engine_; }
  /// A half-used draw of the normal distribution, kept as PyTorch keeps it.
  std::optional<double> cached_normal;

 private:
  uint64_t seed_ = 0;
  std::unique_ptr<Engine> engine_;
};

/// The generator of operators that are given none. Its first seed is another one in each process.
IntrusivePtr<Generator> default_generator();
void manual_seed(uint64_t seed);

}  // namespace umbra
