// The third phase: the joint graph cut into a forward and a backward graph, and what has to be kept in between.
#pragma once

#include <functional>

#include "umbra/aot/joint.h"

namespace UMBRA_API umbra {
namespace aot {

/// Forward: primals to forward outputs, then saved tensors, then saved numbers (sizes that are symbols). Backward:
/// saved numbers, saved tensors, then tangents, to gradients.
struct Partition {
  IntrusivePtr<fx::GraphModule> forward, backward;
  size_t forward_outputs = 0;
  size_t saved_numbers = 0;        // how many of the saved are no tensors
  std::vector<std::string> saved;  // names of the nodes kept, tensors first
  int64_t saved_bytes = 0;         // at the sizes of the example
};

using Partitioner = std::function<Partition(const JointGraph&)>;

/// A partition that somebody else made: of a forward graph with what it saves after its outputs, and a backward graph.
Partition partition_of(IntrusivePtr<fx::GraphModule> forward, IntrusivePtr<fx::GraphModule> backward,
                       size_t forward_outputs);

/// Keeps every forward value that the backward reads.
Partition default_partition(const JointGraph& joint);
/// Keeps the least bytes from which the backward can be computed when pointwise operators and views are recomputed
/// there.
Partition min_cut_partition(const JointGraph& joint);
/// Keeps no more than a part (0 to 1) of the memory that min_cut_partition takes beside the inputs, or as little as can
/// be, and computes again in the backward what costs the least work.
Partition budget_partition(const JointGraph& joint, double budget);

}  // namespace aot
}  // namespace umbra
