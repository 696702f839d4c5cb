// Calls: which function is meant, and what its arguments become.
#include "jit/builtin_rules.h"
#include "jit/emitter.h"

namespace umbra::jit {

namespace {

std::string describe(const std::vector<Argument>& arguments) {
  std::string out;
  for (const Argument& a : arguments)
    out += (out.empty() ? "" : ", ") + (a.name.empty() ? "" : a.name + "=") + a.value->type()->annotation();
  return out;
}

bool is_cast_method(const std::string& name, DType& dtype) {
  static const std::pair<const char*, DType> casts[] = {
      {"float", DType::Float32}, {"double", DType::Float64}, {"half", DType::Float16}, {"bfloat16", DType::BFloat16},
      {"int", DType::Int32},     {"long", DType::Int64},     {"short", DType::Int16},  {"char", DType::Int8},
      {"byte", DType::UInt8},    {"bool", DType::Bool}};
  for (auto [n, d] : casts)
    if (name == n) {
      dtype = d;
      return true;
    }
  return false;
}

}  // namespace

// ---- conversions ----

Variable* Emitter::convert(const Tree& at, Variable* v, const TypePtr& type, bool implicit) {
  if (is_subtype(v->type(), type)) return v;
  TypePtr inner = type->is(TypeKind::Optional) ? type->element() : type;
  if (is_list(inner) && v->type()->is(TypeKind::Tuple)) {  // (2, 3) for a list of ints
    std::vector<Variable*> parts;
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
    std::vector<Variable*> parts;
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
  std::vector<Argument> out;
  for (size_t i = 1; i < call.children.size(); ++i) {
    const Tree& c = *call.children[i];
    if (c.kind == Syntax::Keyword) out.push_back({c.text, value(*c.children[0])});
    else if (c.kind == Syntax::Starred)
      for (const SugaredPtr& p : parts_of(c, expression(*c.children[0]))) out.push_back({"", as_value(c, p)});
    else out.push_back({"", value(c)});
  }
  return out;
}

// ---- functions of the program ----

std::vector<Variable*> Emitter::match(const Tree& at, const Function& function, size_t skipped,
                                      const std::vector<Argument>& arguments) {
  const auto& parameters = function.parameters;
  std::vector<Variable*> out(parameters.size() - skipped);
  std::string name = function.name.substr(function.name.rfind('.') + 1);
  size_t next = 0;
  for (const Argument& a : arguments) {
    size_t place = next;
    if (a.name.empty()) {
      if (next >= out.size())
        fail_at(at, name, "(): expected at most ", out.size(), " arguments but found ", arguments.size(),
                " positional arguments");
      ++next;
    } else {
      for (place = 0; place < out.size() && parameters[place + skipped].name != a.name; ++place) {
      }
      if (place == out.size()) fail_at(at, name, "(): Unknown keyword argument '", a.name, "'");
      if (out[place]) fail_at(at, name, "(): Argument '", a.name, "' specified twice");
    }
    const Parameter& p = parameters[place + skipped];
    Variable* v = is_int(a.value->type()) && is_float(p.type) ? nullptr : convert(at, a.value, p.type, true);
    if (!v)
      fail_at(at, name, "(): Expected a value of type '", p.type->annotation(), "' for argument '", p.name,
              "' but instead found type '", a.value->type()->annotation(), "'");
    out[place] = v;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i]) continue;
    const Parameter& p = parameters[i + skipped];
    if (!p.default_value) fail_at(at, name, "(): Argument '", p.name, "' not provided");
    out[i] = constant(*p.default_value, p.default_value->is_none() ? p.type : nullptr);
  }
  return out;
}

SugaredPtr Emitter::call_function(const Tree& at, const FunctionPtr& function, std::vector<Argument> arguments) {
  std::vector<Variable*> inputs = match(at, *function, 0, arguments);
  if (!function->ignored && !function->result) {
    if (function.get() == &function_)
      fail_at(at, "function '", function->name, "' is called recursively. Recursive calls need a return annotation");
    function->ensure();
    if (!function->result)
      fail_at(at, "function '", function->name, "' is called recursively. Recursive calls are not supported");
  }
  Variable* callee = as_value(at, sugar_function(function));
  inputs.insert(inputs.begin(), callee);
  return sugar(one(at, "prim::CallFunction", inputs, function->result));
}

SugaredPtr Emitter::call_method(const Tree& at, Variable* self, const std::string& name,
                                std::vector<Argument> arguments) {
  if (!self->type()->cls) fail_at(at, "'", self->type()->annotation(), "' has no method '", name, "'");
  FunctionPtr method = self->type()->cls->method(name);
  if (!method) fail_at(at, "'", self->type()->cls->name, "' has no method '", name, "'");
  std::vector<Variable*> inputs = match(at, *method, 1, arguments);
  if (!method->ignored && !method->result) {
    method->ensure();
    if (!method->result) fail_at(at, "method '", name, "' is called recursively. Recursive calls are not supported");
  }
  inputs.insert(inputs.begin(), self);
  Node* node = insert(at, "prim::CallMethod", inputs, {method->result});
  node->set_attribute("name", Value(name));
  return sugar(node->output());
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
    for (size_t i = 0; i < type->fields.size(); ++i)
      shape.parameters.push_back({type->fields[i], type->elements[i], {}, false});
    return sugar(one(at, "prim::TupleConstruct", match(at, shape, 0, arguments), type));
  }
  if (type->is(TypeKind::Enum)) fail_at(at, "an enum's member cannot be made from a value in TorchScript");
  if (arguments.size() != 1) fail_at(at, "a conversion takes one argument");
  Variable* v = arguments[0].value;
  switch (type->kind) {
    case TypeKind::Int: return is_int(v->type()) ? sugar(v) : builtin(at, "aten::Int", std::move(arguments));
    case TypeKind::Float: return is_float(v->type()) ? sugar(v) : builtin(at, "aten::Float", std::move(arguments));
    case TypeKind::Bool: return is_bool(v->type()) ? sugar(v) : builtin(at, "aten::Bool", std::move(arguments));
    case TypeKind::String: return is_string(v->type()) ? sugar(v) : builtin(at, "aten::str", std::move(arguments));
    case TypeKind::Complex: return builtin(at, "aten::Complex", std::move(arguments));
    case TypeKind::Device: return is_string(v->type()) ? builtin(at, "aten::device", std::move(arguments)) : sugar(v);
    default: fail_at(at, "the type ", type->annotation(), " cannot be called");
  }
}

// ---- operators ----

SugaredPtr Emitter::try_operator(const Tree& at, const Operator& op, const std::vector<Argument>& arguments,
                                 bool convert_values) {
  const auto& schema = op.schema().arguments;
  std::vector<Variable*> inputs(schema.size());
  size_t next = 0;
  for (size_t k = 0; k < arguments.size(); ++k) {
    const Argument& a = arguments[k];
    size_t place = next;
    if (a.name.empty()) {
      if (next >= schema.size() || schema[next].keyword_only) return nullptr;
      ++next;
    } else {
      int found = op.schema().find(a.name);
      if (found < 0 && a.name == "input") found = op.schema().find("self");
      if (found < 0) return nullptr;
      place = static_cast<size_t>(found);
    }
    if (inputs[place]) return nullptr;
    const SchemaType& type = schema[place].type;
    TypePtr wanted = type_of_schema(type);
    Variable* v = nullptr;
    bool is_spelt_out = type.list && (type.base == SchemaType::Base::Int || type.base == SchemaType::Base::SymInt) &&
                        a.name.empty() && is_int(a.value->type()) && k + 1 < arguments.size() && place <= 1;
    if (is_spelt_out) {  // x.view(2, 3)
      size_t last = k;
      while (last < arguments.size() && arguments[last].name.empty() && is_int(arguments[last].value->type())) ++last;
      if (last == arguments.size() || !arguments[last].name.empty()) {
        std::vector<Variable*> parts;
        for (size_t j = k; j < last; ++j) parts.push_back(arguments[j].value);
        inputs[place] = one(at, "prim::ListConstruct", parts, list_type(int_type()));
        k = last - 1;
        continue;
      }
    }
    const TypePtr& given = a.value->type();
    TypePtr inner = wanted->is(TypeKind::Optional) ? wanted->element() : wanted;
    if (is_list(inner) && is_list(given) && is_subtype(given->element(), inner->element())) v = a.value;
    else if (type.list && is_subtype(given, inner->element()) &&
             (type.list_size > 0 || (place <= 1 && is_int(given) && convert_values)))
      v = one(at, "prim::ListConstruct",
              std::vector<Variable*>(type.list_size > 0 ? static_cast<size_t>(type.list_size) : 1, a.value), inner);
    else if (type.base == SchemaType::Base::Bool && !is_bool(given) && !given->is(TypeKind::None)) v = nullptr;
    else v = convert(at, a.value, wanted, convert_values);
    if (!v) return nullptr;
    inputs[place] = v;
  }
  for (size_t i = 0; i < schema.size(); ++i) {
    if (inputs[i]) continue;
    if (!schema[i].default_value) return nullptr;
    const Value& d = *schema[i].default_value;
    TypePtr type = type_of_schema(schema[i].type);
    TypePtr inner = type->is(TypeKind::Optional) ? type->element() : type;
    if (d.is_int_list() || d.tag() == Value::Tag::DoubleList || d.tag() == Value::Tag::BoolList || d.is_list() ||
        d.is_tensor_list()) {
      std::vector<Variable*> parts;
      if (d.is_int_list())
        for (SymInt s : d.int_list()) parts.push_back(constant(Value(s)));
      else if (d.tag() == Value::Tag::DoubleList)
        for (double x : d.double_list()) parts.push_back(constant(Value(x)));
      else if (d.tag() == Value::Tag::BoolList)
        for (bool b : d.bool_list()) parts.push_back(constant(Value(b)));
      inputs[i] = one(at, "prim::ListConstruct", parts, inner);
    } else if (d.tag() == Value::Tag::DType) {
      inputs[i] = constant(Value(number_of(d.to_dtype())));
    } else if (d.tag() == Value::Tag::MemoryFormat) {
      inputs[i] = constant(Value(static_cast<int64_t>(d.to_memory_format())));
    } else if (d.tag() == Value::Tag::Layout) {
      inputs[i] = constant(Value(static_cast<int64_t>(d.to_layout())));
    } else if (d.is_int() && schema[i].type.base == SchemaType::Base::Float) {
      inputs[i] = constant(Value(d.to_double()));
    } else {
      inputs[i] = constant(d);
    }
  }
  Node* node = insert(at, op.schema().space + "::" + op.schema().name, inputs, {});
  node->op = &op;
  std::vector<SugaredPtr> results;
  for (const SchemaReturn& r : op.schema().returns) results.push_back(sugar(node->add_output(type_of_schema(r.type))));
  if (results.size() == 1) return results[0];
  if (results.empty()) return sugar(constant(Value()));
  auto s = std::make_shared<Sugared>();
  s->kind = Sugared::Kind::Values;
  s->parts = results;
  return s;
}

SugaredPtr Emitter::builtin(const Tree& at, const std::string& name, std::vector<Argument> arguments) {
  if (name == "aten::einsum" && arguments.size() > 1 && is_tensor(arguments[1].value->type())) {
    std::vector<Variable*> operands;
    for (size_t i = 1; i < arguments.size(); ++i) operands.push_back(arguments[i].value);
    arguments.resize(1);
    arguments.push_back({"", one(at, "prim::ListConstruct", operands, list_type(tensor_type()))});
  }
  std::vector<TypePtr> types;
  bool keywords = false;
  for (const Argument& a : arguments) {
    types.push_back(a.value->type());
    keywords |= !a.name.empty();
  }
  // Objects say themselves what operators do with them.
  static const std::map<std::string, std::string> magic = {
      {"aten::add", "__add__"},     {"aten::sub", "__sub__"}, {"aten::mul", "__mul__"},
      {"aten::div", "__truediv__"}, {"aten::eq", "__eq__"},   {"aten::ne", "__ne__"},
      {"aten::lt", "__lt__"},       {"aten::gt", "__gt__"},   {"aten::le", "__le__"},
      {"aten::ge", "__ge__"},       {"aten::len", "__len__"}, {"aten::__contains__", "__contains__"},
      {"aten::str", "__str__"},     {"aten::neg", "__neg__"}};
  if (!types.empty() && types[0]->is(TypeKind::Class))
    if (auto m = magic.find(name); m != magic.end() && types[0]->cls->method(m->second)) {
      Variable* self = arguments[0].value;
      arguments.erase(arguments.begin());
      return call_method(at, self, m->second, arguments);
    }
  if ((name == "aten::floordiv") && !types.empty() &&
      (is_tensor(types[0]) || (types.size() > 1 && is_tensor(types[1]))))
    return builtin(at, "aten::floor_divide", std::move(arguments));
  if (name == "aten::tensor" || name == "aten::as_tensor") {
    size_t count = name == "aten::tensor" ? 4 : 3;
    static const char* const names[] = {"data", "dtype", "device", "requires_grad"};
    std::vector<Argument> full(count, {"", nullptr});
    size_t next = 0;
    for (const Argument& a : arguments) {
      size_t place = next++;
      if (!a.name.empty())
        for (place = 0; place < count && a.name != names[place]; ++place) {
        }
      if (place >= count) fail_at(at, "torch.tensor: Unknown keyword argument '", a.name, "'");
      full[place] = {"", a.value};
    }
    for (size_t i = 1; i < count; ++i)
      if (!full[i].value) full[i].value = i == 3 ? constant(Value(false)) : constant(Value());
    arguments = full;
    types.clear();
    for (const Argument& a : arguments) types.push_back(a.value->type());
    keywords = false;
  }
  if (!keywords) {
    TypePtr result;
    if (find_builtin(name, types, &result)) {
      std::vector<Variable*> inputs;
      for (const Argument& a : arguments) inputs.push_back(a.value);
      return sugar(one(at, name, inputs, result));
    }
    // Number op tensor, as Python turns it around.
    if (arguments.size() == 2 && is_number(types[0]) && is_tensor(types[1])) {
      if (name == "aten::add" || name == "aten::mul" || name == "aten::eq" || name == "aten::ne")
        std::swap(arguments[0], arguments[1]);
      else if (name == "aten::sub") return builtin(at, "aten::rsub", {arguments[1], arguments[0]});
      else if (name == "aten::div") {
        SugaredPtr inverse = builtin(at, "aten::reciprocal", {arguments[1]});
        return builtin(at, "aten::mul", {{"", as_value(at, inverse)}, arguments[0]});
      } else if (name == "aten::lt" || name == "aten::gt" || name == "aten::le" || name == "aten::ge") {
        std::string turned = name == "aten::lt"   ? "aten::gt"
                             : name == "aten::gt" ? "aten::lt"
                             : name == "aten::le" ? "aten::ge"
                                                  : "aten::le";
        return builtin(at, turned, {arguments[1], arguments[0]});
      }
    }
  }
  std::vector<const Operator*> overloads = operator_overloads(name);
  size_t before = graph_.current()->nodes().size();
  for (bool convert_values : {false, true})
    for (const Operator* op : overloads) {
      SugaredPtr result = try_operator(at, *op, arguments, convert_values);
      if (result) return result;
      while (graph_.current()->nodes().size() > before)
        graph_.erase(graph_.current()->nodes().back().get());  // what a vain attempt left
    }
  if (!overloads.empty() && arguments.size() == 1 && is_tensor(types[0]) && name == "aten::dim")
    return sugar(one(at, name, {arguments[0].value}, int_type()));
  std::string known;
  for (const Operator* op : overloads) known += "\n  " + to_string(op->schema());
  if (overloads.empty() && builtins(name).empty())
    fail_at(at, "Unknown builtin op: ", name, ". Could not find any similar ops to ", name);
  fail_at(at, "Arguments for call are not valid. The arguments are (", describe(arguments), ") for ", name,
          ". The following variants are available:", known);
}

// ---- calls ----

SugaredPtr Emitter::call(const Tree& e, const TypePtr& hint) {
  SugaredPtr callee = expression(*e.children[0]);
  if (callee->kind == Sugared::Kind::Builtin) {
    bool done = false;
    if (callee->name == "__new__") return sugar(one(e, "prim::CreateObject", {}, callee->type));
    if (callee->name == "prim::RaiseException") {
      std::vector<Variable*> inputs;
      for (const Argument& a : arguments_of(e)) inputs.push_back(a.value);
      insert(e, "prim::RaiseException", inputs, {});
      raises_ = true;
      return sugar(constant(Value()));
    }
    SugaredPtr s = call_special(e, callee->name, hint, done);
    if (done) return s;
    std::string name = callee->name.find("::") == std::string::npos ? "aten::" + callee->name : callee->name;
    return builtin(e, name, arguments_of(e));
  }
  switch (callee->kind) {
    case Sugared::Kind::Function: return call_function(e, callee->function, arguments_of(e));
    case Sugared::Kind::Class:
    case Sugared::Kind::Type: return create(e, callee->type, arguments_of(e));
    case Sugared::Kind::Method: {
      const SugaredPtr& self = callee->self;
      if (self->kind == Sugared::Kind::Modules) {
        auto s = std::make_shared<Sugared>();
        s->kind = Sugared::Kind::Values;
        for (size_t i = 0; i < self->parts.size(); ++i) {
          auto pair = std::make_shared<Sugared>();
          pair->kind = Sugared::Kind::Values;
          pair->parts = {sugar_constant(Value(self->keys[i])), self->parts[i]};
          if (callee->name == "keys") s->parts.push_back(sugar_constant(Value(self->keys[i])));
          else if (callee->name == "values" || callee->name == "children" || callee->name == "modules")
            s->parts.push_back(self->parts[i]);
          else if (callee->name == "items" || callee->name == "named_children") s->parts.push_back(pair);
          else if (self->variable && self->variable->type()->cls->method(callee->name))
            return call_method(e, self->variable, callee->name, arguments_of(e));
          else fail_at(e, "modules have no method '", callee->name, "' that programs can use");
        }
        return s;
      }
      Variable* v = as_value(e, self);
      if (v->type()->is(TypeKind::Class)) return call_method(e, v, callee->name, arguments_of(e));
      std::vector<Argument> arguments = arguments_of(e);
      arguments.insert(arguments.begin(), {"", v});
      DType dtype;
      if (is_tensor(v->type()) && arguments.size() == 1 && is_cast_method(callee->name, dtype))
        return builtin(e, "aten::to", {{"", v}, {"", constant(Value(number_of(dtype)))}});
      if (is_tensor(v->type()) && callee->name == "cpu" && arguments.size() == 1)
        return builtin(e, "aten::to", {{"", v}, {"device", constant(Value(Device("cpu")))}});
      if (is_tensor(v->type()) && callee->name == "tolist") {
        if (!hint) fail_at(e, "Expected type hint for result of tolist()");
        std::vector<Variable*> in{v};
        return sugar(one(e, "prim::tolist", in, hint));
      }
      if (v->type()->is(TypeKind::Future) && callee->name == "wait")
        return sugar(one(e, "prim::unchecked_cast", {v}, v->type()->element()));
      if (v->type()->is(TypeKind::Optional))
        fail_at(e, "'", v->type()->annotation(), "' object has no attribute or method '", callee->name,
                "'. Did you forget to check that it is not None?");
      return builtin(e, "aten::" + callee->name, arguments);
    }
    case Sugared::Kind::Modules:
      if (callee->variable) return call_method(e, callee->variable, "forward", arguments_of(e));
      fail_at(e, "a list of modules cannot be called");
    case Sugared::Kind::Variable:
      if (callee->variable->type()->is(TypeKind::Class)) {
        const ClassPtr& cls = callee->variable->type()->cls;
        return call_method(e, callee->variable, cls->is_module ? "forward" : "__call__", arguments_of(e));
      }
      fail_at(e, "'", callee->variable->type()->annotation(), "' object is not callable");
    case Sugared::Kind::Python: fail_at(e, "Python function '", callee->name, "' cannot be called from TorchScript");
    default: fail_at(e, "this cannot be called");
  }
}

SugaredPtr Emitter::call_special(const Tree& e, const std::string& name, const TypePtr& hint, bool& done) {
  done = true;
  auto argument = [&](size_t i) -> const Tree& {
    if (i + 1 >= e.children.size()) fail_at(e, name, "() is missing an argument");
    return *e.children[i + 1];
  };
  size_t count = e.children.size() - 1;
  if (name == "isinstance") {
    Condition c = is_instance(e);
    return c.known ? sugar_constant(Value(*c.known)) : sugar(c.value);
  }
  if (name == "annotate" || name == "unchecked_cast") {
    TypePtr type = type_argument(argument(0));
    Variable* v = value(argument(1), type);
    if (name == "annotate") {
      if (type->is(TypeKind::Number) && is_tensor(v->type())) return sugar(one(e, "aten::ScalarImplicit", {v}, type));
      return sugar(coerced(e, v, type, "annotate"));
    }
    return sugar(one(e, "prim::unchecked_cast", {v}, type));
  }
  if (name == "uninitialized") return sugar(one(e, "prim::Uninitialized", {}, type_argument(argument(0))));
  if (name == "is_scripting") return sugar_constant(Value(true));
  if (name == "is_tracing") return sugar_constant(Value(false));
  if (name == "range" || name == "enumerate" || name == "zip" || name == "reversed") {
    auto s = std::make_shared<Sugared>();
    s->kind = Sugared::Kind::Range;
    s->name = name;
    for (size_t i = 0; i < count; ++i) {
      const Tree& a = argument(i);
      s->parts.push_back(expression(a.kind == Syntax::Keyword ? *a.children[0] : a));
    }
    return s;
  }
  if (name == "getattr") {
    if (argument(1).kind != Syntax::String) fail_at(e, "getattr's second argument must be a string literal");
    return attribute_of(e, expression(argument(0)), argument(1).text);
  }
  if (name == "hasattr") {
    if (argument(1).kind != Syntax::String) fail_at(e, "hasattr's second argument must be a string literal");
    Variable* v = value(argument(0));
    bool has =
        v->type()->cls && (v->type()->cls->find(argument(1).text) >= 0 || v->type()->cls->method(argument(1).text));
    if (v->type()->cls)
      for (const auto& [key, c] : v->type()->cls->constants) has |= key == argument(1).text;
    return sugar_constant(Value(has));
  }
  if (name == "len") {
    SugaredPtr s = modules_of(e, expression(argument(0)));
    if (s->kind == Sugared::Kind::Values || s->kind == Sugared::Kind::Modules)
      return sugar(constant(Value(static_cast<int64_t>(s->parts.size()))));
    return builtin(e, "aten::len", {{"", as_value(e, s)}});
  }
  if (name == "print") {
    std::vector<Variable*> inputs;
    for (const Argument& a : arguments_of(e)) inputs.push_back(a.value);
    insert(e, "prim::Print", inputs, {});
    return sugar(constant(Value()));
  }
  if (name == "min" || name == "max" || name == "abs") {
    std::vector<Argument> a = arguments_of(e);
    bool tensors = !a.empty() && is_tensor(a[0].value->type());
    if (tensors) return builtin(e, "aten::" + name, a);
    while (a.size() > 2) {
      Variable* first = as_value(e, builtin(e, "prim::" + name, {a[0], a[1]}));
      a.erase(a.begin());
      a[0] = {"", first};
    }
    return builtin(e, "prim::" + name, a);
  }
  if (name == "list") {
    if (count == 0)
      return sugar(one(e, "prim::ListConstruct", {}, hint && is_list(hint) ? hint : list_type(tensor_type())));
    Iterable it = iterable_of(argument(0));
    if (it.is_fixed) {
      std::vector<Variable*> parts;
      for (const SugaredPtr& p : it.fixed) parts.push_back(as_value(e, p));
      if (parts.empty()) fail_at(e, "list() of an empty tuple");
      return sugar(one(e, "prim::ListConstruct", parts, list_type(without_details(parts[0]->type()))));
    }
    Variable* out = nullptr;
    Node* trial = insert(e, "prim::Loop", {}, {});
    Block* current = graph_.current();
    graph_.set_current(trial->add_block());
    TypePtr element = as_value(e, it.item(trial->blocks()[0]->add_input(int_type())))->type();
    graph_.set_current(current);
    graph_.erase(trial);
    out = one(e, "prim::ListConstruct", {}, list_type(without_details(element)));
    Node* node = insert(e, "prim::Loop", {it.length, constant(Value(true))}, {});
    Block* block = node->add_block();
    Variable* index = block->add_input(int_type());
    graph_.set_current(block);
    builtin(e, "aten::append", {{"", out}, {"", as_value(e, it.item(index))}});
    block->outputs.push_back(constant(Value(true)));
    graph_.set_current(current);
    return sugar(out);
  }
  if (name == "dict" && count == 0)
    return sugar(
        one(e, "prim::DictConstruct", {}, hint && is_dict(hint) ? hint : dict_type(string_type(), tensor_type())));
  if (name == "tuple") {
    auto s = std::make_shared<Sugared>();
    s->kind = Sugared::Kind::Values;
    s->parts = parts_of(e, expression(argument(0)));
    return s;
  }
  if (name == "fork") {
    SugaredPtr function = expression(argument(0));
    Tree inner = e;
    inner.children.erase(inner.children.begin());
    SugaredPtr result = call(inner, nullptr);
    Variable* v = as_value(e, result);
    return sugar(one(e, "prim::unchecked_cast", {v}, future_type(v->type())));
  }
  if (name == "wait") {
    Variable* v = value(argument(0));
    if (!v->type()->is(TypeKind::Future)) fail_at(e, "wait takes what fork gave");
    return sugar(one(e, "prim::unchecked_cast", {v}, v->type()->element()));
  }
  if (name == "aten::device" || name == "device") return create(e, simple_type(TypeKind::Device), arguments_of(e));
  if (name == "divmod" || name == "sum" || name == "any" || name == "all" || name == "round" || name == "sorted" ||
      name == "pow") {
    std::vector<Argument> a = arguments_of(e);
    return builtin(e, "aten::" + name, a);
  }
  done = false;
  return nullptr;
}

}  // namespace umbra::jit
