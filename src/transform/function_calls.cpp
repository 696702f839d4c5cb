#include "transform/function_calls.h"

#include <algorithm>

#include "umbra/capture/functionalize.h"
#include "umbra/generated/functions.h"
#include "umbra/transform/tracked.h"

namespace umbra::transform {

namespace {

bool is_list(const FunctionCall& call, size_t i) { return call.op().schema().arguments[i].type.list; }

/// A tensor that is the level's as `value` is, and not `value`.
Value apart(const Value& value) { return value.is_tensor() ? Value(value.tensor_ref().alias()) : value; }

bool is_among(const std::vector<Tensor>& tensors, const Tensor& tensor) {
  return std::ranges::any_of(tensors, [&](const Tensor& t) { return t.is_same(tensor); });
}

/// What a tensor owes to writes of others is computed where the program sees it.
void show_writes(Tensor t) {
  for (Tensor inside = value_behind(t); inside.defined(); inside = value_behind(t)) t = inside;
  if (is_functional(t)) from_functional(t);
}

/// The level's own tensors that the functions take besides what they are given: those that two runs take alike.
std::vector<Tensor> find_closed_over(const FunctionCall& call, Level& level,
                                     const std::function<bool(const Tensor&)>& is_own) {
  std::vector<Tensor> runs[2];
  std::vector<std::vector<size_t>> places = places_of_inputs(call);
  std::vector<Value> elements;
  for (size_t i = 0; i < call.op().argument_count(); ++i)
    if (is_list(call, i))
      for (const Value& v : call.list(i)) elements.push_back(v);
  struct Noting {
    Level& level;
    std::vector<Tensor>* before;
    ~Noting() { level.note_in(before); }
  };
  std::vector<std::vector<Value>> kept;
  for (const Tensor& t : call.tensors()) show_writes(t);
  run_aside(call, [&] {
    for (std::vector<Tensor>& met : runs) {
      Noting scope{level, level.noting()};
      for (size_t which = 0; which < places.size(); ++which) {
        std::vector<Value> inputs;
        for (size_t place : places[which]) inputs.push_back(apart(elements[place]));
        level.note_in(&met);
        kept.push_back(inputs);
        kept.push_back(call.run_function(which, std::move(inputs)));
        for (const Value& v : kept.back())
          if (v.is_tensor() && is_own(v.tensor_ref())) met.push_back(v.tensor());
        level.note_in(nullptr);
      }
    }
  });
  std::vector<Tensor> found;
  for (const Tensor& t : runs[0])
    if (is_among(runs[1], t) && !is_among(found, t)) found.push_back(t);
  for (const Tensor& t : found) level.note(t);
  return found;
}

std::vector<Value> as_list(const std::vector<Tensor>& tensors) { return {tensors.begin(), tensors.end()}; }

}  // namespace

FunctionCall with_lists(const FunctionCall& call, const std::function<std::vector<Value>(size_t list)>& values) {
  FunctionCall out = call;
  for (size_t i = 0; i < call.op().argument_count(); ++i)
    if (is_list(call, i)) out.set_argument(i, Value(values(i)));
  return out;
}

std::vector<std::vector<size_t>> places_of_inputs(const FunctionCall& call) {
  double next = 0;
  FunctionCall numbered = with_lists(call, [&](size_t list) {
    std::vector<Value> numbers;
    for (size_t i = 0; i < call.list(list).size(); ++i) numbers.push_back(Value(next++));
    return numbers;
  });
  std::vector<std::vector<size_t>> out;
  for (size_t which = 0; which < call.functions().size(); ++which) {
    std::vector<size_t>& places = out.emplace_back();
    for (const Value& v : numbered.inputs(which)) places.push_back(static_cast<size_t>(v.to_double()));
  }
  return out;
}

LevelCall::LevelCall(const FunctionCall& call, Level& level, const std::function<bool(const Tensor&)>& is_own)
    : call_(call), closed_over_(find_closed_over(call, level, is_own)) {
  call_ = call.with_operands(as_list(closed_over_));
  for (const Tensor& t : closed_over_) {
    names_.push_back(level.stands_for(t));
    names_.back().push_back(t);
  }
  for (size_t i : call.functions()) functions_.push_back(call.argument(i));
  for (size_t i = 0; i < call.op().argument_count(); ++i) {
    if (!is_list(call, i)) continue;
    for (const Value& v : call_.list(i)) {
      elements_.push_back(v);
      lists_.push_back(i);
    }
  }
  inputs_ = places_of_inputs(call_);
}

std::vector<size_t> LevelCall::carried_by(size_t which) const {
  std::vector<size_t> out;
  for (const CarriedList& step : call_.rule().steps)
    for (size_t i = 0; step.function == which && i < lists_.size(); ++i)
      if (lists_[i] == step.list) out.push_back(i);
  return out;
}

bool LevelCall::is_carried(size_t element) const {
  return std::ranges::any_of(call_.rule().steps, [&](const CarriedList& step) { return step.list == lists_[element]; });
}

std::vector<Value> LevelCall::run(Level& level, size_t which, const std::vector<Value>& inputs) const {
  size_t own = inputs.size() - closed_over_.size();
  for (size_t i = own; i < inputs.size(); ++i)
    for (const Tensor& name : names_[i - own]) level.set_stand_in(name, inputs[i].tensor());
  return call_function(functions_[which], {inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(own)});
}

}  // namespace umbra::transform
