// Whether a program read from a .pt2 file hangs together, as far as that can be seen without knowing its operators.
#pragma once

#include <string>

#include "umbra/io/pt2_json.h"

namespace UMBRA_API umbra {
namespace io::pt2 {

/// An error unless: every name is defined before it is used, and once; every value has its meta; targets name operators
/// or symbolic functions; the signature matches inputs and outputs one by one; ranges are not reversed. Subgraphs
/// included. Schemas of operators and symbolic expressions are not looked at.
void verify(const ExportedProgram& program, const std::string& label);

}  // namespace io::pt2
}  // namespace umbra
