// What has to be the same for captured graphs to be used again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "umbra/core/tensor.h"

namespace umbra::aot {

struct Signature {
  std::string context;           // what the caller says matters
  std::vector<int64_t> tensors;  // all else, in numbers
  auto operator<=>(const Signature&) const = default;
};

/// The tensors' metadata, which of them are one tensor or share memory, and the grad mode.
std::vector<int64_t> describe_tensors(const std::vector<Tensor>& tensors);

}  // namespace umbra::aot
