// Operators: which overload is meant, and what its arguments become.
#include <algorithm>

#include "jit/builtin_rules.h"
#include "jit/emitter.h"

namespace umbra::jit {

namespace {

std::vector<TypePtr> types_of(const std::vector<Argument>& arguments) {
  std::vector<TypePtr> out;
  for (const Argument& a : arguments) out.push_back(a.value->type());
  return out;
}

bool has_keywords(const std::vector<Argument>& arguments) {
  for (const Argument& a : arguments)
    if (!a.name.empty()) return true;
  return false;
}

std::string not_of_type(const TypePtr& wanted, const std::string& name, const TypePtr& given) {
  return concat("Expected a value of type '", wanted->annotation(), "' for argument '", name,
                "' but instead found type '", given->annotation(), "'.");
}

}  // namespace

// ---- the registry's ----

/// `x.view(2, 3)`: the numbers (or tensors) from the k-th argument on, where they all belong to one list.
Variable* Emitter::spelt_out(const Tree& at, const std::vector<Argument>& arguments, size_t& k) {
  size_t last = k;
  TypePtr element = without_details(arguments[k].value->type());
  while (last < arguments.size() && arguments[last].name.empty() && arguments[last].value->type()->is(element->kind))
    ++last;
  if (last != arguments.size() && arguments[last].name.empty()) return nullptr;
  Variables parts;
  for (size_t j = k; j < last; ++j) parts.push_back(arguments[j].value);
  k = last - 1;
  return one(at, "prim::ListConstruct", parts, list_type(element));
}

/// An argument as an operator takes it, or null.
Variable* Emitter::operand(const Tree& at, Variable* v, const SchemaType& type, size_t place, bool convert_values) {
  const TypePtr& given = v->type();
  TypePtr wanted = type_of_schema(type);
  TypePtr inner = wanted->is(TypeKind::Optional) ? wanted->element() : wanted;
  if (is_list(inner) && is_list(given) && is_subtype(given->element(), inner->element())) return v;
  if (type.list && is_subtype(given, inner->element()) &&
      (type.list_size > 0 || (place <= 1 && is_int(given) && convert_values))) {
    size_t times = type.list_size > 0 ? static_cast<size_t>(type.list_size) : 1;
    return one(at, "prim::ListConstruct", Variables(times, v), inner);
  }
  if (type.base == SchemaType::Base::Bool && !is_subtype(given, wanted)) return nullptr;
  return convert(at, v, wanted, convert_values);
}

/// The default of an operator's argument, as programs write it.
Variable* Emitter::default_operand(const Tree& at, const SchemaArgument& argument) {
  const Value& d = *argument.default_value;
  TypePtr type = type_of_schema(argument.type);
  TypePtr inner = type->is(TypeKind::Optional) ? type->element() : type;
  Variables parts;
  switch (d.tag()) {
    case Value::Tag::IntList:
      for (SymInt s : d.int_list()) parts.push_back(constant(Value(s)));
      return one(at, "prim::ListConstruct", parts, inner);
    case Value::Tag::DoubleList:
      for (double x : d.double_list()) parts.push_back(constant(Value(x)));
      return one(at, "prim::ListConstruct", parts, inner);
    case Value::Tag::BoolList:
      for (bool b : d.bool_list()) parts.push_back(constant(Value(b)));
      return one(at, "prim::ListConstruct", parts, inner);
    case Value::Tag::List:
    case Value::Tag::TensorList: return one(at, "prim::ListConstruct", parts, inner);
    case Value::Tag::DType: return constant(Value(number_of(d.to_dtype())));
    case Value::Tag::MemoryFormat: return constant(Value(static_cast<int64_t>(d.to_memory_format())));
    case Value::Tag::Layout: return constant(Value(static_cast<int64_t>(d.to_layout())));
    default: break;
  }
  bool floating = d.is_int() && argument.type.base == SchemaType::Base::Float;
  return constant(floating ? Value(d.to_double()) : d);
}

/// The operands of a call, in the schema's order; empty with a reason where the operator does not take the arguments.
Variables Emitter::operands(const Tree& at, const Operator& op, const std::vector<Argument>& arguments,
                            bool convert_values, std::string& why) {
  const auto& schema = op.schema().arguments;
  Variables inputs(schema.size());
  size_t next = 0;
  for (size_t k = 0; k < arguments.size(); ++k) {
    const Argument& a = arguments[k];
    size_t place = next;
    if (a.name.empty()) {
      if (next >= schema.size() || schema[next].keyword_only) {
        size_t most = 0;
        while (most < schema.size() && !schema[most].keyword_only) ++most;
        why = concat("Expected at most ", most, " arguments but found ", arguments.size(), " positional arguments.");
        return {};
      }
      ++next;
    } else {
      int found = op.schema().find(a.name);
      if (found < 0 && a.name == "input") found = op.schema().find("self");
      if (found < 0) return why = concat("Keyword argument ", a.name, " unknown."), Variables{};
      place = static_cast<size_t>(found);
    }
    if (inputs[place]) return why = concat("Argument ", a.name, " specified twice."), Variables{};
    const SchemaType& type = schema[place].type;
    bool ints = type.list && (type.base == SchemaType::Base::Int || type.base == SchemaType::Base::SymInt);
    bool is_last = place + 1 == schema.size() || schema[place + 1].keyword_only;
    bool several = k + 1 < arguments.size() && place <= 1;
    bool tensors = type.list && type.base == SchemaType::Base::Tensor && is_tensor(a.value->type()) && is_last;
    if (type.list_size <= 0 && a.name.empty() && (tensors || (ints && is_int(a.value->type()) && (is_last || several))))
      inputs[place] = spelt_out(at, arguments, k);
    if (!inputs[place]) inputs[place] = operand(at, a.value, type, place, convert_values);
    if (!inputs[place]) {
      why = not_of_type(type_of_schema(type), schema[place].name, a.value->type());
      return {};
    }
  }
  for (size_t i = 0; i < schema.size(); ++i) {
    if (inputs[i]) continue;
    if (!schema[i].default_value) return why = concat("Argument ", schema[i].name, " not provided."), Variables{};
    inputs[i] = default_operand(at, schema[i]);
  }
  return inputs;
}

namespace {

/// Operators that did something else in archives before a version (`aten::gelu` only has more arguments since).
void refuse_older_meaning(const Tree& at, const Operator& op, std::optional<int64_t> version) {
  static const std::map<std::string, int64_t> since = {
      {"div", 4}, {"div_", 4}, {"full", 5}, {"linspace", 8}, {"logspace", 9}};
  auto found = since.find(op.schema().name);
  if (version && op.schema().space == "aten" && found != since.end() && *version < found->second)
    fail<NotImplementedError>("the archive is of version ", *version, ", in which ", op.name(),
                              " did something else; it is not in Umbra. Load it with PyTorch and save it again:\n",
                              shown_range(at).pointed());
}

}  // namespace

SugaredPtr Emitter::try_operator(const Tree& at, const Operator& op, const std::vector<Argument>& arguments,
                                 bool convert_values, std::string& why) {
  Variables inputs = operands(at, op, arguments, convert_values, why);
  if (inputs.empty() && !why.empty()) return nullptr;
  refuse_older_meaning(at, op, resolver_.version());
  Node* node = insert(at, op.schema().space + "::" + op.schema().name, inputs, {});
  node->op = &op;
  std::vector<SugaredPtr> results;
  std::vector<std::string> fields;
  std::vector<TypePtr> types;
  for (const SchemaReturn& r : op.schema().returns) {
    types.push_back(type_of_schema(r.type));
    results.push_back(sugar(node->add_output(types.back())));
    if (!r.name.empty()) fields.push_back(r.name);
  }
  if (results.size() == 1) return results[0];
  if (results.empty()) return sugar(constant(Value()));
  auto s = std::make_shared<Sugared>();
  s->kind = Sugared::Kind::Values;
  s->parts = results;
  if (fields.size() == results.size()) s->type = named_tuple_type("", fields, types);
  return s;
}

namespace {
/// The overloads of an operator, the plain one first: `x.view(4)` is a size, although 4 is a dtype's number too.
std::vector<const Operator*> in_order(const std::string& name) {
  std::vector<const Operator*> overloads = operator_overloads(name);
  std::ranges::stable_partition(overloads, [](const Operator* op) { return op->schema().overload.empty(); });
  return overloads;
}
}  // namespace

/// The first overload that takes the arguments, without conversions if there is one; what failed is told in `reasons`.
SugaredPtr Emitter::by_registry(const Tree& at, const std::string& name, const std::vector<Argument>& arguments,
                                std::string& reasons) {
  size_t before = graph_.current()->nodes().size();
  for (bool convert_values : {false, true}) {
    reasons.clear();
    for (const Operator* op : in_order(name)) {
      std::string why;
      if (SugaredPtr result = try_operator(at, *op, arguments, convert_values, why)) return result;
      reasons += "\n  \n  " + to_string(op->schema()) + ":\n  " + why;
      while (graph_.current()->nodes().size() > before)
        graph_.erase(graph_.current()->nodes().back().get());  // what a vain attempt left
    }
  }
  return nullptr;
}

// ---- forms that Python has and schemas have not ----

/// Objects say themselves what operators do with them.
SugaredPtr Emitter::by_magic(const Tree& at, const std::string& name, std::vector<Argument> arguments) {
  static const std::map<std::string, std::string> magic = {
      {"aten::add", "__add__"},       {"aten::sub", "__sub__"},
      {"aten::mul", "__mul__"},       {"aten::div", "__truediv__"},
      {"aten::eq", "__eq__"},         {"aten::ne", "__ne__"},
      {"aten::lt", "__lt__"},         {"aten::gt", "__gt__"},
      {"aten::le", "__le__"},         {"aten::ge", "__ge__"},
      {"aten::len", "__len__"},       {"aten::__contains__", "__contains__"},
      {"aten::str", "__str__"},       {"aten::neg", "__neg__"},
      {"aten::pow", "__pow__"},       {"aten::__and__", "__and__"},
      {"aten::__or__", "__or__"},     {"aten::__xor__", "__xor__"},
      {"aten::remainder", "__mod__"}, {"aten::floordiv", "__floordiv__"}};
  if (arguments.empty() || !arguments[0].value->type()->is(TypeKind::Class)) return nullptr;
  auto found = magic.find(name);
  Variable* self = arguments[0].value;
  const ClassPtr& cls = self->type()->cls;
  if (found == magic.end() || (cls->is_module && !cls->method(found->second))) return nullptr;
  if (!cls->method(found->second))
    fail_at(at, "'", cls->name, "' object has no attribute or method '", found->second,
            "'. Did you forget to initialize an attribute in __init__()?");
  arguments.erase(arguments.begin());
  return call_method(at, self, found->second, arguments);
}

/// `torch.tensor`'s arguments in their places, with the defaults.
std::vector<Argument> Emitter::tensor_arguments(const Tree& at, const std::string& name,
                                                const std::vector<Argument>& given) {
  size_t count = name == "aten::tensor" ? 4 : 3;
  static const char* const names[] = {"data", "dtype", "device", "requires_grad"};
  std::vector<Argument> full(count, {"", nullptr});
  size_t next = 0;
  for (const Argument& a : given) {
    size_t place = next++;
    if (!a.name.empty())
      for (place = 0; place < count && a.name != names[place]; ++place) {
      }
    if (place >= count) fail_at(at, "torch.tensor: Unknown keyword argument '", a.name, "'");
    full[place] = {"", a.value};
  }
  if (!full[0].value) fail_at(at, "torch.tensor: Argument data not provided.");
  for (size_t i = 1; i < count; ++i)
    if (!full[i].value) full[i].value = i == 3 ? constant(Value(false)) : constant(Value());
  if (is_string(full[2].value->type()))
    full[2].value = one(at, "aten::device", {full[2].value}, simple_type(TypeKind::Device));
  return full;
}

std::vector<Argument> Emitter::rearranged(const Tree& at, const std::string& name, std::vector<Argument> arguments) {
  if (name == "aten::tensor" || name == "aten::as_tensor") return tensor_arguments(at, name, arguments);
  auto type = [&](size_t i) { return arguments[i].value->type(); };
  if (name == "aten::einsum" && arguments.size() > 1 && is_tensor(type(1))) {
    Variables operands;
    for (size_t i = 1; i < arguments.size(); ++i) operands.push_back(arguments[i].value);
    arguments.resize(1);
    arguments.push_back({"", one(at, "prim::ListConstruct", operands, list_type(tensor_type()))});
  }
  if (name == "aten::sort" && !arguments.empty() && is_list(type(0)) && arguments.size() == 2 &&
      arguments[1].name == "reverse")
    arguments[1].name.clear();
  if (name == "aten::warn") {
    static const char* const names[] = {"message", "stacklevel"};
    for (size_t i = 0; i < arguments.size() && i < 2; ++i)
      if (arguments[i].name == names[i]) arguments[i].name.clear();
  }
  bool by_device = name == "aten::to" && arguments.size() > 1 && arguments[1].name.empty() && is_tensor(type(0)) &&
                   (type(1)->is(TypeKind::Device) || is_string(type(1)) || is_subtype(none_type(), type(1)));
  if (by_device) {  // x.to(device, dtype, non_blocking, copy)
    static const char* const names[] = {"device", "dtype", "non_blocking", "copy"};
    for (size_t i = 1; i < arguments.size() && i <= 4; ++i)
      if (arguments[i].name.empty()) arguments[i].name = names[i - 1];
  }
  return arguments;
}

/// Number op tensor, as Python turns it around.
SugaredPtr Emitter::turned_around(const Tree& at, const std::string& name, const std::vector<Argument>& a) {
  if (a.size() != 2 || !is_number(a[0].value->type()) || !is_tensor(a[1].value->type())) return nullptr;
  static const std::map<std::string, std::string> mirrored = {
      {"aten::add", "aten::add"}, {"aten::mul", "aten::mul"}, {"aten::eq", "aten::eq"},
      {"aten::ne", "aten::ne"},   {"aten::lt", "aten::gt"},   {"aten::gt", "aten::lt"},
      {"aten::le", "aten::ge"},   {"aten::ge", "aten::le"},   {"aten::sub", "aten::rsub"}};
  if (auto found = mirrored.find(name); found != mirrored.end()) return builtin(at, found->second, {a[1], a[0]});
  if (name != "aten::div") return nullptr;
  SugaredPtr inverse = builtin(at, "aten::reciprocal", {a[1]});
  return builtin(at, "aten::mul", {{"", as_value(at, inverse)}, a[0]});
}

/// Truth values as numbers and tuples as lists, which operators take where they take neither by itself.
bool Emitter::widened(const Tree& at, std::vector<Argument>& arguments) {
  bool changed = false;
  for (Argument& a : arguments) {
    const TypePtr type = a.value->type();
    if (is_bool(type)) {
      a.value = one(at, "aten::Int", {a.value}, int_type());
    } else if (type->is(TypeKind::Tuple) && !type->elements.empty() && type->name.empty()) {
      TypePtr element = type->element();
      for (const TypePtr& t : type->elements) element = element && same_type(element, t) ? element : nullptr;
      if (!element) continue;
      a.value = convert(at, a.value, list_type(element), false);
    } else {
      continue;
    }
    changed = true;
  }
  return changed;
}

SugaredPtr Emitter::builtin(const Tree& at, const std::string& name, std::vector<Argument> arguments) {
  if (SugaredPtr s = by_magic(at, name, arguments)) return s;
  arguments = rearranged(at, name, std::move(arguments));
  bool by_tensor = false;
  for (const Argument& a : arguments) by_tensor |= is_tensor(a.value->type());
  if (name == "aten::floordiv" && by_tensor) return builtin(at, "aten::floor_divide", std::move(arguments));
  std::string reasons;
  for (bool again : {false, true}) {
    if (again && !widened(at, arguments)) break;
    if (!has_keywords(arguments)) {
      TypePtr result;
      if (find_builtin(name, types_of(arguments), &result)) {
        Variables inputs;
        for (const Argument& a : arguments) inputs.push_back(a.value);
        return sugar(one(at, name, inputs, result));
      }
      if (SugaredPtr s = turned_around(at, name, arguments)) return s;
    }
    if (SugaredPtr s = by_registry(at, name, arguments, reasons)) return s;
  }
  if (operator_overloads(name).empty() && builtins(name).empty())
    fail_at(at, "\nUnknown builtin op: ", name, ".\nCould not find any similar ops to ", name,
            ". This op may not exist or may not be currently supported in TorchScript.\n");
  std::string given;
  for (const Argument& a : arguments)
    given += (given.empty() ? "" : ", ") + (a.name.empty() ? "" : a.name + "=") + a.value->type()->annotation();
  fail_at(at, "Arguments for call are not valid.\nThe following variants are available:", reasons,
          "\n\nThe arguments of ", name, " are (", given, ").\nThe original call is");
}

}  // namespace umbra::jit
