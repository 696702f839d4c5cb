// Warnings: what the user should know although the call goes on.
#pragma once

#include <atomic>
#include <string>

#include "umbra/core/error.h"

namespace UMBRA_API umbra {

/// Who is told. Without one, warnings go to the standard error stream; the Python binding makes them UserWarnings.
using WarningHandler = void (*)(const std::string& text);
void set_warning_handler(WarningHandler handler);
void emit_warning(const std::string& text);

/// Whether places that warn once warn each time.
void set_warns_always(bool on);
/// Whether a place that warns once warns now; `told` is a static variable of the place.
bool tells_once(std::atomic<bool>& told);

namespace detail {
template <class... Parts> void warn(const Parts&... parts) { emit_warning(concat(parts...)); }
}  // namespace detail
#ifdef UMBRA_INTERNAL
using detail::warn;
#endif

}  // namespace umbra
