// Tensors by name, in the order of their file: a state dict as plain data.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "umbra/core/tensor.h"

namespace umbra::io {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// Text by name: metadata of files, extra files of archives.
using NamedTexts = std::vector<std::pair<std::string, std::string>>;

}  // namespace umbra::io
