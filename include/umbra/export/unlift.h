// A program as an ordinary module: weights are its attributes again, and what it writes is written.
#pragma once

#include "umbra/export/exported_program.h"

namespace UMBRA_API umbra {

/// A graph module that takes the program's user inputs and gives its user outputs. Parameters, buffers and constants
/// are attributes that share the program's tensors; outputs that stand for mutations become copies into what they
/// mutate.
IntrusivePtr<fx::GraphModule> unlift(const ExportedProgram& program);

}  // namespace umbra
