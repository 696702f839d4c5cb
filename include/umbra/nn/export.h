// Export of modules.
//
//     Dim batch("batch", {.max = 4096});
//     ExportedProgram program = export_program(model, {x}, {.dynamic_shapes = {{"x", {{0, batch}}}}});
#pragma once

#include <vector>

#include "umbra/export/export.h"
#include "umbra/nn/module.h"

namespace UMBRA_API umbra {

/// Runs the module once on fake inputs and records it. Arguments are called what the module calls them, unless the
/// options say otherwise.
ExportedProgram export_program(const nn::Module& module, const std::vector<Tensor>& inputs,
                               const ExportOptions& options = {});

}  // namespace umbra
