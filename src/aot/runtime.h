// The last phase: a call of compiled graphs that looks to the caller as the function itself would.
#pragma once

#include "aot/dynamic.h"
#include "umbra/aot/compile.h"

namespace umbra::aot {

/// Graphs made ready to run.
struct Executable {
  CompiledGraphs graphs;
  ValueFunction forward, backward;
  DynamicSizes sizes;
};

/// Runs the graphs on a call's inputs: gradients flow, writes reach the inputs, outputs are views of what they are
/// views of.
std::vector<Value> execute(const std::shared_ptr<const Executable>& executable, const std::vector<Value>& inputs);

}  // namespace umbra::aot
