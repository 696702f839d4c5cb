// Runs that can be ended: graphs, TorchScript programs and backward passes ask between two of their steps whether to go
// on.
//
//     std::atomic<bool> stop = false;   // another thread or a handler of a signal sets it
//     set_interrupt_check([] {
//       if (stop) throw Error("the run was ended");
//     });
//
// What the check throws comes out of the run, as an error of a step would: what was written before stays written.
#pragma once

#include <atomic>

#include "umbra/core/export.h"

namespace UMBRA_API umbra {

/// Is called often, by any thread that runs something.
using InterruptCheck = void (*)();

/// Null for none, as at the start. Returns the one before; Python's module has one of its own.
InterruptCheck set_interrupt_check(InterruptCheck check);

namespace detail {
extern std::atomic<InterruptCheck> g_interrupt_check;
}

/// For code that runs other code in steps: throws where somebody wants an end.
inline void check_interrupt() {
  if (InterruptCheck check = detail::g_interrupt_check.load(std::memory_order_acquire)) check();
}

}  // namespace umbra
