// Conditions on the sizes of a program's inputs, as its guards have them.
#pragma once

#include <string>

#include "umbra/export/exported_program.h"

namespace umbra {

/// "2 <= L['x'].size()[0]". A symbol that is the size of no input stays a symbol, and a call is refused.
std::string guard_text(const ExportedProgram& program, const sym::Expression* condition);

}  // namespace umbra
