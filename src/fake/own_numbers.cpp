#include "fake/own_numbers.h"

#include <atomic>

#include "core/per_thread.h"

namespace umbra {

namespace {

uint64_t& asking_function() {
  static PerThread<uint64_t> function;
  return *function;
}

}  // namespace

OwnNumbers::OwnNumbers() : before_(asking_function()) {
  static std::atomic<uint64_t> last{0};
  asking_function() = ++last;
}

OwnNumbers::~OwnNumbers() { asking_function() = before_; }

uint64_t OwnNumbers::asking() { return asking_function(); }

}  // namespace umbra
