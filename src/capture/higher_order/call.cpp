// Calls of operators that take functions, as values.
#include "umbra/capture/higher_order.h"
#include "umbra/dispatch/define.h"

namespace umbra {

std::vector<size_t> FunctionCall::functions() const {
  std::vector<size_t> out;
  const auto& schema = op_->schema().arguments;
  for (size_t i = 0; i < schema.size(); ++i)
    if (schema[i].type.base == SchemaType::Base::Callable) out.push_back(i);
  return out;
}

std::vector<Value> FunctionCall::run_function(size_t which, std::vector<Value> inputs) const {
  return call_function(arguments_[functions()[which]], std::move(inputs));
}

std::vector<Value> FunctionCall::inputs(size_t which) const { return rule().inputs(*this, which); }

FunctionCall FunctionCall::with_operands(const std::vector<Value>& more) const {
  FunctionCall out = *this;
  std::vector<Value> operands = list(rule().operands);
  operands.insert(operands.end(), more.begin(), more.end());
  out.set_argument(rule().operands, Value(std::move(operands)));
  return out;
}

namespace {
Value map_value(const Value& value, const std::function<Value(const Value&)>& change) {
  if (!value.is_list() && !value.is_tensor_list()) return change(value);
  std::vector<Value> items = elements(value);
  for (Value& item : items) item = map_value(item, change);
  return Value(std::move(items));
}
}  // namespace

FunctionCall FunctionCall::changed(
    const std::function<Value(const Value&)>& value,
    const std::function<ValueFunction(const Value& function, size_t which)>& function) const {
  FunctionCall out = *this;
  size_t which = 0;
  const auto& schema = op_->schema().arguments;
  for (size_t i = 0; i < schema.size(); ++i) {
    bool is_function = schema[i].type.base == SchemaType::Base::Callable;
    out.arguments_[i] = is_function ? function_value(function(arguments_[i], which++), is_closed(arguments_[i]))
                                    : map_value(arguments_[i], value);
  }
  return out;
}

std::vector<Tensor> FunctionCall::tensors() const {
  std::vector<Tensor> out;
  for (const Value& v : arguments_)
    v.each_tensor([&](TensorImpl* t) { out.emplace_back(IntrusivePtr<TensorImpl>(t)); });
  return out;
}

std::vector<Value> FunctionCall::redispatch(DispatchKeySet keys) const {
  Frame frame(*op_, arguments_.data());
  op_->redispatch(keys, frame.data());
  return elements(frame[0]);
}

std::vector<Value> FunctionCall::call() const {
  Frame frame(*op_, arguments_.data());
  // A function may close over what needs gradients, though no operand does.
  return redispatch(op_->keys(frame.data()) | (DispatchKeySet(DispatchKey::Autograd) - dispatch_state().exclude));
}

RegisterHigherOrder::RegisterHigherOrder(HigherOrder rule) {
  const auto* kept = new HigherOrder(std::move(rule));  // for as long as the operator: always
  OperatorBuilder builder((std::string("higher_order::") + kept->schema).c_str());
  builder.definition().higher_order = kept;
  op = &builder.op();
  fx::define_function({.name = "torch.ops.higher_order." + op->schema().name,
                       .format = {},
                       .evaluate = [op = op, kept](ArrayRef<Value> given) {
                         std::vector<Value> arguments = given.vec();
                         if (kept->spreads_operands && arguments.size() >= kept->operands) {
                           auto first = arguments.begin() + static_cast<ptrdiff_t>(kept->operands);
                           std::vector<Value> operands(first, arguments.end());
                           arguments.erase(first, arguments.end());
                           arguments.push_back(Value(std::move(operands)));
                         }
                         check<TypeError>(arguments.size() == op->argument_count(), op->schema().name, " takes ",
                                          op->argument_count(), " arguments, ", arguments.size(), " were given");
                         return Value(FunctionCall(*op, std::move(arguments)).call());
                       }});
}

}  // namespace umbra
