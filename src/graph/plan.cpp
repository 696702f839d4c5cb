#include "graph/plan.h"

#include "graph/annotate.h"
#include "graph/unfinished.h"
#include "umbra/core/at_location.h"
#include "umbra/core/interrupt.h"
#include "umbra/sym/shape_env.h"

namespace umbra::fx {

namespace {

/// Elements as the kind of list that a schema's type asks for.
Value list_value(const SchemaType* type, std::vector<Value> items) {
  using Base = SchemaType::Base;
  auto collect = [&]<class T>(T, auto read) {
    std::vector<T> out;
    for (const Value& v : items) out.push_back(read(v));
    return Value(std::move(out));
  };
  if (!type || !type->list) return Value(std::move(items));
  switch (type->base) {
    case Base::Tensor: return collect(Tensor(), [](const Value& v) { return v.tensor(); });
    case Base::Int:
    case Base::SymInt: return collect(SymInt(), [](const Value& v) { return v.to_sym_int(); });
    case Base::Float: return collect(double(), [](const Value& v) { return v.to_double(); });
    case Base::Bool: return collect(bool(), [](const Value& v) { return v.to_bool(); });
    default: return Value(std::move(items));
  }
}

/// The tag that Values of a list type have.
Value::Tag list_tag(const SchemaType& type) {
  using Base = SchemaType::Base;
  switch (type.base) {
    case Base::Tensor: return Value::Tag::TensorList;
    case Base::Int:
    case Base::SymInt: return Value::Tag::IntList;
    case Base::Float: return Value::Tag::DoubleList;
    case Base::Bool: return Value::Tag::BoolList;
    default: return Value::Tag::List;
  }
}

bool fits(const SchemaType* type, const Value& value) {
  if (!type || value.is_none()) return true;
  if (!type->list) return type->base != SchemaType::Base::Tensor || !value.is_scalar();
  return value.tag() == list_tag(*type);
}

/// A value in the form that the operator expects: a number may stand for a tensor, and where a list of fixed length is
/// wanted for all its elements.
Value fitted(const SchemaType* type, Value value) {
  if (fits(type, value)) return value;
  if (!type->list) return Value(wrapped_number(value.to_scalar()));
  if (value.is_scalar() && type->list_size > 0)
    return list_value(type, std::vector<Value>(static_cast<size_t>(type->list_size), value));
  Argument argument(value);
  if (!argument.is_sequence()) return value;  // the operator says what is wrong
  std::vector<Value> items;
  for (const Argument& element : argument.elements()) items.push_back(element.value());
  return list_value(type, std::move(items));
}

/// Lists and tuples are passed as lists, a dict as the list of its values: who knows its keys puts it together again.
void check_container(const Argument& argument) {
  check<TypeError>(argument.kind() != Argument::Kind::Slice,
                   "a slice cannot be passed to an operator or function in a graph");
}

/// A tree without nodes as one value.
Value constant_value(const Argument& argument, const SchemaType* type) {
  if (argument.is_value()) return fitted(type, argument.value());
  check_container(argument);
  std::vector<Value> items;
  for (const Argument& item : argument.items()) items.push_back(constant_value(item, nullptr));
  return list_value(type, std::move(items));
}

}  // namespace

Value Operand::load(const Value* slots) const {
  if (kind == Kind::Constant) return Value::borrow(constant);
  if (kind == Kind::Slot) return fits(type, slots[slot]) ? Value::borrow(slots[slot]) : fitted(type, slots[slot]);
  std::vector<Value> values;
  values.reserve(items.size());
  for (const Operand& item : items) values.push_back(item.load_owned(slots));
  return list_value(type, std::move(values));
}

Value Operand::load_owned(const Value* slots) const {
  Value loaded = load(slots);
  return Value(std::as_const(loaded));  // a copy owns what it refers to
}

Value Step::evaluate(ArrayRef<Value> arguments) const {
  Value result = function->evaluate(arguments);
  if (result.is_symbolic() && symbol_call_hook()) symbol_call_hook()(*function, arguments, result);
  return result;
}

Value Step::run(Value* arguments) const {
  switch (kind) {
    case Kind::Attribute: return load_shared(*attribute);
    case Kind::Module: {
      std::vector<Value> inputs(arguments, arguments + operands.size());
      Value callee = load_shared(*attribute);  // keeps it, whoever puts another in its place
      return to_callable(callee).call(std::move(inputs));
    }
    case Kind::Function:
      check<NotImplementedError>(static_cast<bool>(function->evaluate), "the function ", function->name,
                                 " has no definition to run");
      return evaluate(ArrayRef<Value>(arguments, operands.size()));
    case Kind::Operator: break;
  }
  op->call(arguments);
  size_t count = op->return_count();
  if (count == 0) return Value();
  if (count == 1) return std::move(arguments[0]);
  std::vector<Value> results;
  results.reserve(count);
  for (size_t i = 0; i < count; ++i) results.push_back(std::move(arguments[i]));
  return Value(std::move(results));
}

Node& NodeCall::node() const { return *step_.node; }
Value NodeCall::run() { return step_.run(arguments_); }

// ---- making a plan ----

Plan::Plan(const GraphModule& module, uint64_t graph_version, uint64_t attribute_version)
    : graph_version_(graph_version), attribute_version_(attribute_version), graph_(module.graph_pointer()) {
  slot_of_.resize(graph_->id_bound());
  for (Node* node : graph_->nodes())
    if (node->op() != Op::Output) slot_of_[node->id()] = slot_count_++;
  for (Node* node : graph_->nodes()) add_node(module, node);
  find_last_uses();
}

void Plan::add_node(const GraphModule& module, Node* node) {
  if (node->op() == Op::Placeholder) {
    inputs_.push_back(node);
  } else if (node->op() == Op::Output) {
    const Argument& result = node->arg(0);
    returns_sequence_ = result.is_sequence();
    if (!returns_sequence_) outputs_.push_back(operand(result, nullptr));
    else
      for (const Argument& element : result.elements()) outputs_.push_back(operand(element, nullptr));
  } else {
    Step step{.kind = Step::Kind::Attribute, .node = node, .operands = {}, .released = {}};
    step.slot = slot_of_[node->id()];
    annotate_errors(*node, [&] { add_call(module, node, step); });
    steps_.push_back(std::move(step));
  }
}

void Plan::add_call(const GraphModule& module, Node* node, Step& step) {
  check<NotImplementedError>(node->op() != Op::CallMethod, "the method '", node->target().name(),
                             "' is looked up by name in the object it is called on, which takes Python");
  if (node->op() == Op::GetAttr) return void(step.attribute = &module.get(node->target().name()));
  if (const Operator* op = node->target().op()) {
    step.kind = Step::Kind::Operator;
    step.op = op;
    const auto& parameters = op->schema().arguments;
    check<TypeError>(node->args().size() <= parameters.size(), op->name(), "() takes ", parameters.size(),
                     " arguments but ", node->args().size(), " were given");
    for (const auto& [key, value] : node->kwargs())
      check<TypeError>(op->schema().find(key) >= 0, op->name(), "() got an unexpected keyword argument '", key, "'");
    for (size_t i = 0; i < parameters.size(); ++i) {
      const SchemaType* type = &parameters[i].type;
      if (const Argument* given = node->argument(i)) {
        step.operands.push_back(operand(*given, type));
        continue;
      }
      check<TypeError>(parameters[i].default_value.has_value(), op->name(), "() is missing value for argument '",
                       parameters[i].name, "'");
      step.operands.push_back(operand(Argument(*parameters[i].default_value), type));
    }
    return;
  }
  step.function = node->target().function();
  step.kind = step.function ? Step::Kind::Function : Step::Kind::Module;
  if (!step.function) step.attribute = &module.get(node->target().name());
  if (step.function && step.function->positional) {
    for (const Argument& argument : step.function->positional(*node))
      step.operands.push_back(operand(argument, nullptr));
    return;
  }
  if (!node->kwargs().empty()) fail<TypeError>(node->target().text(), " takes no keyword arguments in a graph");
  for (const Argument& argument : node->args()) step.operands.push_back(operand(argument, nullptr));
}

Operand Plan::operand(const Argument& argument, const SchemaType* type) const {
  Operand result;
  result.type = type;
  if (argument.is_node()) {
    result.kind = Operand::Kind::Slot;
    result.slot = slot_of_[argument.node()->id()];
  } else if (!argument.has_nodes()) {
    result.constant = constant_value(argument, type);
  } else {
    check_container(argument);
    result.kind = Operand::Kind::Sequence;
    for (const Argument& item : argument.items()) result.items.push_back(operand(item, nullptr));
  }
  return result;
}

void Plan::find_last_uses() {
  std::vector<bool> used(slot_count_);
  if (Node* output = graph_->output_node())
    for (Node* input : output->inputs()) used[slot_of_[input->id()]] = true;
  for (size_t i = steps_.size(); i-- > 0;) {
    Step& step = steps_[i];
    for (Node* input : step.node->inputs()) {
      uint32_t slot = slot_of_[input->id()];
      if (!used[slot]) step.released.push_back(slot);
      used[slot] = true;
    }
    if (!used[step.slot]) step.released.push_back(step.slot);
  }
  for (Node* input : inputs_)
    if (!used[slot_of_[input->id()]]) unused_inputs_.push_back(slot_of_[input->id()]);
}

// ---- running ----

std::vector<Value> Plan::take_inputs(std::vector<Value> inputs, const Hooks& hooks) const {
  check<TypeError>(inputs.size() <= inputs_.size(), "forward() takes ", inputs_.size() + 1,
                   " positional arguments but ", inputs.size() + 1, " were given");
  std::vector<Value> slots(slot_count_);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    Node* node = inputs_[i];
    Value& slot = slots[slot_of_[node->id()]];
    if (i < inputs.size()) slot = std::move(inputs[i]);
    else if (!node->args().empty()) slot = constant_value(node->arg(0), nullptr);
    else fail<TypeError>("forward() missing 1 required positional argument: '", node->target().name(), "'");
    if (hooks.value) (*hooks.value)(*node, slot);
  }
  for (uint32_t slot : unused_inputs_) slots[slot] = Value();
  return slots;
}

void Plan::run_step(const Step& step, Value* slots, const Hooks& hooks, RunUnlocked& unlocked) {
  // Results replace arguments from the front. An argument that stands where a result may be left is owned by the frame:
  // an in-place operator gives back the very value it was called with, which must outlive its slot.
  AtLocation at(step.node->meta.source.get());
  size_t owned = step.op ? step.op->return_count() : 0;
  Frame frame(step.op ? step.op->frame_size() : step.operands.size());
  for (size_t i = 0; i < step.operands.size(); ++i) {
    frame[i] = i < owned ? step.operands[i].load_owned(slots) : step.operands[i].load(slots);
  }
  // Modules give the lock away themselves. Hooks are looked at under it.
  if (step.kind == Step::Kind::Module || hooks.call || hooks.value) unlocked.take_back();
  else if (step.op) unlocked.before(*step.op, frame.data());
  if (hooks.call && step.kind != Step::Kind::Attribute) {
    NodeCall call(step, frame.data(), step.operands.size());
    slots[step.slot] = (*hooks.call)(call);
  } else {
    slots[step.slot] = step.run(frame.data());
  }
  if (hooks.value) (*hooks.value)(*step.node, slots[step.slot]);
}

std::string Plan::out_of_range(const Node& assertion, const std::vector<Value>& slots) const {
  static const Operator& assert_scalar = get_operator("aten::_assert_scalar");
  std::string out;
  if (!assertion.calls(assert_scalar) || !assertion.arg(0).node()) return out;
  for (const Node* input : assertion.arg(0).node()->inputs()) {
    const Value &value = slots[slot_of_[input->id()]], &symbol = input->meta.val;
    if (!value.is_int() || !symbol.is_sym_int()) continue;
    auto* expression = static_cast<const sym::Expression*>(symbol.to_sym_int().node());
    sym::Range range = expression->env().range(expression);
    if (!range.contains(value.to_int()))
      out += concat("\nInvalid value range for ", value.to_int(), " between ", sym::to_string(range));
  }
  return out;
}

std::vector<Value> Plan::run(std::vector<Value> inputs, const Hooks& hooks) const {
  std::vector<Value> slots = take_inputs(std::move(inputs), hooks);
  RunUnlocked unlocked;
  EndUnfinished levels;
  for (const Step& step : steps_) {
    check_interrupt();
    annotate_errors(
        *step.node, [&] { run_step(step, slots.data(), hooks, unlocked); },
        [&] { return out_of_range(*step.node, slots); });
    for (uint32_t slot : step.released) slots[slot] = Value();
  }
  std::vector<Value> results;
  results.reserve(outputs_.size());
  for (const Operand& output : outputs_) results.push_back(output.load_owned(slots.data()));
  return results;
}

}  // namespace umbra::fx
