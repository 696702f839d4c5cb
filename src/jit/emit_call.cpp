// Calls: which function is meant, and what its arguments become.
#include "jit/builtin_rules.h"
#include "jit/emitter.h"

namespace umbra::jit {

namespace {

/// `x.float()` and the like.
bool is_cast_method(const std::string& name, DType& dtype) {
  static const std::pair<const char*, DType> casts[] = {
      {"float", DType::Float32},     {"double", DType::Float64}, {"half", DType::Float16},
      {"bfloat16", DType::BFloat16}, {"int", DType::Int32},      {"long", DType::Int64},
      {"short", DType::Int16},       {"char", DType::Int8},      {"byte", DType::UInt8}};
  for (auto [n, d] : casts)
    if (name == n) {
      dtype = d;
      return true;
    }
  return false;
}

}  // namespace

bool is_method_of_tensors(const std::string& name) {
  DType dtype;
  return name == "cpu" || name == "cuda" || name == "tolist" || name == "type" || is_cast_method(name, dtype);
}

// ---- conversions ----

Variable* Emitter::convert(const Tree& at, Variable* v, const TypePtr& type, bool implicit) {
  if (is_subtype(v->type(), type)) return v;
  TypePtr inner = type->is(TypeKind::Optional) ? type->element() : type;
  if (is_list(inner) && inner->broadcast > 0 && is_subtype(v->type(), inner->element()))
    return one(at, "prim::ListConstruct", Variables(static_cast<size_t>(inner->broadcast), v), inner);
  if (is_list(inner) && v->type()->is(TypeKind::Tuple)) {  // (2, 3) for a list of ints
    Variables parts;
    for (const SugaredPtr& p : parts_of(at, sugar(v))) {
      Variable* part = convert(at, as_value(at, p), inner->element(), implicit);
      if (!part) return nullptr;
      parts.push_back(part);
    }
    return one(at, "prim::ListConstruct", parts, inner);
  }
  if (is_list(inner) && is_list(v->type()) && v->node()->is("prim::ListConstruct") && v->node()->inputs.empty())
    return one(at, "prim::ListConstruct", {}, inner);
  if (v->type()->is(TypeKind::Tensor) && implicit) {
    if (is_int(inner)) return one(at, "aten::IntImplicit", {v}, int_type());
    if (is_float(inner)) return one(at, "aten::FloatImplicit", {v}, float_type());
    if (inner->is(TypeKind::Number)) return one(at, "aten::ScalarImplicit", {v}, inner);
  }
  if (implicit && is_float(inner) && (is_int(v->type()) || v->type()->is(TypeKind::Number)))
    return one(at, "aten::Float", {v}, float_type());
  if (implicit && is_int(inner) && v->type()->is(TypeKind::Number)) return one(at, "aten::Int", {v}, int_type());
  if (implicit && inner->is(TypeKind::Device) && is_string(v->type())) return one(at, "aten::device", {v}, inner);
  return nullptr;
}

Variable* Emitter::coerced(const Tree& at, Variable* v, const TypePtr& type, const std::string& what) {
  Variable* converted = is_int(v->type()) && is_float(type) ? nullptr : convert(at, v, type, true);
  if (Variable* out = converted) {
    bool wider = out == v && !same_type(v->type(), type);
    return wider ? one(at, "prim::unchecked_cast", {v}, type) : out;
  }
  if (v->type()->is(TypeKind::Tuple) && type->is(TypeKind::Tuple) &&
      v->type()->elements.size() == type->elements.size()) {
    Variables parts;
    auto given = parts_of(at, sugar(v));
    for (size_t i = 0; i < given.size(); ++i)
      parts.push_back(coerced(at, as_value(at, given[i]), type->elements[i], what));
    return one(at, "prim::TupleConstruct", parts, type);
  }
  if (v->node()->is("prim::ListConstruct") && v->node()->inputs.empty() && type->is(TypeKind::List))
    return one(at, "prim::ListConstruct", {}, type);
  if (v->node()->is("prim::DictConstruct") && v->node()->inputs.empty() && type->is(TypeKind::Dict))
    return one(at, "prim::DictConstruct", {}, type);
  if (what == "the return")
    fail_at(at, "Return value was annotated as having type ", type->annotation(), " but is actually of type ",
            v->type()->annotation());
  fail_at(at, "Expected a value of type '", type->annotation(), "' for ", what, " but instead found type '",
          v->type()->annotation(), "'");
}

TypePtr Emitter::type_argument(const Tree& e) { return resolve_type(e, resolver_); }

std::vector<Argument> Emitter::arguments_of(const Tree& call) {
  const Tree* reached = Compilation::reached();
  std::vector<Argument> out;
  for (size_t i = 1; i < call.children.size(); ++i) {
    const Tree& c = *call.children[i];
    if (c.kind == Syntax::Keyword) out.push_back({c.text, value(*c.children[0])});
    else if (c.kind == Syntax::Starred)
      for (const SugaredPtr& p : parts_of(c, expression(*c.children[0]))) out.push_back({"", as_value(c, p)});
    else out.push_back({"", value(c)});
  }
  if (reached) Compilation::reach(*reached);
  return out;
}

// ---- functions of the program ----

Variables Emitter::match(const Tree& at, const Function& function, size_t skipped,
                         const std::vector<Argument>& arguments) {
  const auto& parameters = function.parameters;
  Variables out(parameters.size() - skipped);
  auto refuse = [&](const auto&... why) { fail_at(at, "\n", function.schema(), ":\n", why..., "\n"); };
  size_t next = 0;
  std::string unknown;
  for (const Argument& a : arguments) {
    size_t place = next;
    if (a.name.empty()) {
      size_t most = 0;
      while (most < out.size() && !parameters[most + skipped].keyword_only) ++most;
      if (next >= most)
        refuse("Expected at most ", most, " arguments but found ", arguments.size(), " positional arguments.");
      ++next;
    } else {
      for (place = 0; place < out.size() && parameters[place + skipped].name != a.name; ++place) {
      }
      if (place == out.size()) {
        if (unknown.empty()) unknown = a.name;
        continue;
      }
      if (out[place]) refuse("Argument ", a.name, " specified twice.");
    }
    const Parameter& p = parameters[place + skipped];
    out[place] = is_int(a.value->type()) && is_float(p.type) ? nullptr : convert(at, a.value, p.type, implicit_);
    if (!out[place])
      refuse("Expected a value of type '", p.type->annotation(), p.inferred ? " (inferred)" : "", "' for argument '",
             p.name, "' but instead found type '", a.value->type()->annotation(), "'.",
             p.inferred ? concat("\nInferred the value for argument '", p.name,
                                 "' to be of type 'Tensor' because it was not annotated with an explicit type.")
                        : "");
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i]) continue;
    const Parameter& p = parameters[i + skipped];
    if (!p.default_value) refuse("Argument ", p.name, " not provided.");
    out[i] = constant(*p.default_value, p.default_value->is_none() ? p.type : nullptr);
  }
  if (!unknown.empty()) refuse("Keyword argument ", unknown, " unknown.");
  return out;
}

SugaredPtr Emitter::call_function(const Tree& at, const FunctionPtr& function, std::vector<Argument> arguments) {
  if (function.get() == &function_ || (!function->ignored && function->compiling))
    fail_at(at, "function '", function->name.substr(function->name.rfind('.') + 1),
            "' is called recursively. Recursive calls are not supported");
  if (!function->ignored) function->ensure();
  Variables inputs = match(at, *function, 0, arguments);
  Variable* callee = as_value(at, sugar_function(function));
  inputs.insert(inputs.begin(), callee);
  return sugar(one(at, "prim::CallFunction", inputs, function->result));
}

/// The first of several that takes the arguments, without conversions if there is one.
SugaredPtr Emitter::first_that_fits(const Tree& at, size_t count, const std::function<SugaredPtr(size_t)>& call) {
  std::string reasons;
  size_t before = graph_.current()->nodes().size();
  for (size_t i = 0; i < 2 * count; ++i) {
    if (i == count) reasons.clear();
    bool implicit = std::exchange(implicit_, i >= count);
    try {
      SugaredPtr found = call(i % count);
      implicit_ = implicit;
      return found;
    } catch (const CompileError& error) {
      implicit_ = implicit;
      std::string text = error.what();
      reasons += "\n  " + text.substr(1, text.find(":\n  File") - 1);
      while (graph_.current()->nodes().size() > before) graph_.erase(graph_.current()->nodes().back().get());
    }
  }
  fail_at(at, "Arguments for call are not valid.\nThe following variants are available:", reasons,
          "\n\nThe original call is");
}

SugaredPtr Emitter::call_method(const Tree& at, Variable* self, const std::string& name,
                                std::vector<Argument> arguments) {
  const ClassPtr& cls = self->type()->cls;
  if (!cls) fail_at(at, "'", self->type()->annotation(), "' object has no attribute or method '", name, "'.");
  if (auto found = cls->overloads.find(name); found != cls->overloads.end()) {
    const std::vector<std::string>& names = found->second;
    return first_that_fits(at, names.size(), [&](size_t i) { return call_method(at, self, names[i], arguments); });
  }
  FunctionPtr method = cls->method(name);
  if (!method)
    fail_at(at, "'", cls->name, "' object has no attribute or method '", name,
            "'. Did you forget to initialize an attribute in __init__()?");
  if (method->compiling) fail_at(at, "method '", name, "' is called recursively. Recursive calls are not supported");
  if (!method->ignored && !cls->is_interface && !method->result) method->ensure();
  Variables inputs = match(at, *method, 1, arguments);
  inputs.insert(inputs.begin(), self);
  Node* node = insert(at, "prim::CallMethod", inputs, {method->result});
  node->set_attribute("name", Value(name));
  return sugar(node->output());
}

/// A module that is called runs its hooks around `forward`.
SugaredPtr Emitter::call_module(const Tree& at, Variable* self, std::vector<Argument> arguments) {
  const ClassPtr& cls = self->type()->cls;
  if (cls->pre_hooks.empty() && cls->hooks.empty()) return call_method(at, self, "forward", std::move(arguments));
  auto given = [&] {
    Variables parts;
    for (const Argument& a : arguments) {
      if (!a.name.empty()) fail_at(at, "a module with hooks takes its arguments by position in TorchScript");
      parts.push_back(a.value);
    }
    return tuple(at, parts);
  };
  for (const std::string& hook : cls->pre_hooks) {
    Variable* changed = as_value(at, call_method(at, self, hook, {{"", given()}}));
    if (changed->type()->is(TypeKind::None)) continue;
    arguments.clear();
    if (changed->type()->is(TypeKind::Tuple))
      for (const SugaredPtr& p : parts_of(at, sugar(changed))) arguments.push_back({"", as_value(at, p)});
    else arguments.push_back({"", changed});
  }
  Variable* result = as_value(at, call_method(at, self, "forward", arguments));
  for (const std::string& hook : cls->hooks) {
    Variable* changed = as_value(at, call_method(at, self, hook, {{"", given()}, {"", result}}));
    if (!changed->type()->is(TypeKind::None)) result = changed;
  }
  return sugar(result);
}

SugaredPtr Emitter::create(const Tree& at, const TypePtr& type, std::vector<Argument> arguments) {
  if (type->is(TypeKind::Class)) {
    FunctionPtr init = type->cls->method("__init__");
    if (init) init->ensure();
    Variable* object = one(at, "prim::CreateObject", {}, type);
    if (init) call_method(at, object, "__init__", std::move(arguments));
    return sugar(object);
  }
  if (type->is(TypeKind::Tuple) && !type->fields.empty()) {
    Function shape;
    shape.name = type->name;
    size_t required = type->fields.size() - type->defaults.size();
    for (size_t i = 0; i < type->fields.size(); ++i) {
      shape.parameters.push_back({type->fields[i], type->elements[i], {}, false});
      if (i >= required) shape.parameters.back().default_value = type->defaults[i - required];
    }
    shape.result = tuple_type({});  // as PyTorch shows it
    return sugar(one(at, "prim::TupleConstruct", match(at, shape, 0, arguments), type));
  }
  if (type->is(TypeKind::Enum)) fail_at(at, "an enum's member cannot be made from a value in TorchScript");
  if (type->is(TypeKind::Complex)) return builtin(at, "aten::Complex", std::move(arguments));
  if (arguments.size() != 1) fail_at(at, "a conversion takes one argument");
  Variable* v = arguments[0].value;
  if (v->type()->is(TypeKind::Class)) {  // objects say themselves what they are as numbers
    std::string method = "__" + type->annotation() + "__";
    if (v->type()->cls->method(method)) return call_method(at, v, method, {});
  }
  switch (type->kind) {
    case TypeKind::Int: return is_int(v->type()) ? sugar(v) : builtin(at, "aten::Int", std::move(arguments));
    case TypeKind::Float: {
      if (is_float(v->type())) return sugar(v);
      const Value* known =
          v->node()->is("prim::Constant") && is_string(v->type()) ? v->node()->attribute("value") : nullptr;
      char* end = nullptr;
      double number = known ? std::strtod(known->to_string().c_str(), &end) : 0;  // float("inf")
      if (known && !known->to_string().empty() && !*end) return sugar(constant(Value(number)));
      return builtin(at, "aten::Float", std::move(arguments));
    }
    case TypeKind::Bool: return sugar(truth(at, v));
    case TypeKind::String: return is_string(v->type()) ? sugar(v) : builtin(at, "aten::str", std::move(arguments));
    case TypeKind::Device: return is_string(v->type()) ? builtin(at, "aten::device", std::move(arguments)) : sugar(v);
    default: fail_at(at, "the type ", type->annotation(), " cannot be called");
  }
}

// ---- calls ----

SugaredPtr Emitter::call(const Tree& e, const TypePtr& hint) {
  SugaredPtr callee = expression(*e.children[0]);
  switch (callee->kind) {
    case Sugared::Kind::Builtin: return call_builtin(e, *callee, hint);
    case Sugared::Kind::Function: return call_function(e, callee->function, arguments_of(e));
    case Sugared::Kind::Overloads:
    case Sugared::Kind::Choice: return call_chosen(e, callee.get());
    case Sugared::Kind::Class:
    case Sugared::Kind::Type: return create(e, callee->type, arguments_of(e));
    case Sugared::Kind::Method:
      return callee->self->kind == Sugared::Kind::Modules ? call_on_modules(e, *callee)
                                                          : call_on_value(e, *callee, hint);
    case Sugared::Kind::Modules:
      if (callee->variable) return call_module(e, callee->variable, arguments_of(e));
      fail_at(e, "a list of modules cannot be called");
    case Sugared::Kind::Variable: {
      const TypePtr& type = callee->variable->type();
      if (!type->is(TypeKind::Class) || (type->cls->is_interface && !type->cls->is_module))
        fail_at(e, "cannot call a value of type '", type->annotation(), "'");
      if (type->cls->is_module) return call_module(e, callee->variable, arguments_of(e));
      return call_method(e, callee->variable, "__call__", arguments_of(e));
    }
    case Sugared::Kind::Python:
      if (FunctionPtr left = resolver_.callable(*callee, e.children.size() - 1))
        return call_function(e, left, arguments_of(e));
      fail_at(e, "Python function '", callee->name, "' cannot be called from TorchScript");
    default: fail_at(e, "this cannot be called");
  }
}

/// One of several functions, which the arguments choose.
SugaredPtr Emitter::call_chosen(const Tree& e, const Sugared* callee) {
  std::vector<Argument> arguments = arguments_of(e);
  while (callee->kind == Sugared::Kind::Choice) {
    Value chosen = callee->value;
    size_t place = 0;
    for (const Argument& a : arguments) {
      if (a.name.empty() ? place++ != callee->place : a.name != callee->name) continue;
      const Value* known = a.value->node()->is("prim::Constant") ? a.value->node()->attribute("value") : nullptr;
      if (!known || !known->is_bool()) fail_at(e, "the argument '", callee->name, "' has to be a constant");
      chosen = *known;
    }
    callee = callee->parts[chosen.to_bool() ? 0 : 1].get();
  }
  if (callee->kind == Sugared::Kind::Function) return call_function(e, callee->function, arguments);
  return first_that_fits(e, callee->parts.size(),
                         [&](size_t i) { return call_function(e, callee->parts[i]->function, arguments); });
}

SugaredPtr Emitter::call_builtin(const Tree& e, const Sugared& callee, const TypePtr& hint) {
  if (callee.name == "__new__") return sugar(one(e, "prim::CreateObject", {}, callee.type));
  if (callee.name == "prim::RaiseException") {
    Variables inputs;
    for (const Argument& a : arguments_of(e)) inputs.push_back(a.value);
    insert(e, "prim::RaiseException", inputs, {});
    raises_ = true;
    return sugar(constant(Value()));
  }
  if (SugaredPtr s = call_special(e, callee.name, hint)) return s;
  std::string name = callee.name.find("::") == std::string::npos ? "aten::" + callee.name : callee.name;
  return builtin(e, name, arguments_of(e));
}

/// `self.layers.items()` and the like, or a method of the container's own class.
SugaredPtr Emitter::call_on_modules(const Tree& e, const Sugared& callee) {
  const Sugared& self = *callee.self;
  auto values = [](std::vector<SugaredPtr> parts) {
    auto s = std::make_shared<Sugared>();
    s->kind = Sugared::Kind::Values;
    s->parts = std::move(parts);
    return s;
  };
  std::vector<SugaredPtr> keys, pairs;
  for (size_t i = 0; i < self.parts.size(); ++i) {
    keys.push_back(sugar_constant(Value(self.keys[i])));
    pairs.push_back(values({keys.back(), self.parts[i]}));
  }
  if (callee.name == "keys") return values(keys);
  if (callee.name == "values" || callee.name == "children") return values(self.parts);
  if (callee.name == "items" || callee.name == "named_children") return values(pairs);
  if (self.variable && self.variable->type()->cls->method(callee.name))
    return call_method(e, self.variable, callee.name, arguments_of(e));
  fail_at(e, "modules have no method '", callee.name, "' that programs can use");
}

SugaredPtr Emitter::call_on_value(const Tree& e, const Sugared& callee, const TypePtr& hint) {
  Variable* v = as_value(e, callee.self);
  const TypePtr& type = v->type();
  if (type->is(TypeKind::Class)) return call_method(e, v, callee.name, arguments_of(e));
  if (type->is(TypeKind::Future) && callee.name == "wait")
    return sugar(one(e, "prim::unchecked_cast", {v}, type->element()));
  std::vector<Argument> arguments = arguments_of(e);
  arguments.insert(arguments.begin(), {"", v});
  if (is_tensor(type)) {
    DType dtype;
    if (arguments.size() == 1 && is_cast_method(callee.name, dtype))
      return builtin(e, "aten::to", {{"", v}, {"", constant(Value(number_of(dtype)))}});
    if (callee.name == "type") return builtin(e, "aten::to", arguments);
    if (callee.name == "where" && arguments.size() > 2)  // x.where(condition, y)
      std::swap(arguments[0], arguments[1]);
    if (arguments.size() == 1 && (callee.name == "cpu" || callee.name == "cuda"))
      return builtin(e, "aten::to", {{"", v}, {"device", constant(Value(Device(callee.name)))}});
    if (callee.name == "tolist") {
      if (!hint) fail_at(e, "Expected type hint for result of tolist()");
      return sugar(one(e, "prim::tolist", {v}, hint));
    }
  }
  return builtin(e, "aten::" + callee.name, arguments);
}

}  // namespace umbra::jit
