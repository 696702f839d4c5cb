// Warnings that a process hears once, however often it calls.
#pragma once

#include <atomic>

#include "umbra/core/warning.h"

namespace umbra::ops {

/// Warns where `told` is false, and makes it true: a static variable of the place that warns.
template <class... Parts> void warn_once(std::atomic<bool>& told, const Parts&... parts) {
  if (tells_once(told)) warn(parts...);
}

}  // namespace umbra::ops
