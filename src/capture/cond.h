// The parts of `cond` that its layers share.
#pragma once

#include "umbra/capture/higher_order.h"

namespace umbra {

/// The truth of a tensor of one element that has data.
bool is_true(const Tensor& predicate);

/// Whether both branches of a call are to be captured, not one to be run.
bool is_captured(const Tensor& predicate);

/// Makes both branches graphs and adds a node for the call to the tracer's graph.
std::vector<Value> record_cond(Tracer& tracer, const Tensor& predicate, const ValueFunction& true_function,
                               const ValueFunction& false_function, const std::vector<Value>& operands);

/// Runs both branches, of which nobody can say which one it will be; results as either gives them.
std::vector<Value> either_result(const ValueFunction& true_function, const ValueFunction& false_function,
                                 const std::vector<Value>& operands);

/// The function as it runs on such inputs, recorded: what it refers to may be gone when it is called.
ValueFunction record_function(const ValueFunction& function, const std::vector<Value>& inputs);

/// The tensors that two branches use beside their operands. An error if a branch writes any of them or an operand,
/// gives one back, or if their results are of different kinds.
std::vector<Tensor> find_closed_over(const std::vector<ValueFunction>& branches, const std::vector<Value>& operands);

/// The same errors for a call that is not captured, found without running a branch on data.
void check_branches(const ValueFunction& true_function, const ValueFunction& false_function,
                    const std::vector<Value>& operands);

}  // namespace umbra
