// From return addresses to lines of source code, by the debug information of the objects they lie in.
#pragma once

#include "umbra/core/call_site.h"

namespace UMBRA_API umbra {

/// The executable segment of a loaded object.
struct TextRange {
  uintptr_t low = 0, high = 0;
  bool in_program = false;  // of the program's own file
  bool contains(const void* address) const { return reinterpret_cast<uintptr_t>(address) - low < high - low; }
};
/// The segment that holds an address; empty where there is none.
TextRange find_text(const void* address);

/// The user's lines at a return address, innermost first: several where functions were inlined, none without debug
/// information or where all of them stand in headers of the library or the standard library.
std::vector<SourceFrame> symbolize(const void* return_address);
/// What can be said without debug information: the object and `function+offset`.
SourceFrame describe_address(const void* return_address);
/// A demangled name without return type and parameters: `Mlp::forward`, `<lambda>`.
std::string short_function_name(std::string name);
/// The file that debug information means by a name. Its reader puts the folder of the compilation before names, also
/// before those from the root that clang writes: `/build//home/model.cpp`.
std::string source_file(const std::string& name);
/// Whether a file is a header of ours or of the standard library: what it holds was called by the user's line further
/// out.
bool is_library_header(std::string_view file);

}  // namespace umbra
