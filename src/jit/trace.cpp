#include "umbra/jit/trace.h"

#include <algorithm>

#include "jit/trace_convolution.h"
#include "umbra/autograd/autocast.h"
#include "umbra/generated/functions.h"
#include "umbra/jit/interpreter.h"
#include "umbra/jit/objects.h"

namespace umbra::jit {

namespace {

thread_local Trace* g_active = nullptr;
TraceFrontEnd g_front_end;

}  // namespace

Trace* active_trace() { return g_active; }
void set_trace_front_end(TraceFrontEnd front_end) { g_front_end = front_end; }
void trace_warning(const std::string& text) {
  if (g_front_end.warn) g_front_end.warn(text);
}

void warn_of_value(const std::string& what) {
  if (g_active && g_active->on)
    trace_warning(concat("Converting a tensor to ", what,
                         " might cause the trace to be incorrect. We can't record the data flow of Python values, so "
                         "this value will be treated as a constant in the future. This means that the trace might "
                         "not generalize to other inputs!"));
}
void warn_of_constant(const std::string& function) {
  if (g_active && g_active->on)
    trace_warning(concat(function,
                         " results are registered as constants in the trace. You can safely ignore this warning if you "
                         "use this function to create tensors out of constant variables that would be the same every "
                         "time you call this function. In any other case, this might cause the trace to be "
                         "incorrect."));
}

std::string Trace::variable_name(const Tensor& tensor) { return g_front_end.name ? g_front_end.name(tensor) : ""; }

TraceScope::TraceScope(Trace& trace)
    : before_(std::exchange(g_active, &trace)), level_(IntrusivePtr<transform::Level>(&trace)) {}
TraceScope::~TraceScope() {
  g_active = before_;
  if (g_front_end.done) g_front_end.done();
}

TracePause::TracePause() : before_(std::exchange(g_active, nullptr)) {}
TracePause::~TracePause() { g_active = before_; }

Trace::Trace(bool force_outplace) : graph_(std::make_shared<Graph>()), force_outplace_(force_outplace) {
  scopes_.push_back({0, &graph_->block(), nullptr, {}, {}});
}

namespace {
bool is_type_of(const Type& type, const Tensor& t) {
  const TensorDetails& d = type.tensor;
  if (d.dtype != t.dtype() || d.requires_grad != t.requires_grad() || d.device != t.device() || !d.sizes) return false;
  return t.layout() == Layout::Strided && !t.is_symbolic() && std::ranges::equal(*d.sizes, t.sizes()) &&
         std::ranges::equal(*d.strides, t.strides());
}
}  // namespace

/// The type of a tensor; tensors that look alike share it.
TypePtr Trace::type_of_tensor(const Tensor& tensor) {
  for (const TypePtr& type : types_)
    if (type && is_type_of(*type, tensor)) return type;
  return types_[next_type_++ % types_.size()] = tensor_type_of(tensor);
}

const Trace::Kinds& Trace::kinds() {
  static const Kinds kinds;
  return kinds;
}

const Kind* Trace::kind_of(const Operator& op) {
  const Kind*& kind = kinds_[&op];
  if (!kind) kind = Kind::of(op.schema().space + "::" + op.schema().name);
  return kind;
}

Node* Trace::insert(const Kind* kind, Variables inputs, TypePtr output) {
  Node* node = graph_->insert(kind, std::move(inputs));
  if (output) node->add_output(std::move(output));
  node->scope = named_scopes_.empty() ? scopes_.back().text : named_scopes_.back();
  node->source = place_.empty() && g_front_end.source ? g_front_end.source() : place_;
  return node;
}

Node* Trace::insert_behind(const Variable* v, const Kind* kind, Variables inputs, TypePtr output) {
  Block* current = graph_->current();
  Block* home = v->node()->block();
  Node* next = v->node() == home->parameter() ? (home->nodes().empty() ? nullptr : home->nodes().front().get())
                                              : v->node()->next();
  graph_->set_current(home);
  graph_->set_before(next);
  Node* node = insert(kind, std::move(inputs), std::move(output));
  graph_->set_before(nullptr);
  graph_->set_current(current);
  return node;
}

std::string Trace::current_scope() const {
  return (named_scopes_.empty() ? scopes_.back().text : named_scopes_.back()).str();
}

void Trace::push_scope(const std::string& name) {
  std::string outer = current_scope();
  named_scopes_.emplace_back(outer.empty() ? name : outer + "/" + name);
}

void Trace::pop_scope() {
  check(!named_scopes_.empty(), "pop_scope: no scope was pushed");
  named_scopes_.pop_back();
}

Variable* Trace::constant(const Value& value, TypePtr type) {
  Variable* v = insert(kinds().constant, {}, type ? std::move(type) : type_of(value))->output();
  if (!value.is_none()) v->node()->attributes.emplace_back("value", value);
  else v->node()->source.clear();
  return v;
}

void Trace::know(const Tensor& tensor, Variable* v) { tensors_[tensor.impl()] = {tensor, v}; }

// ---- inputs ----

TypePtr Trace::traced_type(const Value& value) {
  if (value.is_tensor()) return tensor_type_of(value.tensor_ref());
  if (value.is_list()) {
    std::vector<TypePtr> parts;
    for (const Value& v : value.list()) parts.push_back(traced_type(v));
    return tuple_type(std::move(parts));
  }
  return type_of(value);
}

void Trace::add_input(const std::string& name, const Value& example) {
  take_apart(example, graph_->add_input(name, traced_type(example)));
}

void Trace::take_apart(const Value& value, Variable* from) {
  if (value.is_tensor()) return know(value.tensor_ref(), from);
  if (value.is_list()) {
    Node* unpack = insert("prim::TupleUnpack", {from});
    for (const TypePtr& type : from->type()->elements) unpack->add_output(type);
    for (size_t i = 0; i < unpack->outputs().size(); ++i) take_apart(value.list()[i], unpack->output(i));
    return;
  }
  if (auto* list = object_as<ListObject>(value)) {
    Node* unpack = insert(kinds().list_unpack, {from});
    for (const Value& item : list->items) take_apart(item, unpack->add_output(traced_type(item)));
    return;
  }
  if (auto* dict = object_as<DictObject>(value)) {
    for (auto& [key, item] : dict->items)
      take_apart(item, insert("aten::__getitem__", {from, constant(key)}, traced_type(item))->output());
    return;
  }
  if (value.is_object()) objects_[value.object()] = {value, from};
}

// ---- values of arguments ----

Variable* Trace::tensor_variable(const Tensor& tensor) {
  if (auto found = tensors_.find(tensor.impl()); found != tensors_.end()) {
    Variable* v = found->second.variable;
    if (v->name().empty())
      if (std::string name = variable_name(tensor); !name.empty()) v->set_name(name);
    return v;
  }
  if (auto found = paths_.find(tensor.impl()); found != paths_.end()) {
    if (!found->second.named) name_attribute(found->second, tensor);
    return attribute(found->second);
  }
  check(
      !tensor.requires_grad(),
      "Cannot insert a Tensor that requires grad as a constant. Consider making it a parameter or input, or detaching "
      "the gradient\nTensor:\n",
      to_string(Value(tensor)));
  return constant(Value(tensor), tensor_type_of(tensor));
}

SymInt Trace::integer(const Tensor& tensor, const Kind* kind) {
  int64_t value = 0;
  {
    transform::WithoutLevel off;
    value = tensor.item().to_int();
  }
  TypeKind type = kind == kinds().integer ? TypeKind::Int : TypeKind::Number;
  Variable* of = tensor_variable(tensor);
  Variable* v = insert_behind(of, kind, {of}, simple_type(type))->output();
  v->node()->source.clear();
  auto known = knows(tensor) ? numbers_.find(tensor.impl()) : numbers_.end();
  if (known != numbers_.end() && known->second.hint() == value &&
      std::ranges::find(given_numbers_, known->second.raw()) == given_numbers_.end()) {
    symbols_[known->second.raw()] = v;  // the last reading stands for the number
    given_numbers_.push_back(known->second.raw());
    return known->second;
  }
  sym::SymbolOptions options{.policy = sym::Policy::Dynamic, .size = false, .keep_zero_one = true};
  if (!env_) env_ = make_counted<sym::ShapeEnv>();
  SymInt s = env_->create_symbol(value, concat("trace", symbol_count_++), options);
  if (!s.is_symbolic()) return s;
  symbols_[s.raw()] = v;
  given_numbers_.push_back(s.raw());
  if (knows(tensor)) numbers_.insert_or_assign(tensor.impl(), s);
  return s;
}

Scalar Trace::scalar(const Tensor& tensor) {
  if (is_integral(tensor.dtype(), false)) return Scalar(integer(tensor, kinds().scalar));
  Scalar value;
  {
    transform::WithoutLevel off;
    value = tensor.item();
  }
  if (!value.is_floating()) {
    trace_warning("a truth value or a complex number that was read off a tensor is a constant of the trace");
    return value;
  }
  Variable* of = tensor_variable(tensor);
  Node* node = insert_behind(of, kinds().scalar, {of}, simple_type(TypeKind::Number));
  node->source.clear();
  pending_.emplace_back(value.to_double(), node->output());
  return value;
}

Variable* Trace::symbol(SymInt value) {
  if (!value.is_symbolic()) return constant(Value(value));
  if (auto found = symbols_.find(value.raw()); found != symbols_.end()) return found->second;
  trace_warning(
      "a number was computed from tensors' sizes in a way that cannot be recorded; it will be treated as a constant in "
      "the trace, which might not generalize to other inputs!");
  return constant(Value(value.hint()));
}

Variable* Trace::variable(const Value& value, const SchemaType* type) {
  using Tag = Value::Tag;
  auto list = [&](auto&& items, TypePtr type_of_list) {
    Variables parts;
    parts.reserve(items.size());
    for (size_t i = 0; i < items.size(); ++i) parts.push_back(variable(Value(items[i])));
    Node* node = insert(kinds().list_construct, std::move(parts), std::move(type_of_list));
    node->source.clear();
    return node->output();
  };
  switch (value.tag()) {
    case Tag::Tensor: return tensor_variable(value.tensor_ref());
    case Tag::SymInt: return symbol(value.to_sym_int());
    case Tag::IntList: {
      static const TypePtr kInts = list_type(simple_type(TypeKind::Int));
      return list(value.int_list(), kInts);
    }
    case Tag::DoubleList: return list(value.double_list(), list_type(simple_type(TypeKind::Float)));
    case Tag::BoolList: {
      std::vector<Value> items;
      for (bool b : value.bool_list()) items.emplace_back(b);
      return list(items, list_type(simple_type(TypeKind::Bool)));
    }
    case Tag::TensorList: {
      bool optional = type && type->element_optional;
      return list(value.tensor_list(), list_type(optional ? optional_type(tensor_type()) : tensor_type()));
    }
    case Tag::List:
      return list(value.list(), list_type(type ? type_of_schema({.base = type->base}) : simple_type(TypeKind::Any)));
    case Tag::DType: return constant(Value(number_of(value.to_dtype())));
    case Tag::Layout: return constant(Value(static_cast<int64_t>(value.to_layout())));
    case Tag::MemoryFormat: return constant(Value(static_cast<int64_t>(value.to_memory_format())));
    case Tag::Generator: return constant(Value());
    default: return constant(value);
  }
}

/// A value of a program: containers are built, objects looked up.
Variable* Trace::structure(const Value& value) {
  auto parts_of = [&](const auto& items) {
    Variables parts;
    for (const Value& v : items) parts.push_back(structure(v));
    return parts;
  };
  if (value.is_list()) {
    Variables parts = parts_of(value.list());
    std::vector<TypePtr> types;
    for (Variable* v : parts) types.push_back(v->type());
    return insert("prim::TupleConstruct", std::move(parts), tuple_type(std::move(types)))->output();
  }
  if (value.is_object()) {
    if (auto found = objects_.find(value.object()); found != objects_.end()) return found->second.second;
    if (auto found = part_of_.find(value.object()); found != part_of_.end()) return attribute({found->second});
  }
  if (auto* list = object_as<ListObject>(value))
    return insert(kinds().list_construct, parts_of(list->items), list_type(list->element))->output();
  if (auto* dict = object_as<DictObject>(value)) {
    Variables parts;
    for (auto& [k, v] : dict->items) {
      parts.push_back(structure(k));
      parts.push_back(structure(v));
    }
    return insert("prim::DictConstruct", std::move(parts), dict_type(dict->key, dict->value))->output();
  }
  check(!object_as<Instance>(value), "an object of ", type_of(value)->text(),
        " reaches the trace from outside; it has to be part of the traced module");
  return variable(value);
}

// ---- calls ----

namespace {

bool has_symbols(const Value& value) {
  if (value.is_sym_int()) return true;
  bool any = false;
  if (value.is_int_list())
    for (SymInt s : value.int_list()) any |= s.is_symbolic();
  if (value.is_list())
    for (const Value& v : value.list()) any |= has_symbols(v);
  return any;
}

/// Symbols of the trace become the numbers that this run has.
Value concrete(const Value& value) {
  if (value.is_sym_int()) return Value(value.to_sym_int().hint());
  if (value.is_int_list()) {
    std::vector<SymInt> out;
    for (SymInt s : value.int_list()) out.emplace_back(s.hint());
    return Value(std::move(out));
  }
  if (!value.is_list()) return value;
  std::vector<Value> out;
  for (const Value& v : value.list()) out.push_back(concrete(v));
  return Value(std::move(out));
}

/// Another value for a flag, until the scope ends.
struct Restore {
  Restore(bool& flag, bool value) : flag(flag), before(std::exchange(flag, value)) {}
  ~Restore() { flag = before; }
  bool& flag;
  const bool before;
};

/// While this lives, all nodes that are inserted have one place.
struct AtPlace {
  explicit AtPlace(SharedText& place) : place(place) {
    if (g_front_end.source) place = g_front_end.source();
  }
  ~AtPlace() {
    place.clear();
    if (g_front_end.done) g_front_end.done();
  }
  SharedText& place;
};

bool returns_tensors(const Operator& op) {
  for (const SchemaReturn& r : op.schema().returns)
    if (r.type.base == SchemaType::Base::Tensor) return true;
  return false;
}

/// Calls that are recorded as another: what writes no data but cuts the history off is its functional form.
const Operator& recorded_form(const Operator& op, bool force_outplace) {
  if (op.has_tag(Tag::LiftsData)) return *op.functional_form();
  if (op.name() == "aten::detach_") return get_operator("aten::detach");
  if (force_outplace && op.is_inplace() && op.functional()) return *op.functional();
  return op;
}

}  // namespace

/// Of the floats that were read off tensors, those that are one argument of this call; null: the argument is none.
Variable* Trace::take_pending(const Value& argument, const Operator& op, const Value* frame) {
  if (!argument.is_double()) return nullptr;
  for (const auto& [number, variable] : pending_) {
    if (argument.to_double() != number) continue;
    size_t count = 0;
    for (size_t i = 0; i < op.argument_count(); ++i) count += frame[i].is_double() && frame[i].to_double() == number;
    if (count == 1) return variable;
    trace_warning(
        "a number that was read off a tensor cannot be told from another argument; it is a constant of the trace");
  }
  return nullptr;
}

Variables Trace::inputs_of(const Operator& op, const Operator& form, const Value* frame) {
  Variables inputs;
  inputs.reserve(form.argument_count());
  for (size_t i = 0; i < form.argument_count(); ++i) {
    const SchemaArgument& argument = form.schema().arguments[i];
    int from = &form == &op ? static_cast<int>(i) : op.schema().find(argument.name);
    const Value& v = from >= 0 ? frame[from] : argument.default_value.value();
    if (Variable* known = pending_.empty() ? nullptr : take_pending(v, op, frame)) inputs.push_back(known);
    else if (op.has_tag(Tag::LiftsData) && v.is_tensor() && !knows(v.tensor_ref()))
      inputs.push_back(constant(Value(v.tensor_ref().detach()), tensor_type_of(v.tensor_ref())));
    else inputs.push_back(variable(v, &argument.type));
  }
  return inputs;
}

void Trace::call(const Operator& op, Value* frame) {
  std::optional<ExcludeKeys> cast;
  if (autocast_ahead(op, frame)) cast.emplace(DispatchKey::Autocast);
  if (call_convolution(*this, op, frame)) return;
  bool tensors = returns_tensors(op);
  bool recorded = on && (tensors || (op.is_mutable() && op.return_count() == 0));
  const Operator& form = recorded_form(op, force_outplace_);
  std::optional<AtPlace> place;
  Variables inputs;
  Value first = op.argument_count() > 0 ? frame[0] : Value();
  if (recorded) {
    place.emplace(place_);
    inputs = inputs_of(op, form, frame);
  }
  if (recorded && tensors && force_outplace_ && op.is_inplace() && first.tensor_ref().is_view())
    trace_warning(
        concat("There are 2 live references to the data region being modified when tracing in-place operator ",
               op.schema().name,
               ". This might cause the trace to be incorrect, because all other views that also reference this "
               "data will not reflect this change in the trace! On the other hand, if all other views use the "
               "same memory chunk, but are disjoint (e.g. are outputs of torch.split), this might still be "
               "safe."));
  pending_.clear();
  given_numbers_.clear();
  for (size_t i = 0; i < op.argument_count(); ++i)
    if (has_symbols(frame[i])) frame[i] = concrete(frame[i]);
  {
    transform::WithoutLevel off;
    Restore numbers(on, false);  // what a handler asks of tensors is no part of the program
    op.call(frame);
    if (recorded && op.has_tag(Tag::LiftsData)) frame[0] = Value(frame[0].tensor_ref().clone());
  }
  if (recorded && op.has_tag(Tag::LiftsData)) record_literal(inputs[0], frame[0].tensor_ref());
  else if (recorded) record(form, std::move(inputs), first, frame);
  if (recorded && &form != &op && op.is_inplace()) know(first.tensor_ref(), tensors_[frame[0].tensor_impl()].variable);
}

/// `torch.tensor(...)` as PyTorch's traces have it: the literal, moved to its device and cut off.
void Trace::record_literal(Variable* literal, const Tensor& result) {
  static const Operator &to = get_operator("aten::to.device"), &detach = get_operator("aten::detach");
  Variables inputs{literal,
                   constant(Value(result.device())),
                   constant(Value(number_of(result.dtype()))),
                   constant(Value(false)),
                   constant(Value(false)),
                   constant(Value())};
  Node* moved = insert(kind_of(to), std::move(inputs), type_of_tensor(result));
  moved->op = &to;
  Node* cut = insert(kind_of(detach), {moved->output()}, type_of_tensor(result));
  cut->op = &detach;
  know(result, cut->output());
}

/// `first` is the first argument: what an operator in place gives.
void Trace::record(const Operator& op, Variables inputs, const Value& first, Value* results) {
  Node* node = insert(kind_of(op), std::move(inputs));
  node->op = &op;
  for (size_t i = 0; i < op.return_count(); ++i) {
    if (results[i].is_tensor()) {
      know(results[i].tensor_ref(), node->add_output(type_of_tensor(results[i].tensor_ref())));
      continue;
    }
    Variable* v = node->add_output(type_of_schema(op.schema().returns[i].type));
    if (!results[i].is_tensor_list()) continue;
    Node* unpack = insert(kinds().list_unpack, {v});
    for (const Tensor& t : results[i].tensor_list()) know(t, unpack->add_output(type_of_tensor(t)));
  }
  if (op.is_inplace() && op.return_count() == 1 && first.is_tensor()) know(first.tensor_ref(), node->output());
}

/// A number that the program asks of a tensor, as a tensor.
Tensor Trace::number(const Kind* kind, Variables inputs, SymInt value) {
  Tensor out;
  {
    transform::WithoutLevel off;
    out = full({}, Scalar(value.guard_int()), {.dtype = DType::Int64});
  }
  static const TypePtr type = [&] {
    auto plain = std::make_shared<Type>(*tensor_type_of(out));
    plain->tensor.requires_grad.reset();
    return plain;
  }();
  Variable* asked = insert(kind, std::move(inputs), simple_type(TypeKind::Int))->output();
  Node* made = insert(kinds().number, {asked}, type);
  made->source.clear();
  know(out, made->output());
  return out;
}

Tensor Trace::size(const Tensor& tensor, int64_t dim) {
  AtPlace place(place_);
  Variable* of = tensor_variable(tensor);
  return number(kinds().size, {of, constant(Value(dim))}, tensor.sym_size(dim));
}

Tensor Trace::numel(const Tensor& tensor) {
  AtPlace place(place_);
  return number(kinds().numel, {tensor_variable(tensor)}, tensor.sym_numel());
}

}  // namespace umbra::jit
