// What the source in archives was written from: the lines of the user's own files.
#pragma once

#include "umbra/io/pickle_value.h"
#include "umbra/jit/source_text.h"

namespace umbra::io {

/// The entry of the origins of "code/__torch__.py" is called so behind the file's name.
inline constexpr const char* kOriginsSuffix = ".debug_pkl";

std::string write_origins(const jit::SourceOrigins& origins);
/// The origins that an archive holds; none where they are not written as they are now.
jit::SourceOrigins read_origins(const PickleValue& value);

}  // namespace umbra::io
