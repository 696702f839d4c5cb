// The second phase: one graph of the function and its gradient, without mutation.
#pragma once

#include "umbra/aot/analysis.h"

namespace umbra::aot {

/// Inputs: primals, then tangents. Outputs: new contents of written primals, fresh outputs, then gradients of primals.
struct JointGraph {
  IntrusivePtr<fx::GraphModule> module;
  size_t primals = 0, tangents = 0;
  std::vector<size_t> written;          // primals whose new contents are outputs
  std::vector<size_t> fresh;            // function outputs that are outputs
  std::vector<size_t> tangent_outputs;  // which forward output each tangent belongs to
  std::vector<size_t> gradients;        // the primal that each gradient belongs to
  size_t forward_outputs() const { return written.size() + fresh.size(); }
};

struct JointOptions {
  DecompositionTable decompositions = {};
};

JointGraph trace_joint(const ValueFunction& function, const CallInfo& info, const JointOptions& options = {});

}  // namespace umbra::aot
