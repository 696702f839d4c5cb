// The second phase: one graph of the function and its gradient, without mutation.
#pragma once

#include "umbra/aot/analysis.h"

namespace UMBRA_API umbra {
namespace aot {

/// Inputs: primals, then tangents. Outputs: what became of changed primals, the function's outputs but for objects
/// that no graph can hold, what became of arguments that are views of a primal and change their metadata, the
/// intermediates of which outputs are views, then a gradient (or None) for each primal.
///
/// What is written to a primal without history may stay in the graph: a copy_ to the input, after all that reads it.
///
/// A primal that the backward writes (a hook or a custom function's backward may) is an input once more, after the
/// tangents, for what it holds by then; its new contents come after the gradients.
///
/// Where the forward makes calls whose order matters, a token comes first among inputs and outputs; where the backward
/// does, one comes last.
///
/// Outputs that are views of something are computed in the graph as well, as PyTorch has it; the caller gets views of
/// what they are views of.
struct JointGraph {
  IntrusivePtr<fx::GraphModule> module;
  size_t primals = 0, tangents = 0;
  size_t tokens = 0, backward_tokens = 0;  // none or one; the other counts and positions are without them
  bool differentiable = false;             // for calls that take part in autograd
  std::vector<size_t> updated;             // primals whose new contents, or whose look, are outputs
  std::vector<size_t> written_in_graph;    // primals that the forward itself writes
  std::vector<size_t> results;             // function outputs that are outputs
  std::vector<size_t> changed;             // arguments, by their places among CallInfo::changes
  size_t intermediates = 0;
  std::vector<size_t> written_by_backward;  // primals
  std::vector<size_t> tangent_outputs;      // which forward output each tangent belongs to
  std::vector<TensorSpec> tangent_specs;    // what each tangent looks like
  size_t first_result() const { return updated.size(); }
  size_t first_intermediate() const { return updated.size() + results.size() + changed.size(); }
  size_t forward_outputs() const { return first_intermediate() + intermediates; }
};

/// How the gradient of a forward output is expected: with its strides, but not with elements that share memory.
TensorSpec tangent_of(const TensorSpec& output);

struct JointOptions {
  DecompositionTable decompositions = {};
  bool keep_writes = false;  // in the graph, where they are no part of autograd
};

JointGraph trace_joint(const ValueFunction& function, const CallInfo& info, const JointOptions& options = {});

}  // namespace aot
}  // namespace umbra
