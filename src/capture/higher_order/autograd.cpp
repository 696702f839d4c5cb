// Autograd: a call that runs eagerly is differentiated through what its functions do; a captured one gets a node, whose
// gradient is made of the gradients of its functions.
#include "umbra/autograd/autograd.h"

#include "capture/higher_order/layers.h"
#include "capture/higher_order/metadata.h"
#include "umbra/autograd/function.h"
#include "umbra/autograd/grad_mode.h"
#include "umbra/generated/functions.h"

namespace umbra {

bool needs_gradients(const FunctionCall& call) {
  if (!is_grad_enabled()) return false;
  for (const Tensor& t : call.tensors())
    if (t.requires_grad()) return true;
  return false;
}

namespace {

/// The call with other tensors in the places of its own.
FunctionCall with_tensors(const FunctionCall& call, const std::vector<Tensor>& tensors) {
  size_t next = 0;
  return with_values(call, [&](const Value& v) { return v.is_tensor() ? Value(tensors.at(next++)) : v; });
}

/// "CondBackward"
std::string node_name(const Operator& op) {
  std::string name = op.schema().name;
  name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  return name + "Backward";
}

/// Gradients of the results that are tensors, each in the place of its own among all of them.
std::vector<Tensor> by_result(const std::vector<bool>& is_tensor, const autograd::Gradients& incoming) {
  std::vector<Tensor> out;
  size_t next = 0;
  for (bool tensor : is_tensor) out.push_back(tensor ? incoming[next++] : Tensor());
  return out;
}

void check_gradient(const FunctionCall& call) {
  check<NotImplementedError>(call.rule().gradient, call.op().schema().name,
                             ": its gradient under capture is not built yet; detach what it is given, or use no_grad");
}

/// The call as it runs for its values.
FunctionCall run_for_values(const FunctionCall& call) {
  if (!call.history()) return call;
  return call.changed([](const Value& v) { return v; },
                      [&](const Value&, size_t which) { return with_history(call, which); });
}

std::vector<Value> differentiate(const FunctionCall& call, DispatchKeySet below) {
  check_gradient(call);
  std::vector<Tensor> tensors = call.tensors();
  auto gradient = std::make_shared<FunctionBackward>();
  auto is_tensor = std::make_shared<std::vector<bool>>();  // by result; ints have no gradient
  auto backward = [call, gradient, is_tensor](autograd::FunctionContext& context, const autograd::Gradients& incoming) {
    std::vector<Tensor> found =
        (*gradient)(with_tensors(call, context.saved_tensors()), by_result(*is_tensor, incoming));
    return autograd::Gradients(found.begin(), found.end());
  };
  auto node = make_counted<autograd::FunctionNode>(node_name(call.op()), backward);
  std::vector<Value> values;
  std::vector<Tensor> results = autograd::apply_function(node, tensors, [&](autograd::FunctionContext& context) {
    context.save_for_backward(tensors);
    {
      ExcludeKeys off(DispatchKeySet(DispatchKey::Autograd) | DispatchKey::Lift);
      values = run_for_values(call).redispatch(below);
    }
    ExcludeKeys closed(DispatchKey::Lift);
    *gradient = call.rule().gradient(call, values);
    std::vector<Tensor> out;
    for (const Value& v : values) {
      is_tensor->push_back(v.is_tensor());
      if (v.is_tensor()) out.push_back(v.tensor());
    }
    return out;
  });
  size_t next = 0;
  for (Value& v : values)
    if (v.is_tensor()) v = Value(results[next++]);
  return values;
}

/// Gives every tensor that any of the functions may use a gradient, zeros where the run did not use it: as captured.
std::vector<Value> tie(const Operator& op, std::vector<Value> results, const std::vector<Tensor>& tensors) {
  std::vector<Tensor> inputs;
  std::vector<size_t> tied;
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].is_tensor() && is_differentiable(results[i].tensor_ref().dtype())) {
      tied.push_back(i);
      inputs.push_back(results[i].tensor());
    }
  for (const Tensor& t : tensors)
    if (t.requires_grad()) inputs.push_back(t);
  if (tied.empty() || inputs.size() == tied.size() || !is_grad_enabled()) return results;
  auto backward = [inputs, count = tied.size()](autograd::FunctionContext&, autograd::Gradients incoming) {
    for (size_t i = count; i < inputs.size(); ++i) incoming.push_back(zeros_like(inputs[i]));
    return incoming;
  };
  auto node = make_counted<autograd::FunctionNode>(node_name(op), backward);
  std::vector<Tensor> outputs = autograd::apply_function(node, inputs, [&](autograd::FunctionContext&) {
    std::vector<Tensor> out;
    for (size_t i : tied) out.push_back(results[i].tensor().detach());
    return out;
  });
  for (size_t k = 0; k < tied.size(); ++k) results[tied[k]] = Value(outputs[k]);
  return results;
}

}  // namespace

std::vector<Value> with_recorded_gradient(const FunctionCall& closed, std::vector<Value> results) {
  if (!needs_gradients(closed)) return results;
  std::vector<size_t> given = differentiable(results);
  auto backward = [closed, results, given](autograd::FunctionContext& context, const autograd::Gradients& incoming) {
    FunctionCall saved = with_tensors(closed, context.saved_tensors());
    check_gradient(closed);
    FunctionBackward gradient;
    {
      ExcludeKeys below(DispatchKey::PreProxy);
      gradient = closed.rule().gradient(saved, results);
    }
    std::vector<Tensor> by_result(results.size());
    for (size_t k = 0; k < given.size(); ++k) by_result[given[k]] = incoming[k];
    std::vector<Tensor> found = gradient(saved, by_result);
    return autograd::Gradients(found.begin(), found.end());
  };
  auto node = make_counted<autograd::FunctionNode>(node_name(closed.op()), backward);
  std::vector<Tensor> tensors = closed.tensors();
  ExcludeKeys off(DispatchKeySet(DispatchKey::PreProxy) | DispatchKey::Lift);
  std::vector<Tensor> outputs = autograd::apply_function(node, tensors, [&](autograd::FunctionContext& context) {
    context.save_for_backward(tensors);
    std::vector<Tensor> out;
    for (size_t i : given) out.push_back(results[i].tensor().detach());
    return out;
  });
  for (size_t k = 0; k < given.size(); ++k) results[given[k]] = Value(outputs[k]);
  return results;
}

namespace {

void autograd_functions(const Operator& op, DispatchKeySet keys, Value* frame) {
  FunctionCall call(op, frame);
  if (!is_captured(call)) {
    bool graphs = true;  // were checked when they were recorded
    for (size_t i : call.functions())
      graphs &= dynamic_cast<const fx::GraphModule*>(&to_callable(call.argument(i))) != nullptr;
    std::vector<Tensor> tensors = call.tensors();
    if (!graphs)
      for (Tensor& t : check_functions(call)) tensors.push_back(std::move(t));
    frame[0] = Value(tie(op, call.rule().run(call), tensors));
    return;
  }
  bool closed = true;  // graphs of the layers' own ask for nothing
  for (size_t i : call.functions()) closed &= is_closed(call.argument(i));
  call = close_functions(call);
  DispatchKeySet below = keys.below(DispatchKey::Autograd);
  if (!closed) note_history(call);
  if (needs_gradients(call)) {
    frame[0] = Value(differentiate(call, below));
    return;
  }
  // Closed functions lift what they close over themselves; what layers below compute is no part of the program.
  ExcludeKeys off(DispatchKeySet(DispatchKey::Autograd) | DispatchKey::Lift);
  frame[0] = Value(run_for_values(call).redispatch(below));
}

const RegisterFunctionLayer kAutograd(DispatchKey::Autograd, autograd_functions);

}  // namespace
}  // namespace umbra
