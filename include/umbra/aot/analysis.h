// The first phase of ahead-of-time autograd: what a function does to its inputs, and what its outputs are to them.
#pragma once

#include <vector>

#include "umbra/capture/functionalize.h"

namespace umbra::aot {

/// A tensor the function works on: an input, or one that it closes over.
struct PrimalInfo {
  Tensor tensor;
  bool requires_grad = false;
  bool written = false;
};

struct OutputInfo {
  enum class Kind : uint8_t {
    Fresh,          // a value of its own
    Input,          // an input itself
    InputView,      // a view of an input
    OutputView,     // a view of an earlier output
    Plain,          // no tensor
  };
  Kind kind = Kind::Fresh;
  size_t base = 0;  // which input or output it is (a view of)
  bool requires_grad = false;
  DType dtype = DType::Undefined;
  Device device = {};
  SymShape sizes, strides;
  SymInt offset = 0;
  std::vector<ViewStep> views;  // from the base to a view of it
  Value value;  // of a plain one
};

/// Everything later phases need to know of one call.
struct CallInfo {
  size_t input_count = 0;            // the function's own inputs come first among the primals
  std::vector<PrimalInfo> primals;
  std::vector<OutputInfo> outputs;

  std::vector<size_t> written() const;
  std::vector<size_t> differentiable_primals() const;
  bool needs_gradients() const;
};

/// The tensor without its history; no operator is called, so that it can be used while modes are active.
Tensor untracked(const Tensor& tensor);

/// Runs the function once on fake tensors and reports.
CallInfo analyse(const ValueFunction& function, const std::vector<Tensor>& inputs);
std::string to_string(const CallInfo& info);

}  // namespace umbra::aot
