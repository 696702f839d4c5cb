#include "umbra/capture/out_dtype.h"

#include "capture/operator_row.h"
#include "umbra/capture/functionalize.h"
#include "umbra/capture/tracer.h"
#include "umbra/generated/functions.h"
#include "umbra/graph/operator_value.h"

namespace umbra {

namespace {

constexpr const char* kName = "torch.ops.higher_order.out_dtype";

bool is_on(DispatchKey key) { return active_mode(key) && !dispatch_state().exclude.has(key); }

/// The parts: casts, the call, a cast. A number among the tensors stays one.
Tensor computed(const Operator& op, DType dtype, std::vector<Value> arguments) {
  for (Value& v : arguments)
    if (v.is_tensor() && v.tensor_ref().defined() && !v.tensor_ref().impl()->is_wrapped_number())
      v = Value(v.tensor_ref().to(dtype));
  Frame frame(op, arguments.data());
  op.call(frame.data());
  return frame[0].tensor().to(dtype);
}

/// Whether a layer above the tracer has to see the parts: gradients that are recorded, and transforms.
bool needs_parts(const std::vector<Value>& arguments) {
  bool found = false;
  for (const Value& v : arguments)
    v.each_tensor([&](TensorImpl* t) {
      found |= t->keys().has(DispatchKey::Level);
      found |= is_grad_enabled() && !dispatch_state().exclude.has(DispatchKey::Autograd) &&
               Tensor(IntrusivePtr<TensorImpl>(t)).requires_grad();
    });
  return found;
}

Tensor recorded(Tracer& tracer, const Operator& op, DType dtype, const std::vector<Value>& arguments) {
  Tensor result;
  {
    ExcludeKeys off{DispatchKeySet(tracer.key())};
    result = computed(op, dtype, arguments);
  }
  Tracer::CallArguments given = tracer.arguments_of(op, arguments.data());
  fx::Arguments row{fx::operator_value(op), Value(dtype)};
  for (fx::Argument& a : given.positional) row.push_back(std::move(a));
  tracer.record_call(fx::function(kName), std::move(row), Value(result), std::move(given.keywords));
  return result;
}

/// A node's arguments as `evaluate` takes them: all of the operator's, numbers that stand for tensors among them.
fx::Arguments positional(const fx::Node& node) {
  const fx::Arguments& row = node.args();
  const Operator* op = !row.empty() && row[0].is_value() ? fx::operator_in(row[0].value()) : nullptr;
  check<TypeError>(op && row.size() >= 2, "out_dtype takes an operator, a type and the operator's arguments");
  return operator_row(node, *op);
}

Value evaluate(ArrayRef<Value> arguments) {
  const Operator* op = arguments.size() > 1 ? fx::operator_in(arguments[0]) : nullptr;
  check<TypeError>(op && arguments.size() == 2 + op->argument_count(),
                   "out_dtype takes an operator, a type and the operator's arguments");
  std::vector<Value> given(arguments.begin() + 2, arguments.end());
  for (size_t i = 0; i < given.size(); ++i)
    if (op->schema().arguments[i].type.is_tensor() && given[i].is_scalar())
      given[i] = Value(wrapped_number(given[i].to_scalar()));
  return Value(out_dtype(*op, arguments[1].to_dtype(), std::move(given)));
}

[[maybe_unused]] const fx::Function& kFunction =
    fx::define_function({.name = kName, .format = {}, .evaluate = evaluate, .positional = positional});

}  // namespace

Tensor out_dtype(const Operator& op, DType dtype, std::vector<Value> arguments) {
  if (needs_parts(arguments)) return computed(op, dtype, std::move(arguments));
  if (is_on(DispatchKey::PreProxy)) return recorded(*active_tracer(DispatchKey::PreProxy), op, dtype, arguments);
  if (is_on(DispatchKey::Functionalize)) {  // it is functional as it is
    for (Value& v : arguments)
      if (v.is_tensor() && v.tensor_ref().defined()) v = Value(from_functional(v.tensor_ref()));
    ExcludeKeys off(DispatchKeySet(DispatchKey::Functionalize) | DispatchKey::Autograd | DispatchKey::Lift);
    return to_functional(out_dtype(op, dtype, std::move(arguments)));
  }
  if (is_on(DispatchKey::Proxy)) return recorded(*active_tracer(DispatchKey::Proxy), op, dtype, arguments);
  return computed(op, dtype, std::move(arguments));
}

}  // namespace umbra
