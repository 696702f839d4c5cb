// Exported programs in .pt2 files, as PyTorch 2.15 writes and reads them.
//
//     save(program, "mlp.pt2");                       // torch.export.load("mlp.pt2") reads it
//     ExportedProgram again = load("mlp.pt2");
#pragma once

#include <string>

#include "umbra/export/exported_program.h"
#include "umbra/io/pt2_archive.h"

namespace UMBRA_API umbra {

/// Writes the program and its weights, atomically: the file is either the old one or the whole new one.
void save(const ExportedProgram& program, const std::string& path);
/// Reads a program. Nothing in the file is run; a file that is not a sound program is refused with a reason.
ExportedProgram load(const std::string& path);

namespace io {
/// The program as plain data, and back. Operators that this build does not have are named in the error.
Pt2Program to_pt2(const ExportedProgram& program);
ExportedProgram from_pt2(const Pt2Program& stored);

/// The shape of nested arguments as .pt2 files hold it: JSON inside a string.
std::string write_tree_spec(const TreeSpec& spec);
TreeSpec parse_tree_spec(const std::string& text);
}  // namespace io

}  // namespace umbra
