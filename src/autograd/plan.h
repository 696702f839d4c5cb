// What autograd derives from an operator's definition, once.
#pragma once

#include "umbra/dispatch/operator.h"

namespace umbra::autograd {

struct Plan {
  const Definition*
      definition;         // with the gradients: the operator's own, or for a variant those of its functional operator
  size_t gradient_count;  // formulas there were when the plan was made; users may add some later
  std::string name;       // "MulBackward0"
  std::vector<int> formula;  // for each argument, which formula gives its gradient; -1: none
  std::vector<int> refused;  // arguments without one, which must not require gradients
  /// The formulas in the order in which a backward pass runs them: by the names of the arguments, as PyTorch's do, so
  /// that captured backward passes call the same operators in the same order.
  std::vector<size_t> order;
  size_t edge_count;  // arguments with a formula; a list counts as one
  bool list_result;   // the only result is a list
  bool real_only;     // complex results have no history: asking for one is an error
  bool makes_blank;   // makes a tensor of no or of given numbers, which has no history, whatever it is written to
  bool is_differentiable() const { return gradient_count > 0; }
};

/// The operator's plan; made when first asked for, and kept.
const Plan& plan_for(const Operator& op);

/// PyTorch's name for the node of an operator: what the definition says, or the functional name in camel case and
/// "Backward0".
std::string node_name(const Operator& op);

}  // namespace umbra::autograd
