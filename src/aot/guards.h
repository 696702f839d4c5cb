// Which calls may run graphs that were captured for another one: what has to be the same, and in words what was not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "aot/dynamic.h"

namespace umbra::aot {

/// The modes of a thread that a captured program depends on, in one number: grad and inference mode, autocast, the
/// default type, and whether deterministic algorithms are asked for.
UMBRA_API uint64_t thread_modes();

/// What is the same in all calls that one capture serves, as far as it does not depend on symbols: types, devices,
/// needs for gradients, layouts, values that are no tensors, which inputs are one tensor or share memory, and the modes
/// of the thread.
class Guards {
 public:
  Guards() = default;
  /// For calls like this one. Sizes, strides, offsets and integers of inputs from `dynamic_from` on may differ.
  Guards(ArrayRef<Value> inputs, size_t dynamic_from);

  /// Holds inputs to being leaves of autograd's graph or not, as they are here: for functions that ask.
  void require_leaves(ArrayRef<Value> inputs);

  bool accept(ArrayRef<Value> inputs) const;
  /// The same, whatever the modes of the thread are.
  bool accept_inputs(ArrayRef<Value> inputs) const;
  /// The first condition that a call breaks, in PyTorch's words; empty where it keeps all.
  std::string broken_by(ArrayRef<Value> inputs, const std::vector<std::string>& names) const;
  /// All that they ask for, in bytes.
  std::string key() const;

 private:
  struct Input {
    Value::Tag tag = Value::Tag::None;
    bool dynamic = false;
    uint64_t look = 0;   // of a tensor: type, device, flags, number of dimensions
    size_t numbers = 0;  // where its sizes, strides and offset begin
    Value plain;
  };
  bool accept_input(const Input& expected, const Value& given) const;
  std::string broken_tensor(const Input& expected, const Value& given, const std::string& name) const;
  std::string broken_sharing(ArrayRef<Value> inputs, const std::vector<std::string>& names) const;

  uint64_t modes_ = 0;
  std::vector<Input> inputs_;
  std::vector<int64_t> numbers_;
  std::vector<bool> leaves_;      // empty where nobody asks
  std::vector<int64_t> sharing_;  // which inputs are one tensor, or lie in one storage; empty where none do
};

}  // namespace umbra::aot
