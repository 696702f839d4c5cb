// Names of symbols.
#pragma once

#include "umbra/sym/shape_env.h"

namespace umbra::sym {

/// Gives a symbol the name of another that no program has beside it: one that was captured again shows the numbers that
/// only its run tells by the names they had before. What looks symbols up by name finds the first.
void rename_symbol(ShapeEnv& env, const Expression* symbol, std::string name);

}  // namespace umbra::sym
