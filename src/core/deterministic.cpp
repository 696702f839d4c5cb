#include "umbra/core/deterministic.h"

#include <atomic>

#include "umbra/core/error.h"
#include "umbra/core/warning.h"

namespace umbra {

namespace {
std::atomic<bool> g_enabled{false}, g_warn_only{false}, g_fill{true};
}

bool deterministic_algorithms() { return g_enabled.load(std::memory_order_relaxed); }
void set_deterministic_algorithms(bool enabled, bool warn_only) {
  g_enabled.store(enabled, std::memory_order_relaxed);
  g_warn_only.store(warn_only, std::memory_order_relaxed);
}

void alert_not_deterministic(const char* caller) {
  if (!deterministic_algorithms()) return;
  if (g_warn_only.load(std::memory_order_relaxed))
    return warn(
        caller, " does not have a deterministic implementation, but you set ",
        "'torch.use_deterministic_algorithms(True, warn_only=True)'. You can file an issue at ",
        "https://github.com/pytorch/pytorch/issues to help us prioritize adding deterministic support for this ",
        "operation.");
  fail(caller,
       " does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True)'. ",
       "You can turn off determinism just for this operation, or you can use the 'warn_only=True' option, if that's ",
       "acceptable for your application. You can also file an issue at https://github.com/pytorch/pytorch/issues to ",
       "help us prioritize adding deterministic support for this operation.");
}

bool fills_new_memory() { return deterministic_algorithms() && fill_uninitialized_memory(); }
void set_fill_uninitialized_memory(bool enabled) { g_fill.store(enabled, std::memory_order_relaxed); }
bool fill_uninitialized_memory() { return g_fill.load(std::memory_order_relaxed); }

}  // namespace umbra
