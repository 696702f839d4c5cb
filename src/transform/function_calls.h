// A captured call of an operator that takes functions, seen by a level: what it is given, and where its functions get
// that.
#pragma once

#include "umbra/capture/higher_order.h"
#include "umbra/transform/level.h"

namespace umbra::transform {

/// A call whose functions use no tensors of the level but those among their inputs and `closed_over`, which are its
/// last operands.
class LevelCall {
 public:
  /// `is_own`: whether a tensor is the level's.
  LevelCall(const FunctionCall& call, Level& level, const std::function<bool(const Tensor&)>& is_own);

  const FunctionCall& call() const { return call_; }
  /// The elements of all lists, one after the other.
  const std::vector<Value>& elements() const { return elements_; }
  size_t list_of(size_t element) const { return lists_[element]; }
  /// The elements that a function is given, in its order; those it closes over are the last.
  const std::vector<size_t>& inputs(size_t which) const { return inputs_[which]; }
  /// The elements of the list that a function gives anew, first of what it gives; none.
  std::vector<size_t> carried_by(size_t which) const;
  bool is_carried(size_t element) const;

  /// What a function gives at `level`, for such values of its inputs, which stand for what it closes over as well.
  std::vector<Value> run(Level& level, size_t which, const std::vector<Value>& inputs) const;

 private:
  FunctionCall call_;
  std::vector<Value> functions_;
  std::vector<Tensor> closed_over_;
  std::vector<std::vector<Tensor>> names_;  // what the functions know those as
  std::vector<Value> elements_;
  std::vector<size_t> lists_;
  std::vector<std::vector<size_t>> inputs_;
};

/// The elements of a call's lists that each function is given.
std::vector<std::vector<size_t>> places_of_inputs(const FunctionCall& call);

/// The call with other lists.
FunctionCall with_lists(const FunctionCall& call, const std::function<std::vector<Value>(size_t list)>& values);

}  // namespace umbra::transform
