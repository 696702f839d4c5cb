// The last phase: a call of compiled graphs that looks to the caller as the function itself would.
#pragma once

#include "aot/dynamic.h"
#include "umbra/aot/compile.h"

namespace umbra::aot {

/// Whether a forward output is the caller's (or the caller's by way of views), and whether it has a gradient.
struct OutputUse {
  bool used, differentiable;
};

/// Graphs made ready to run.
struct Executable {
  CompiledGraphs graphs;
  ValueFunction forward, backward;
  size_t forward_count = 0, backward_count = 0;  // of what they give
  DynamicSizes sizes;
  std::vector<OutputUse> uses;  // by forward output
  std::vector<size_t> unmoved;  // primals that the backward graph has no gradient for
  /// The graph's inputs are the call's own, its outputs are the results, and nothing is written: what most functions
  /// are.
  bool direct = false;

  /// Fills in what follows from the graphs.
  void finish();
};

/// Runs the graphs on a call's inputs: gradients flow, writes reach the inputs, outputs are views of what they are
/// views of.
std::vector<Value> execute(const std::shared_ptr<const Executable>& executable, const std::vector<Value>& inputs);

}  // namespace umbra::aot
