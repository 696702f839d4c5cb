#include "umbra/jit/trace.h"

#include <algorithm>

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

TraceScope::TraceScope(Trace& trace)
    : before_(std::exchange(g_active, &trace)), level_(IntrusivePtr<transform::Level>(&trace)) {}
TraceScope::~TraceScope() { g_active = before_; }

Trace::Trace(bool force_outplace)
    : graph_(std::make_shared<Graph>()), force_outplace_(force_outplace), env_(make_counted<sym::ShapeEnv>()) {
  scopes_.push_back({0, &graph_->block(), nullptr, {}});
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

Node* Trace::insert(std::string_view kind, std::vector<Variable*> inputs, std::vector<TypePtr> outputs) {
  Node* node = graph_->insert(kind, std::move(inputs), std::move(outputs));
  if (scopes_.size() > 1) node->scope = parts_[static_cast<size_t>(scopes_.back().part)].scope;
  node->source = place_.empty() && g_front_end.source ? g_front_end.source() : place_;
  return node;
}

Variable* Trace::constant(const Value& value, TypePtr type) {
  Variable* v = insert("prim::Constant", {}, {type ? type : type_of(value)})->output();
  if (!value.is_none()) v->node()->attributes.emplace_back("value", value);
  else v->node()->source.clear();
  return v;
}

void Trace::know(const Tensor& tensor, Variable* v) { tensors_[tensor.impl()] = {tensor, v}; }

// ---- inputs and modules ----

void Trace::set_self(const Value& module) {
  auto& instance = expect_object<Instance>(module, "a module");
  scopes_[0].self = graph_->add_input("self", class_type(instance.cls));
  find_attributes(module, -1, "", "__module");
}

/// Where the tensors of a module and of those inside it are found. The first path to a tensor is the one that counts.
void Trace::find_attributes(const Value& module, int parent, const std::string& name, const std::string& path) {
  auto& instance = expect_object<Instance>(module, "a module");
  int part = static_cast<int>(parts_.size());
  if (!part_of_.try_emplace(module.object(), part).second) return;
  parts_.push_back({module, parent, name, path});
  for (size_t i = 0; i < instance.cls->attributes.size(); ++i) {
    const Attribute& a = instance.cls->attributes[i];
    const Value& value = instance.slots[i];
    if (value.is_tensor()) paths_.try_emplace(value.tensor_impl(), Path{part, static_cast<int>(i)});
    else if (auto* inner = object_as<Instance>(value); inner && inner->cls->is_module)
      find_attributes(value, part, a.name, path + "." + a.name);
  }
}

bool Trace::is_inside(int part, int outer) const {
  while (part > outer) part = parts_[static_cast<size_t>(part)].parent;
  return part == outer;
}

namespace {
TypePtr traced_type(const Value& value) {
  if (value.is_tensor()) return tensor_type_of(value.tensor_ref());
  if (value.is_list()) {
    std::vector<TypePtr> parts;
    for (const Value& v : value.list()) parts.push_back(traced_type(v));
    return tuple_type(std::move(parts));
  }
  return type_of(value);
}
}  // namespace

void Trace::add_input(const std::string& name, const Value& example) {
  take_apart(example, graph_->add_input(name, traced_type(example)));
}

void Trace::take_apart(const Value& value, Variable* from) {
  if (value.is_tensor()) return know(value.tensor_ref(), from);
  if (value.is_list()) {
    std::vector<TypePtr> types = from->type()->elements;
    Node* unpack = insert("prim::TupleUnpack", {from}, types);
    for (size_t i = 0; i < types.size(); ++i) take_apart(value.list()[i], unpack->output(i));
    return;
  }
  if (auto* list = object_as<ListObject>(value)) {
    Node* unpack = insert("prim::ListUnpack", {from}, {});
    for (const Value& item : list->items) take_apart(item, unpack->add_output(traced_type(item)));
    return;
  }
  if (auto* dict = object_as<DictObject>(value)) {
    for (auto& [key, item] : dict->items)
      take_apart(item, insert("aten::__getitem__", {from, constant(key)}, {traced_type(item)})->output());
    return;
  }
  if (value.is_object()) objects_[value.object()] = {value, from};
}

void Trace::enter_module(const Value& module) {
  auto found = part_of_.find(module.object());
  check(found != part_of_.end(), "a module is called that is not part of the traced one");
  // Each call reads the module anew, as PyTorch's traces do.
  Path path{found->second};
  Variable* read = attribute(path);
  for (Scope& scope : scopes_) scope.attributes.erase(path.key());
  Node* node = insert("prim::TracedModuleForward", {read}, {});
  Block* block = node->add_block();
  Variable* self = block->add_input(class_type(expect_object<Instance>(module, "a module").cls), "self");
  scopes_.push_back({path.part, block, self, {}});
  graph_->set_current(block);
}

void Trace::leave_module() {
  check(scopes_.size() > 1, "no module is entered");
  scopes_.pop_back();
  graph_->set_current(scopes_.back().block);
}

/// An attribute is read at the top of the block of the innermost module that holds it.
Variable* Trace::attribute(Path path) {
  for (size_t i = scopes_.size(); i-- > 0;) {
    Scope& scope = scopes_[i];
    if (!is_inside(path.part, scope.part)) continue;
    return path.part == scope.part && path.attribute < 0 ? scope.self : attribute_in(scope, path);
  }
  fail<AssertionError>("a trace without a root");
}

Variable* Trace::attribute_in(Scope& scope, Path path) {
  auto [found, fresh] = scope.attributes.try_emplace(path.key(), nullptr);
  if (!fresh) return found->second;
  std::vector<const std::string*> names;  // innermost first
  auto part_at = [&](int i) -> const Part& { return parts_[static_cast<size_t>(i)]; };
  if (path.attribute >= 0)
    names.push_back(&expect_object<Instance>(part_at(path.part).module, "a module")
                         .cls->attributes[static_cast<size_t>(path.attribute)]
                         .name);
  for (int part = path.part; part != scope.part; part = part_at(part).parent) names.push_back(&part_at(part).name);
  Node* first = scope.block->nodes().empty() ? nullptr : scope.block->nodes().front().get();
  Block* before = graph_->current();
  Variable* v = scope.self;
  graph_->set_current(scope.block);
  graph_->set_before(first);
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    const ClassPtr& cls = v->type()->cls;
    int index = cls->find(**name);
    check<AssertionError>(index >= 0, "class ", cls->name, " has no attribute ", **name);
    Node* node = graph_->insert("prim::GetAttr", {v}, {cls->attributes[static_cast<size_t>(index)].type});
    node->set_attribute("name", Value(**name));
    v = node->output();
    v->set_name(std::isdigit(static_cast<unsigned char>((*name)->front())) ? "_" + **name : **name);
  }
  graph_->set_current(before);
  return found->second = v;
}

// ---- values of arguments ----

Variable* Trace::tensor_variable(const Tensor& tensor) {
  if (auto found = tensors_.find(tensor.impl()); found != tensors_.end()) {
    Variable* v = found->second.variable;
    if (v->name().empty() && g_front_end.name)
      if (std::string name = g_front_end.name(tensor); !name.empty()) v->set_name(name);
    return v;
  }
  if (auto found = paths_.find(tensor.impl()); found != paths_.end()) return attribute(found->second);
  check(
      !tensor.requires_grad(),
      "Cannot insert a Tensor that requires grad as a constant. Consider making it a parameter or input, or detaching "
      "the gradient\nTensor:\n",
      to_string(Value(tensor)));
  return constant(Value(tensor), tensor_type_of(tensor));
}

SymInt Trace::integer(const Tensor& tensor, const char* kind) {
  int64_t value = 0;
  {
    transform::WithoutLevel off;
    value = tensor.item().to_int();
  }
  TypePtr type = simple_type(kind == std::string_view("aten::Int") ? TypeKind::Int : TypeKind::Number);
  Variable* v = insert(kind, {tensor_variable(tensor)}, {type})->output();
  v->node()->source.clear();
  auto known = knows(tensor) ? numbers_.find(tensor.impl()) : numbers_.end();
  if (known != numbers_.end() && known->second.hint() == value &&
      std::ranges::find(given_numbers_, known->second.raw()) == given_numbers_.end()) {
    symbols_[known->second.raw()] = v;  // the last reading stands for the number
    given_numbers_.push_back(known->second.raw());
    return known->second;
  }
  sym::SymbolOptions options{.policy = sym::Policy::Dynamic, .size = false, .keep_zero_one = true};
  SymInt s = env_->create_symbol(value, concat("trace", symbol_count_++), options);
  if (!s.is_symbolic()) return s;
  symbols_[s.raw()] = v;
  given_numbers_.push_back(s.raw());
  if (knows(tensor)) numbers_.insert_or_assign(tensor.impl(), s);
  return s;
}

Scalar Trace::scalar(const Tensor& tensor) {
  if (is_integral(tensor.dtype(), false)) return Scalar(integer(tensor, "aten::ScalarImplicit"));
  Scalar value;
  {
    transform::WithoutLevel off;
    value = tensor.item();
  }
  if (!value.is_floating()) {
    trace_warning("a truth value or a complex number that was read off a tensor is a constant of the trace");
    return value;
  }
  Node* node = insert("aten::ScalarImplicit", {tensor_variable(tensor)}, {simple_type(TypeKind::Number)});
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
  auto list = [&](auto&& items, TypePtr element) {
    std::vector<Variable*> parts;
    for (size_t i = 0; i < items.size(); ++i) parts.push_back(variable(Value(items[i])));
    Node* node = insert("prim::ListConstruct", std::move(parts), {list_type(std::move(element))});
    node->source.clear();
    return node->output();
  };
  switch (value.tag()) {
    case Tag::Tensor: return tensor_variable(value.tensor_ref());
    case Tag::SymInt: return symbol(value.to_sym_int());
    case Tag::IntList: return list(value.int_list(), simple_type(TypeKind::Int));
    case Tag::DoubleList: return list(value.double_list(), simple_type(TypeKind::Float));
    case Tag::BoolList: {
      std::vector<Value> items;
      for (bool b : value.bool_list()) items.emplace_back(b);
      return list(items, simple_type(TypeKind::Bool));
    }
    case Tag::TensorList: {
      bool optional = type && type->element_optional;
      return list(value.tensor_list(), optional ? optional_type(tensor_type()) : tensor_type());
    }
    case Tag::List: return list(value.list(), type ? type_of_schema({.base = type->base}) : simple_type(TypeKind::Any));
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
    std::vector<Variable*> parts;
    for (const Value& v : items) parts.push_back(structure(v));
    return parts;
  };
  if (value.is_list()) {
    std::vector<Variable*> parts = parts_of(value.list());
    std::vector<TypePtr> types;
    for (Variable* v : parts) types.push_back(v->type());
    return insert("prim::TupleConstruct", std::move(parts), {tuple_type(std::move(types))})->output();
  }
  if (value.is_object()) {
    if (auto found = objects_.find(value.object()); found != objects_.end()) return found->second.second;
    if (auto found = part_of_.find(value.object()); found != part_of_.end()) return attribute({found->second});
  }
  if (auto* list = object_as<ListObject>(value))
    return insert("prim::ListConstruct", parts_of(list->items), {list_type(list->element)})->output();
  if (auto* dict = object_as<DictObject>(value)) {
    std::vector<Variable*> parts;
    for (auto& [k, v] : dict->items) {
      parts.push_back(structure(k));
      parts.push_back(structure(v));
    }
    return insert("prim::DictConstruct", std::move(parts), {dict_type(dict->key, dict->value)})->output();
  }
  check(!object_as<Instance>(value), "an object of ", type_of(value)->text(),
        " reaches the trace from outside; it has to be part of the traced module");
  return variable(value);
}

// ---- calls ----

namespace {

/// Symbols of the trace become the numbers that this run has.
Value concrete(const Value& value) {
  if (value.is_sym_int()) return Value(value.to_sym_int().hint());
  if (value.is_int_list()) {
    bool any = false;
    for (SymInt s : value.int_list()) any |= s.is_symbolic();
    if (!any) return value;
    std::vector<SymInt> out;
    for (SymInt s : value.int_list()) out.emplace_back(s.hint());
    return Value(std::move(out));
  }
  if (value.is_list()) {
    std::vector<Value> out;
    for (const Value& v : value.list()) out.push_back(concrete(v));
    return Value(std::move(out));
  }
  return value;
}

/// While this lives, all nodes that are inserted have one place.
struct AtPlace {
  explicit AtPlace(SharedText& place) : place(place) {
    if (g_front_end.source) place = g_front_end.source();
  }
  ~AtPlace() { place.clear(); }
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

void Trace::call(const Operator& op, Value* frame) {
  std::vector<Value> arguments;
  for (size_t i = 0; i < op.argument_count(); ++i) arguments.push_back(frame[i]);
  auto pending = std::exchange(pending_, {});
  std::erase_if(pending, [&](const auto& p) {
    size_t count = 0;
    for (const Value& v : arguments) count += v.is_double() && v.to_double() == p.first;
    if (count > 1)
      trace_warning(
          "a number that was read off a tensor cannot be told from another argument; it is a constant of the trace");
    return count != 1;
  });
  auto pending_for = [&](const Value& v) -> Variable* {
    for (const auto& p : pending)
      if (v.is_double() && v.to_double() == p.first) return p.second;
    return nullptr;
  };
  bool recorded = on && returns_tensors(op);
  bool writes = op.is_mutable() && op.return_count() == 0;
  std::vector<Variable*> inputs;
  const Operator& form = recorded_form(op, force_outplace_);
  std::optional<AtPlace> place;
  if (recorded || (on && writes)) place.emplace(place_);
  if (recorded || (on && writes)) {
    inputs.reserve(form.argument_count());
    for (size_t i = 0; i < form.argument_count(); ++i) {
      int from = &form == &op ? static_cast<int>(i) : op.schema().find(form.schema().arguments[i].name);
      const Value& v =
          from >= 0 ? arguments[static_cast<size_t>(from)] : form.schema().arguments[i].default_value.value();
      if (Variable* known = pending_for(v)) {
        inputs.push_back(known);
        continue;
      }
      inputs.push_back(op.has_tag(Tag::LiftsData) && v.is_tensor() && !knows(v.tensor_ref())
                           ? constant(Value(v.tensor_ref().detach()), tensor_type_of(v.tensor_ref()))
                           : variable(v, &form.schema().arguments[i].type));
    }
  }
  if (recorded && force_outplace_ && op.is_inplace() && arguments[0].tensor_ref().is_view())
    trace_warning(
        concat("There are 2 live references to the data region being modified when tracing in-place operator ",
               op.schema().name,
               ". This might cause the trace to be incorrect, because all other views that also reference this "
               "data will not reflect this change in the trace! On the other hand, if all other views use the "
               "same memory chunk, but are disjoint (e.g. are outputs of torch.split), this might still be "
               "safe."));
  given_numbers_.clear();
  for (size_t i = 0; i < op.argument_count(); ++i) frame[i] = concrete(arguments[i]);
  {
    transform::WithoutLevel off;
    op.call(frame);
    if (recorded && op.has_tag(Tag::LiftsData)) frame[0] = Value(frame[0].tensor_ref().clone());
  }
  if (recorded || (on && writes)) record(form, std::move(inputs), arguments, frame);
  if (recorded && &form != &op && op.is_inplace())
    know(arguments[0].tensor_ref(), tensors_[frame[0].tensor_impl()].variable);
}

void Trace::record(const Operator& op, std::vector<Variable*> inputs, const std::vector<Value>& arguments,
                   Value* results) {
  Node* node = insert(op.schema().space + "::" + op.schema().name, std::move(inputs), {});
  node->op = &op;
  for (size_t i = 0; i < op.return_count(); ++i) {
    Variable* v = node->add_output(type_of_schema(op.schema().returns[i].type));
    if (results[i].is_tensor()) {
      v->set_type(type_of_tensor(results[i].tensor_ref()));
      know(results[i].tensor_ref(), v);
    } else if (results[i].is_tensor_list()) {
      Node* unpack = insert("prim::ListUnpack", {v}, {});
      for (const Tensor& t : results[i].tensor_list()) know(t, unpack->add_output(type_of_tensor(t)));
    }
  }
  if (op.is_inplace() && op.return_count() == 1 && arguments[0].is_tensor())
    know(arguments[0].tensor_ref(), node->output());
}

void Trace::number(Node* node, Variable*& v, const Tensor& value) {
  static const TypePtr type = [&] {
    auto plain = std::make_shared<Type>(*tensor_type_of(value));
    plain->tensor.requires_grad.reset();
    return plain;
  }();
  Node* made = insert("prim::NumToTensor", {node->output()}, {type});
  made->source.clear();
  v = made->output();
}

Tensor Trace::size(const Tensor& tensor, int64_t dim) {
  AtPlace place(place_);
  Tensor out;
  {
    transform::WithoutLevel off;
    out = full({}, Scalar(tensor.sym_size(dim).guard_int()), {.dtype = DType::Int64});
  }
  Variable* v = nullptr;
  Variable* of = tensor_variable(tensor);
  number(insert("aten::size", {of, constant(Value(dim))}, {simple_type(TypeKind::Int)}), v, out);
  know(out, v);
  return out;
}

Tensor Trace::numel(const Tensor& tensor) {
  AtPlace place(place_);
  Tensor out;
  {
    transform::WithoutLevel off;
    out = full({}, Scalar(tensor.sym_numel().guard_int()), {.dtype = DType::Int64});
  }
  Variable* v = nullptr;
  number(insert("aten::numel", {tensor_variable(tensor)}, {simple_type(TypeKind::Int)}), v, out);
  know(out, v);
  return out;
}

/// What a call gave: its tensors are known by the parts of `v`.
void Trace::give(const Value& value, Variable* v) {
  if (value.is_tensor()) v->set_type(tensor_type_of(value.tensor_ref()));
  if (value.is_tensor() || value.is_list() || value.is_object()) take_apart(value, v);
}

Value Trace::call_function(const FunctionPtr& function, std::vector<Value> arguments) {
  for (size_t i = arguments.size(); i < function->parameters.size(); ++i)
    arguments.push_back(function->parameters[i].default_value.value());
  Variable* callee = insert("prim::Constant", {}, {simple_type(TypeKind::Function)})->output();
  callee->node()->callee = function;
  callee->node()->set_attribute("name", Value(function->name.substr(function->name.rfind('.') + 1)));
  std::vector<Variable*> inputs{callee};
  for (const Value& v : arguments) inputs.push_back(structure(v));
  Value result;
  {
    transform::WithoutLevel off;
    Trace* before = std::exchange(g_active, nullptr);
    struct Restore {
      Trace* t;
      ~Restore() { g_active = t; }
    } restore{before};
    result = run(*function, std::move(arguments));
  }
  function->ensure();
  give(result, insert("prim::CallFunction", std::move(inputs), {function->result})->output());
  return result;
}

Value Trace::call_method(const Value& self, const std::string& method, std::vector<Value> arguments) {
  auto& instance = expect_object<Instance>(self, "an object");
  FunctionPtr function = instance.cls->method(method);
  check(function != nullptr, "'", instance.cls->name, "' has no method '", method, "'");
  std::vector<Variable*> inputs{structure(self)};
  for (const Value& v : arguments) inputs.push_back(structure(v));
  for (size_t i = arguments.size() + 1; i < function->parameters.size(); ++i) {
    arguments.push_back(function->parameters[i].default_value.value());
    inputs.push_back(structure(arguments.back()));
  }
  arguments.insert(arguments.begin(), self);
  Value result;
  {
    transform::WithoutLevel off;
    Trace* before = std::exchange(g_active, nullptr);
    struct Restore {
      Trace* t;
      ~Restore() { g_active = t; }
    } restore{before};
    result = run(*function, std::move(arguments));
  }
  Node* node = insert("prim::CallMethod", std::move(inputs), {function->result});
  node->set_attribute("name", Value(method));
  give(result, node->output());
  return result;
}

void Trace::record_python(const std::string& name, const Value& function, const std::vector<Value>& arguments,
                          const Value& result, bool inplace) {
  std::vector<Variable*> inputs;
  for (const Value& v : arguments)
    if (v.is_tensor()) inputs.push_back(tensor_variable(v.tensor_ref()));
  Node* node = insert("prim::PythonOp", std::move(inputs), {});
  node->set_attribute("name", Value(name));
  node->set_attribute("inplace", Value(static_cast<int64_t>(inplace)));
  node->set_attribute("function", function);
  if (result.is_tensor()) give(result, node->add_output(tensor_type()));
  else if (result.is_list())
    for (const Value& v : result.list()) give(v, node->add_output(traced_type(v)));
}

}  // namespace umbra::jit
