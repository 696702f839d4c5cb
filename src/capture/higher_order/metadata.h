// Metadata of what functions are given and give.
#pragma once

#include <span>

#include "umbra/capture/higher_order.h"

namespace umbra {

/// A tensor like `t` that is not `t`: what a loop's function is called with. Its value is not known, even where t's is.
Value stand_in(const Value& value);
/// A row of a tensor as such a stand-in.
Value row_stand_in(const Value& value);
/// The values without data, as tensors of their own.
std::vector<Value> fresh(const std::vector<Value>& values);
/// Where a call without data gets symbols from: the environment of its tensors or of the thread's fake mode, or null.
sym::ShapeEnv* symbols_for(const FunctionCall& call);
/// Whether it is an integer, a symbolic one included.
bool is_integer(const Value& value);
/// Lets go of the memory of what a function gave without data: it stands for what the operator gives, not beside it.
void forget_memory(std::span<const Value> of_function);
/// Values without data for `count` of each, stacked.
std::vector<Value> fresh_stacked(const std::vector<Value>& values, SymInt count);
/// Which values gradients may flow to, or do.
std::vector<size_t> differentiable(const std::vector<Value>& values);
std::vector<size_t> requiring_gradients(const std::vector<Value>& values);
/// One gradient for each tensor among the inputs: `gradient(k, i)` for the k-th of the `wanted` ones, which is input i;
/// the others have none.
template <class F>
std::vector<Tensor> gradients_of(const std::vector<Value>& inputs, const std::vector<size_t>& wanted, F gradient) {
  std::vector<Tensor> out;
  for (size_t i = 0, next = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_tensor()) continue;
    bool has_one = next < wanted.size() && wanted[next] == i;
    out.push_back(has_one ? gradient(next++, i) : Tensor());
  }
  return out;
}
/// Row i of each value that is a tensor of rows.
std::vector<Value> row(const std::vector<Value>& values, int64_t i);
/// Rows of results, one list of results a row, as one tensor each.
std::vector<Value> stack_rows(const std::vector<std::vector<Value>>& rows);
/// How many rows the tensors have; an error where they do not agree or have none.
SymInt row_count(const char* name, const std::vector<Value>& values);
std::vector<Value> joined(std::vector<Value> a, const std::vector<Value>& b);
/// The values from one place up to another.
std::vector<Value> part(const std::vector<Value>& values, size_t from, size_t to);

}  // namespace umbra
