#include "umbra/core/deterministic.h"

#include <atomic>

namespace umbra {

namespace {
std::atomic<bool> g_enabled{false}, g_fill{true};
}

bool deterministic_algorithms() { return g_enabled.load(std::memory_order_relaxed); }
void set_deterministic_algorithms(bool enabled) { g_enabled.store(enabled, std::memory_order_relaxed); }

bool fills_new_memory() { return deterministic_algorithms() && fill_uninitialized_memory(); }
void set_fill_uninitialized_memory(bool enabled) { g_fill.store(enabled, std::memory_order_relaxed); }
bool fill_uninitialized_memory() { return g_fill.load(std::memory_order_relaxed); }

}  // namespace umbra
