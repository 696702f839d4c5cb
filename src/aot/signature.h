// What has to be the same for captured graphs to be used again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "umbra/core/value.h"

namespace umbra::aot {

struct Signature {
  std::string context;          // what the caller says matters
  std::vector<int64_t> inputs;  // all else, in numbers
  auto operator<=>(const Signature&) const = default;
};

/// The tensors' metadata, which of them are one tensor or share memory, the other values, and the grad mode. Left out
/// are the sizes, strides, offsets and integers that may differ from call to call: those of inputs from `dynamic_from`
/// on.
std::vector<int64_t> describe_inputs(const std::vector<Value>& inputs, size_t dynamic_from);
std::vector<int64_t> describe_tensors(const std::vector<Tensor>& tensors);

}  // namespace umbra::aot
