// Operators that take functions, captured where a level differentiates: the call goes on to the next level out, with
// functions of values. There it is followed by a tape of its own, on which the level's gradients are taken; forward,
// its functions give tangents besides.
#include <algorithm>
#include <unordered_set>

#include "autograd/forward_state.h"
#include "transform/function_calls.h"
#include "umbra/autograd/autograd.h"
#include "umbra/autograd/function.h"
#include "umbra/generated/functions.h"
#include "umbra/transform/derivatives.h"
#include "umbra/transform/tracked.h"

namespace umbra::transform {

namespace {

using LevelPointer = IntrusivePtr<TrackedLevel>;

Tensor at(const std::vector<Value>& values, size_t i) { return values[i].is_tensor() ? values[i].tensor() : Tensor(); }

/// Whether a history leads to anything but these ends.
bool leads_outside(const Tensor& tensor, const std::unordered_set<const autograd::Node*>& ends) {
  std::vector<autograd::Edge> open{autograd::gradient_edge(tensor)};
  std::unordered_set<const autograd::Node*> seen = ends;
  while (!open.empty()) {
    IntrusivePtr<autograd::Node> node = std::move(open.back().node);
    open.pop_back();
    if (!node || !seen.insert(node.get()).second) continue;
    bool last = true;
    for (const autograd::Edge& edge : node->next_edges()) {
      last &= !edge;
      open.push_back(edge);
    }
    if (last) return true;
  }
  return false;
}

/// Whether a history is followed, if only that of a value inside.
bool requires_gradients(const std::vector<Tensor>& tensors) {
  return std::ranges::any_of(tensors, [](Tensor t) {
    while (t.defined() && !t.requires_grad()) t = value_behind(t);
    return t.defined();
  });
}

/// What a level computes one level out, on values that a tape of their own follows. Its ends are cut off from what is
/// outside, so that a gradient by one of them does not lead through another.
struct Tape {
  LevelPointer level;
  std::vector<Tensor> wrappers, values;  // what goes in, at the level and outside
  std::vector<Tensor> ends;              // the same on the tape
  std::vector<Tensor> results;
  std::function<std::vector<Tensor>(const std::vector<Tensor>& values)> compute;  // the results, once more

  void add(const Tensor& wrapper, const Tensor& value) {
    wrappers.push_back(wrapper);
    values.push_back(value);
    ends.push_back(value.detach().requires_grad_());
  }

  /// Gradients by the ends.
  std::vector<Tensor> pull(const std::vector<Tensor>& incoming, bool again) const {
    return pull(results, ends, incoming, again);
  }

  static std::vector<Tensor> pull(const std::vector<Tensor>& results, const std::vector<Tensor>& ends,
                                  const std::vector<Tensor>& incoming, bool again) {
    std::vector<Tensor> roots, weights;
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i].defined() || !incoming[i].defined()) continue;
      check<NotImplementedError>(results[i].requires_grad() || !requires_gradients({results[i]}),
                                 "a captured operator that takes functions: its gradient cannot be differentiated "
                                 "inside of vmap yet");
      if (!results[i].requires_grad()) continue;
      roots.push_back(results[i]);
      weights.push_back(incoming[i]);
    }
    if (roots.empty()) return std::vector<Tensor>(ends.size());
    return autograd::grad(roots, ends, weights, {.retain_graph = true, .create_graph = again}, true);
  }
};

autograd::Gradients gradients_at_level(const Tape& tape, const autograd::Gradients& incoming);

/// The results, without a history where theirs is the tape's alone.
std::vector<Tensor> without_ends(const Tape& tape) {
  std::unordered_set<const autograd::Node*> ends;
  std::vector<IntrusivePtr<autograd::Node>> kept;
  for (const Tensor& t : tape.ends) {
    kept.push_back(autograd::gradient_edge(t).node);
    ends.insert(kept.back().get());
  }
  std::vector<Tensor> out = tape.results;
  for (Tensor& t : out)
    if (t.defined() && t.requires_grad() && (!is_grad_enabled() || !leads_outside(t, ends))) t = t.detach();
  return out;
}

/// A tape's results as others see them outside of the level: with the history of what went in, which the tape itself is
/// cut off from, and of what the functions use besides.
std::vector<Tensor> shown(const Tape& tape) {
  bool tied = is_grad_enabled() && requires_gradients(tape.values);
  return tied ? tape.compute(tape.values) : without_ends(tape);
}

/// The tape's results at the level, with the gradient that the tape tells.
std::vector<Tensor> at_level(const Tape& tape, const std::vector<Tensor>& results) {
  std::vector<size_t> places;
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].defined()) places.push_back(i);
  auto backward = [=, count = results.size()](autograd::FunctionContext&, const autograd::Gradients& incoming) {
    autograd::Gradients all(count);
    for (size_t k = 0; k < places.size(); ++k) all[places[k]] = incoming[k];
    return gradients_at_level(tape, all);
  };
  auto node = make_counted<autograd::FunctionNode>("HigherOrderBackward", backward);
  auto forward = [&](autograd::FunctionContext&) {
    std::vector<Tensor> given;
    for (size_t i : places) given.push_back(tape.level->wrap(results[i]));
    return given;
  };
  std::vector<Tensor> given = autograd::apply_function(node, tape.wrappers, forward, true), out(results.size());
  for (size_t k = 0; k < places.size(); ++k) out[places[k]] = given[k];
  return out;
}

/// The gradients of what a tape computes, by values and weights that may have a history.
std::vector<Tensor> computed_gradients(const Tape& tape, const std::vector<Tensor>& values,
                                       const std::vector<Tensor>& weights) {
  EnableGrad followed;
  std::vector<Tensor> ends;
  for (const Tensor& given : values) {
    Tensor t = value_if_ended(given);
    // An alias is an end, and goes on outside.
    ends.push_back(t.requires_grad() ? t.alias() : t.detach().requires_grad_());
  }
  return Tape::pull(tape.compute(ends), ends, weights, true);
}

/// The tape of a tape's gradients.
Tape pulled(const Tape& tape, const std::vector<Tensor>& wrappers, std::vector<Tensor> weights, bool again) {
  Tape next = tape;
  std::vector<size_t> places;
  for (size_t i = 0; again && i < weights.size(); ++i)
    if (weights[i].defined() && tape.results[i].defined() && tape.results[i].requires_grad()) {
      next.add(wrappers[i], weights[i]);
      weights[i] = next.ends.back();
      places.push_back(i);
    }
  SetGradEnabled followed(again);
  next.results = tape.pull(weights, again);
  next.compute = [tape, places](const std::vector<Tensor>& values) {
    auto first_weight = values.begin() + static_cast<ptrdiff_t>(tape.ends.size());
    std::vector<Tensor> incoming(tape.results.size());
    for (size_t k = 0; k < places.size(); ++k) incoming[places[k]] = first_weight[static_cast<ptrdiff_t>(k)];
    return computed_gradients(tape, {values.begin(), first_weight}, incoming);
  };
  return next;
}

/// Gradients where the level is not, among whatever transforms.
std::vector<Tensor> gradients_outside(const Tape& tape, const std::vector<Tensor>& incoming) {
  bool tied = is_grad_enabled() && requires_gradients(tape.values);
  if (tied) return computed_gradients(tape, tape.values, incoming);
  bool again = is_grad_enabled() && (requires_gradients(incoming) || requires_gradients(without_ends(tape)));
  return tape.pull(incoming, again);
}

autograd::Gradients gradients_at_level(const Tape& tape, const autograd::Gradients& incoming) {
  bool again = is_grad_enabled();
  std::vector<Tensor> weights(incoming.begin(), incoming.end()), found;
  if (tape.level->ended()) {
    for (Tensor& t : weights)
      if (t.defined()) t = value_if_ended(t);
    found = gradients_outside(tape, weights);
    return {found.begin(), found.end()};
  }
  check<NotImplementedError>(!level_stack().empty() && level_stack().back().get() == tape.level.get(),
                             "the gradient of a captured operator that takes functions cannot be taken inside another "
                             "transform than the one that follows it");
  Tape next;
  run_outside(tape.level->outside_now(), [&] {
    std::vector<Tensor> wrappers = weights;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (!weights[i].defined()) continue;
      if (!tape.level->owns(weights[i].impl())) wrappers[i] = tape.level->wrap(weights[i]);
      weights[i] = tape.level->unwrap(weights[i]);
    }
    next = pulled(tape, wrappers, weights, again);
    found = shown(next);
  });
  if (again) found = at_level(next, found);
  else
    for (Tensor& t : found)
      if (t.defined()) t = tape.level->wrap(t);
  return {found.begin(), found.end()};
}

/// One call at a level that differentiates.
class TrackedFunctions {
 public:
  TrackedFunctions(const FunctionCall& call, const LevelPointer& level)
      : level_(level),
        call_(std::make_shared<LevelCall>(call, *level, [&](const Tensor& t) { return level->owns(t.impl()); })),
        grad_mode_(is_grad_enabled()) {
    for (const Value& v : call_->elements()) {
      bool own = v.is_tensor() && level->owns(v.tensor_ref().impl());
      differentiated_.push_back(own && level->differentiates(v.tensor_ref().impl()));
      any_ |= differentiated_.back();
    }
  }

  std::vector<Value> forward() const {
    for (const Value& v : call_->elements())
      check<NotImplementedError>(
          !grad_mode_ || !v.is_tensor() || !level_->owns(v.tensor_ref().impl()) || !v.tensor_ref().requires_grad(),
          call_->call().op().schema().name, ": a gradient inside of another transform cannot be captured yet");
    return any_ ? pushed() : plain();
  }

  std::vector<Value> reverse() const {
    if (!any_ || !grad_mode_) return plain();
    check<NotImplementedError>(all_reverse(), call_->call().op().schema().name,
                               ": a gradient inside of another transform cannot be captured yet");
    Tape tape;
    tape.level = level_;
    std::vector<Value> results;
    std::vector<Tensor> found;
    run_outside(level_->outside_now(), [&] {
      std::vector<Value> values = unwrapped();
      for (size_t i = 0; i < values.size(); ++i) {
        if (differentiated_[i]) tape.add(call_->elements()[i].tensor(), values[i].tensor());
      }
      auto compute = [self = *this, values](const std::vector<Tensor>& followed) {
        std::vector<Value> all = values;
        for (size_t i = 0, next = 0; i < all.size(); ++i)
          if (self.differentiated_[i]) all[i] = Value(followed[next++]);
        return self.lowered(all, [&](size_t which) { return self.function(which, true); }).call();
      };
      tape.compute = [compute](const std::vector<Tensor>& followed) {
        std::vector<Value> results = compute(followed);
        std::vector<Tensor> out;
        for (size_t i = 0; i < results.size(); ++i) out.push_back(at(results, i));
        return out;
      };
      {
        EnableGrad tracked;
        results = compute(tape.ends);
      }
      for (size_t i = 0; i < results.size(); ++i) tape.results.push_back(at(results, i));
      found = shown(tape);
    });
    found = at_level(tape, found);
    for (size_t i = 0; i < results.size(); ++i)
      if (found[i].defined()) results[i] = Value(found[i]);
    return results;
  }

 private:
  std::vector<Value> unwrapped() const {
    std::vector<Value> out;
    for (const Value& v : call_->elements()) out.push_back(v.is_tensor() ? Value(level_->unwrap(v.tensor_ref())) : v);
    return out;
  }

  static bool all_reverse() {
    return std::ranges::all_of(level_stack(), [](const IntrusivePtr<Level>& level) {
      auto* tracked = dynamic_cast<const TrackedLevel*>(level.get());
      return tracked && tracked->kind() == TrackedLevel::Kind::Reverse;
    });
  }

  /// The call one level out.
  FunctionCall lowered(const std::vector<Value>& values, const std::function<ValueFunction(size_t)>& functions) const {
    size_t next = 0;
    FunctionCall out = with_lists(call_->call(), [&](size_t list) {
      std::vector<Value> of_list;
      while (next < values.size() && call_->list_of(next) == list) of_list.push_back(values[next++]);
      return of_list;
    });
    return with_functions(out, functions);
  }

  FunctionCall with_functions(FunctionCall out, const std::function<ValueFunction(size_t)>& functions) const {
    std::vector<size_t> positions = out.functions();
    for (size_t which = 0; which < positions.size(); ++which)
      out.set_argument(positions[which],
                       function_value(functions(which), is_closed(call_->call().argument(positions[which]))));
    for (size_t i = 0; i < out.op().argument_count(); ++i)
      if (out.argument(i).is_tensor()) out.set_argument(i, Value(level_->unwrap(out.argument(i).tensor_ref())));
    return out;
  }

  std::vector<Value> plain() const {
    std::vector<Value> results;
    run_outside(level_->outside_now(), [&] {
      results = lowered(unwrapped(), [this](size_t which) { return function(which, false); }).call();
    });
    for (Value& v : results)
      if (v.is_tensor()) v = Value(level_->wrap(v.tensor()));
    return results;
  }

  /// A function of values, at a level of its own; it may ask what the level differentiates.
  ValueFunction function(size_t which, bool shows_history) const {
    return [=, call = call_, grad_mode = grad_mode_, differentiated = differentiated_,
            kind = TrackedLevel::Kind::Reverse](const std::vector<Value>& values) {
      auto level = make_counted<TrackedLevel>(kind);
      EnterLevel scope(level);
      SetGradEnabled as_called(grad_mode);
      std::vector<Value> inputs = values;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i].is_tensor()) continue;
        size_t element = call->inputs(which)[i];
        Tensor t = level->wrap(inputs[i].tensor_ref());
        bool may_be = differentiated[element] || call->is_carried(element);
        if (shows_history && may_be && inputs[i].tensor_ref().requires_grad()) t.requires_grad_();
        inputs[i] = Value(t);
      }
      std::vector<Value> results = call->run(*level, which, inputs);
      for (Value& v : results)
        if (v.is_tensor()) v = Value(level->unwrap(v.tensor_ref()));
      return results;
    };
  }

  // ---- forward: tangents stand behind the values of each list ----

  struct Place {
    size_t element;
    bool tangent;
  };

  bool has_tangent(size_t element) const {
    const Value& v = call_->elements()[element];
    if (!v.is_tensor() || !is_differentiable(v.tensor_ref().dtype())) return false;
    return differentiated_[element] || call_->is_carried(element);
  }

  std::vector<Place> places_in(size_t list) const {
    std::vector<Place> out;
    for (bool tangent : {false, true})
      for (size_t i = 0; i < call_->elements().size(); ++i)
        if (call_->list_of(i) == list && (!tangent || has_tangent(i))) out.push_back({i, tangent});
    return out;
  }

  Value tangent_of(size_t element, const Value& value) const {
    const Value& v = call_->elements()[element];
    const Tensor* found = level_->owns(v.tensor_ref().impl())
                              ? autograd::tangent_at(v.tensor_ref().impl(), level_->dual_level())
                              : nullptr;
    return Value(found ? level_->unwrap(*found) : zeros_like(value.tensor_ref()));
  }

  std::vector<Value> pushed() const {
    std::vector<Value> results;
    run_outside(level_->outside_now(), [&] {
      std::vector<Value> values = unwrapped();
      std::vector<Place> places;
      FunctionCall wide = with_lists(call_->call(), [&](size_t list) {
        std::vector<Value> of_list;
        for (const Place& place : places_in(list)) {
          places.push_back(place);
          const Value& value = values[place.element];
          of_list.push_back(place.tangent ? tangent_of(place.element, value) : value);
        }
        return of_list;
      });
      std::vector<std::vector<size_t>> inputs = places_of_inputs(wide);
      results = with_functions(wide, [&](size_t which) {
                  std::vector<Place> given;
                  for (size_t place : inputs[which]) given.push_back(places[place]);
                  return dual_function(which, given, which == call_->call().rule().single_result);
                }).call();
    });
    return duals(results);
  }

  static bool is_followed(const Value& v) { return v.is_tensor() && is_differentiable(v.tensor_ref().dtype()); }

  /// [values, tangents of those that may have one]
  std::vector<Value> duals(const std::vector<Value>& results) const {
    // As many values as make up the whole with their tangents.
    size_t count = 0, all = 0;
    while (all < results.size()) all += is_followed(results[count++]) ? 2 : 1;
    std::vector<Value> out;
    for (size_t i = 0, next = count; i < count; ++i) {
      const Value& v = results[i];
      if (is_followed(v)) out.push_back(Value(make_dual(*level_, v.tensor(), results[next++].tensor())));
      else out.push_back(v.is_tensor() ? Value(level_->wrap(v.tensor())) : v);
    }
    return out;
  }

  ValueFunction dual_function(size_t which, const std::vector<Place>& given, bool only_values) const {
    return [=, call = call_, grad_mode = grad_mode_](const std::vector<Value>& values) {
      auto level = make_counted<TrackedLevel>(TrackedLevel::Kind::Forward);
      EnterLevel scope(level);
      SetGradEnabled as_called(grad_mode);
      std::vector<Value> all(call->elements().size()), inputs;
      for (size_t i = 0; i < values.size(); ++i)
        if (!given[i].tangent)
          all[given[i].element] = values[i].is_tensor() ? Value(level->wrap(values[i].tensor_ref())) : values[i];
      for (size_t i = 0; i < values.size(); ++i)
        if (given[i].tangent)
          autograd::set_tangent(all[given[i].element].tensor(), level->wrap(values[i].tensor_ref()),
                                level->dual_level());
      for (size_t element : call->inputs(which)) inputs.push_back(all[element]);
      std::vector<Value> results = call->run(*level, which, inputs), tangents;
      for (Value& v : results) {
        if (!v.is_tensor()) continue;
        Tensor along = tangent(*level, v.tensor_ref());
        v = Value(level->unwrap(v.tensor_ref()));
        if (only_values || !is_followed(v)) continue;
        WithoutLevel outside;
        tangents.push_back(Value(along.defined() ? along : zeros_like(v.tensor_ref())));
      }
      results.insert(results.end(), tangents.begin(), tangents.end());
      return results;
    };
  }

  LevelPointer level_;
  std::shared_ptr<LevelCall> call_;
  bool grad_mode_;
  std::vector<bool> differentiated_;
  bool any_ = false;
};

}  // namespace

bool TrackedLevel::call_functions(const Operator& op, Value* frame) {
  FunctionCall call(op, frame);
  if (!call.rule().rehearse) return false;
  if (kind_ == Kind::Forward && call.rule().by_others) {
    frame[0] = Value(call.rule().by_others(call));
    return true;
  }
  TrackedFunctions functions(call, IntrusivePtr<TrackedLevel>(this));
  frame[0] = Value(kind_ == Kind::Forward ? functions.forward() : functions.reverse());
  return true;
}

}  // namespace umbra::transform
