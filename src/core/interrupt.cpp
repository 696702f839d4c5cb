#include "umbra/core/interrupt.h"

namespace umbra {

std::atomic<InterruptCheck> detail::g_interrupt_check = nullptr;

InterruptCheck set_interrupt_check(InterruptCheck check) { return detail::g_interrupt_check.exchange(check); }

}  // namespace umbra
