// Tensors by name, in the order of their file: a state dict as plain data.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "umbra/core/tensor.h"

namespace UMBRA_API umbra {
namespace io {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// Text by name: metadata of files, extra files of archives.
using NamedTexts = std::vector<std::pair<std::string, std::string>>;

}  // namespace io
}  // namespace umbra
