#include "umbra/core/deterministic.h"

#include <atomic>

namespace umbra {

namespace {
std::atomic<bool> g_enabled{false};
}

bool deterministic_algorithms() { return g_enabled.load(std::memory_order_relaxed); }
void set_deterministic_algorithms(bool enabled) { g_enabled.store(enabled, std::memory_order_relaxed); }

}  // namespace umbra
