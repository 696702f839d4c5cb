// Operators that do something besides computing their results: printing, or whatever a user's operator does.
//
// Captures must neither drop nor reorder their calls. Where a program is captured for ahead-of-time autograd, such
// calls hand a token on from one to the next (capture/effects.h).
#pragma once

#include <string>

#include "umbra/core/export.h"

namespace UMBRA_API umbra {

class Operator;

/// Says whether calls of an operator (`mylib::log`, `mylib::log.overload`) have effects whose order matters. It need
/// not be defined yet.
void set_effect(const std::string& name, bool ordered);
/// Whether that was said of it, whatever its schema.
bool is_effectful(const std::string& name);
/// Whether its calls have effects in an order. One whose schema has aliases is none of them: what it writes is its
/// effect.
bool has_effect(const Operator& op);

}  // namespace umbra
