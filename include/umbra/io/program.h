// Exported programs in .pt2 files, as PyTorch 2.15 writes and reads them.
//
//     save(program, "mlp.pt2");                       // torch.export.load("mlp.pt2") reads it
//     ExportedProgram again = load("mlp.pt2");
#pragma once

#include <string>

#include "umbra/export/exported_program.h"

namespace UMBRA_API umbra {

/// Writes the program and its weights, atomically: the file is either the old one or the whole new one.
void save(const ExportedProgram& program, const std::string& path);
/// Reads a program. Nothing in the file is run; a file that is not a sound program is refused with a reason.
ExportedProgram load(const std::string& path);

}  // namespace umbra
