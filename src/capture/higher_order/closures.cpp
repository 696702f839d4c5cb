// What functions close over: found by a run that is recorded for this alone, and then handed in as operands.
#include <algorithm>
#include <unordered_map>

#include "capture/higher_order/layers.h"
#include "umbra/autograd/autocast.h"
#include "umbra/capture/effects.h"
#include "umbra/capture/functionalize.h"
#include "umbra/capture/lift.h"
#include "umbra/capture/tracer.h"
#include "umbra/core/memory.h"

namespace umbra {

namespace {

bool is_active(DispatchKey key) { return active_mode(key) && !dispatch_state().exclude.has(key); }

IntrusivePtr<LiftMode> active_lift() {
  return IntrusivePtr<LiftMode>(static_cast<LiftMode*>(active_mode(DispatchKey::Lift)));
}

/// The tensor, or the value of a functional wrapper.
Tensor value_of(const Tensor& t) { return is_functional(t) ? from_functional(t) : t; }

/// What was found out about a call's functions.
struct Scouted {
  std::vector<Tensor> closed_over;
  Rehearsed functions;
};

/// What a run computes, as it is seen below autograd: what a hook keeps, or a backward pass that ends early, is there
/// though no layer above has seen it.
class Computed {
 public:
  Computed(const std::vector<Value>& inputs, const std::vector<Tensor>& known)
      : tracer_(make_counted<Tracer>(DispatchKey::Proxy, make_counted<fx::GraphModule>(make_counted<fx::Graph>()))) {
    fx::Node* last = nullptr;
    auto name = [this] { return "arg" + std::to_string(tracer_->graph().size()) + "_1"; };
    for (const Value& v : inputs)
      last = tracer_->add_input(name(), v.is_tensor() ? Value(value_of(v.tensor_ref())) : v);
    for (const Tensor& t : known) last = tracer_->add_input(name(), Value(value_of(t)));
    tracer_->locations = false;
    auto meet = [this, last, name](const Value& v) mutable { return last = tracer_->add_input_after(last, name(), v); };
    tracer_->on_symbol = meet;
    tracer_->on_constant = [meet](const Tensor& t) mutable { return meet(Value(t)); };
  }
  const IntrusivePtr<Tracer>& tracer() const { return tracer_; }
  bool has(const Tensor& tensor) const {
    fx::Node* node = tracer_->node_of(value_of(tensor));
    return node && node->op() != fx::Op::Placeholder;
  }

 private:
  IntrusivePtr<Tracer> tracer_;
};

/// A run of each function above all other layers, into a graph that nobody keeps: what it does not know is closed over.
Scouted scout(const FunctionCall& call, const std::vector<bool>& tracked = {}) {
  Scouted found;
  UnobservedMemory aside;
  AutocastAside without_regions;
  WithoutEffectScope without_tokens;
  WithoutModes without_tracers(DispatchKey::Proxy), without_users(DispatchKey::UserMode);
  for (size_t which = 0; which < call.functions().size(); ++which) {
    std::vector<Value> inputs = call.inputs(which);
    for (size_t i = 0; i < tracked.size(); ++i)
      if (tracked[i] && !inputs[i].tensor_ref().requires_grad()) inputs[i].tensor().requires_grad_();
    auto module = make_counted<fx::GraphModule>(make_counted<fx::Graph>());
    auto tracer = make_counted<Tracer>(DispatchKey::PreProxy, module);
    fx::Node* last = nullptr;
    auto name = [&] { return "arg" + std::to_string(module->graph().size()) + "_1"; };
    for (const Value& v : inputs) last = tracer->add_input(name(), v);
    for (const Tensor& t : found.closed_over) last = tracer->add_input(name(), Value(t));
    auto meet = [&](const Value& value) { return last = tracer->add_input_after(last, name(), value); };
    Computed computed(inputs, found.closed_over);
    tracer->on_constant = [&](const Tensor& tensor) {
      if (!computed.has(tensor)) found.closed_over.push_back(tensor);
      return meet(Value(tensor));
    };
    tracer->on_symbol = meet;  // numbers are the same in all layers
    EnterMode below(computed.tracer()), scope(tracer);
    std::vector<Value> results = call.run_function(which, inputs);
    tracer->set_output(results);
    refuse_effects(call, module->graph(), results);
    found.functions.results.push_back(std::move(results));
    found.functions.graphs.push_back(std::move(module));
  }
  return found;
}

/// The symbols in a call's sizes, which only their own ShapeEnv knows; a new one where there are none.
IntrusivePtr<sym::ShapeEnv> symbols_of(const FunctionCall& call) {
  for (const Tensor& t : call.tensors())
    if (FakeModeImpl* mode = t.is_symbolic() ? fake_mode_of(value_of(t)) : nullptr)
      return IntrusivePtr<sym::ShapeEnv>(mode->shape_env());
  return make_counted<sym::ShapeEnv>();
}

/// The same on stand-ins, where there are data that the functions could write; results are checked, too.
Scouted scout_without_data(const FunctionCall& call, const std::vector<bool>& tracked = {}) {
  FakeOptions options{.shape_env = symbols_of(call), .allow_non_fake_inputs = true};
  options.allow_scalar_outputs = options.allow_dynamic_output_shapes = true;
  auto mode = make_counted<FakeModeImpl>(std::move(options));
  FunctionCall stand_in = with_values(call, [&](const Value& v) {
    if (!v.is_tensor()) return v;
    Tensor fake = mode->from_tensor(value_of(v.tensor_ref()));
    if (v.tensor_ref().requires_grad()) fake.requires_grad_();
    return Value(fake);
  });
  WithoutModes without_tracers(DispatchKey::Proxy), without_users(DispatchKey::UserMode);
  EnterMode scope(mode);
  Scouted found = scout(stand_in, tracked);
  call.rule().results(stand_in, found.functions.results);
  return found;
}

bool any_data(const FunctionCall& call) {
  for (const Tensor& t : call.tensors())
    if (t.storage()->has_data()) return true;
  return false;
}

bool is_operand(const FunctionCall& call, const Tensor& tensor) {
  for (const Value& v : call.inputs(0))
    if (v.is_tensor() && v.tensor_ref().is_same(tensor)) return true;
  return false;
}

/// A function of its inputs and of what it closes over: both are replaced wherever the function uses them.
ValueFunction close(const Value& function, const std::vector<Value>& known, size_t own) {
  return [=, outer = active_lift()](const std::vector<Value>& given) {
    std::unordered_map<const TensorImpl*, Tensor> replacements;
    for (size_t i = 0; i < known.size(); ++i)
      if (known[i].is_tensor()) replacements[known[i].tensor_impl()] = given[i].tensor();
    auto lift = make_counted<LiftMode>(
        [outer, replacements](const Tensor& real) {
          Tensor found_outside = outer ? outer->replace(real) : real;
          auto found = replacements.find(found_outside.impl());
          return found == replacements.end() ? found_outside : found->second;
        },
        LiftMode::Outside::Any);
    for (const Value& v : known)
      if (v.is_tensor()) lift->set(v.tensor(), replacements[v.tensor_impl()]);
    EnterMode scope(lift);
    std::vector<Value> results = call_function(function, {given.begin(), given.begin() + static_cast<ptrdiff_t>(own)});
    for (Value& v : results)
      if (v.is_tensor()) v = Value(lift->replace(v.tensor_ref()));
    return results;
  };
}

}  // namespace

FunctionCall with_values(const FunctionCall& call, const std::function<Value(const Value&)>& change) {
  FunctionCall out = call;
  for (size_t i = 0; i < call.op().argument_count(); ++i) {
    const SchemaType& type = call.op().schema().arguments[i].type;
    if (type.base == SchemaType::Base::Callable) continue;
    if (!type.list) {
      out.set_argument(i, change(call.argument(i)));
      continue;
    }
    std::vector<Value> items = call.list(i);
    for (Value& v : items) v = change(v);
    out.set_argument(i, Value(std::move(items)));
  }
  return out;
}

bool is_captured(const FunctionCall& call) {
  for (DispatchKey key : {DispatchKey::Lift, DispatchKey::PreProxy, DispatchKey::UserMode, DispatchKey::Functionalize,
                          DispatchKey::Proxy, DispatchKey::Fake})
    if (is_active(key)) return true;
  for (const Tensor& t : call.tensors())
    if (t.is_fake()) return true;
  return false;
}

FunctionCall close_functions(const FunctionCall& call) {
  bool closed = true;
  for (size_t i : call.functions()) closed &= is_closed(call.argument(i));
  if (closed) return call;
  std::vector<Value> found;
  for (const Tensor& t : any_data(call) ? scout_without_data(call).closed_over : scout(call).closed_over)
    if (!is_operand(call, t)) found.push_back(Value(t));
  return closed_over(call, found);
}

FunctionCall closed_over(const FunctionCall& call, const std::vector<Value>& values) {
  FunctionCall wider = call.with_operands(values);
  std::vector<size_t> positions = call.functions();
  for (size_t which = 0; which < positions.size(); ++which) {
    std::vector<Value> inputs = call.inputs(which);
    size_t own = inputs.size();
    inputs.insert(inputs.end(), values.begin(), values.end());
    wider.set_argument(positions[which], function_value(close(call.argument(positions[which]), inputs, own), true));
  }
  return wider;
}

Rehearsed rehearse_functions(const FunctionCall& call, const std::vector<bool>& tracked) {
  // Beside stand-ins, a tensor with data is a constant that a function closes over.
  std::vector<Tensor> tensors = call.tensors();
  bool all_data = std::ranges::all_of(tensors, [](const Tensor& t) { return t.storage()->has_data(); });
  return (all_data ? scout_without_data(call, tracked) : scout(call, tracked)).functions;
}

void run_aside(const FunctionCall& call, const std::function<void()>& run) {
  UnobservedMemory aside;
  AutocastAside without_regions;
  WithoutEffectScope without_tokens;
  WithoutModes without_programs(DispatchKey::PreProxy), without_tracers(DispatchKey::Proxy),
      without_users(DispatchKey::UserMode);
  std::optional<EnterMode> without_data;
  bool fake = active_mode(DispatchKey::Fake) ||
              std::ranges::any_of(call.tensors(), [](const Tensor& t) { return fake_mode_of(value_of(t)) != nullptr; });
  if (!fake && any_data(call)) {
    FakeOptions options{.shape_env = symbols_of(call), .allow_non_fake_inputs = true};
    options.allow_scalar_outputs = options.allow_dynamic_output_shapes = true;
    without_data.emplace(make_counted<FakeModeImpl>(std::move(options)));
  }
  run();
}

std::vector<Tensor> check_functions(const FunctionCall& call) { return scout_without_data(call).closed_over; }

}  // namespace umbra
