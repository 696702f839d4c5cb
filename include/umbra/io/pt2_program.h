// Between exported programs and the plain data of .pt2 files.
#pragma once

#include <string>

#include "umbra/export/exported_program.h"
#include "umbra/io/pt2_archive.h"

namespace UMBRA_API umbra {
namespace io {

/// The program as plain data, and back. Operators that this build does not have are named in the error.
Pt2Program to_pt2(const ExportedProgram& program);
ExportedProgram from_pt2(const Pt2Program& stored);

/// The shape of nested arguments as .pt2 files hold it: JSON inside a string.
std::string write_tree_spec(const TreeSpec& spec);
/// `fields`: what the elements of named tuples are called, by the names of their types, as files have it beside the
/// text.
TreeSpec parse_tree_spec(const std::string& text, const pt2::Named<pt2::NamedTupleDef>& fields = {});
/// Adds to `fields` the named tuples in `spec`.
void note_fields(const TreeSpec& spec, pt2::Named<pt2::NamedTupleDef>& fields);

}  // namespace io
}  // namespace umbra
