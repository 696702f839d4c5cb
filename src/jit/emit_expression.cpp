// Expressions.
#include <algorithm>

#include "jit/builtin_rules.h"
#include "jit/emitter.h"

namespace umbra::jit {

namespace {

bool may_be_none(const TypePtr& t) {
  return t->is(TypeKind::Optional) || t->is(TypeKind::None) || (t->is(TypeKind::Union) && is_subtype(none_type(), t));
}

bool compares_with_none(const Tree& e) {
  if (e.kind != Syntax::Compare || (e.text != "is" && e.text != "is not")) return false;
  auto is_none = [](const Tree& t) { return t.kind == Syntax::Constant && t.text == "None"; };
  return is_none(*e.children[0]) || is_none(*e.children[1]);
}

/// The type without None.
TypePtr not_none(const TypePtr& t) {
  if (t->is(TypeKind::Optional)) return t->element();
  if (!t->is(TypeKind::Union)) return t;
  std::vector<TypePtr> rest;
  for (const TypePtr& e : t->elements)
    if (!e->is(TypeKind::None)) rest.push_back(e);
  return union_type(std::move(rest));
}

/// The members of a type that fit, or do not.
template <class Fits> TypePtr narrowed(const TypePtr& t, const Fits& fits, bool inside) {
  std::vector<TypePtr> members, kept;
  if (t->is(TypeKind::Optional)) members = {t->element(), none_type()};
  else if (t->is(TypeKind::Union)) members = t->elements;
  else members = {t};
  for (const TypePtr& m : members)
    if (fits(m) == inside) kept.push_back(m);
  return kept.empty() ? nullptr : union_type(std::move(kept));
}

}  // namespace

Variable* Emitter::value(const Tree& e, const TypePtr& hint) {
  Compilation::reach(e);
  return as_value(e, expression(e, hint));
}

Variable* Emitter::as_value(const Tree& at, const SugaredPtr& s) {
  switch (s->kind) {
    case Sugared::Kind::Variable: return s->variable;
    case Sugared::Kind::Constant: return constant(s->value);
    case Sugared::Kind::Values: {
      Variables parts;
      for (const SugaredPtr& p : s->parts) parts.push_back(as_value(at, p));
      Variable* v = tuple(at, parts);
      if (s->type) v->set_type(s->type);
      return v;
    }
    case Sugared::Kind::Range: {
      if (s->name == "slice") fail_at(at, "Python slice value cannot be used as a value");
      if (s->name != "range") break;
      Iterable it = iterable(at, s);
      fail_at(at, "a range can only be looped over");
    }
    case Sugared::Kind::Function: {
      Node* node = insert(at, "prim::Constant", {}, {simple_type(TypeKind::Function)});
      node->callee = s->function;
      node->set_attribute("name", Value(s->function->name));
      return node->output();
    }
    case Sugared::Kind::Modules: {
      if (s->variable) return s->variable;
      break;
    }
    case Sugared::Kind::Python:
      fail_at(at, "Python object of type '", s->name, "' cannot be used as a value in TorchScript");
    default: break;
  }
  if (s->kind == Sugared::Kind::Builtin ||
      (s->kind == Sugared::Kind::Method && s->self->kind == Sugared::Kind::Variable &&
       s->self->variable->type()->is(TypeKind::Tensor)))
    fail_at(at, "builtin cannot be used as a value");
  fail_at(at, "'", s->name.empty() ? "this" : s->name, "' cannot be used as a value");
}

SugaredPtr Emitter::expression(const Tree& e, const TypePtr& hint) {
  if (++depth_ > 500) fail_at(e, "the program is nested too deeply");
  struct Leave {
    int& depth;
    ~Leave() { --depth; }
  } leave{depth_};
  switch (e.kind) {
    case Syntax::Name: return lookup(e, e.text);
    case Syntax::Number: return number(e);
    case Syntax::String: return sugar(constant(Value(e.text)));
    case Syntax::Constant:
      if (e.text == "...") fail_at(e, "'...' can only stand in an index");
      return sugar(constant(e.text == "None" ? Value() : Value(e.text == "True")));
    case Syntax::Attribute: return attribute(e);
    case Syntax::Subscript: return subscript(e, hint);
    case Syntax::Call: return call(e, hint);
    case Syntax::Tuple: return tuple_of(e, hint);
    case Syntax::List: return list(e, hint);
    case Syntax::Dict: return dict(e, hint);
    case Syntax::ListComp:
    case Syntax::DictComp: return comprehension(e, hint);
    case Syntax::IfElse: return if_else(e, hint);
    case Syntax::And:
    case Syntax::Or:
    case Syntax::Not: return short_circuit(e);
    case Syntax::Compare: return compare(e);
    case Syntax::Format: return format(e);
    case Syntax::Unary: return unary(e);
    case Syntax::Binary: return binary(e);
    case Syntax::Starred: fail_at(e, "a starred expression cannot stand here");
    default: fail_at(e, "this expression is not supported");
  }
}

SugaredPtr Emitter::tuple_of(const Tree& e, const TypePtr& hint) {
  auto s = std::make_shared<Sugared>();
  s->kind = Sugared::Kind::Values;
  bool typed = hint && hint->is(TypeKind::Tuple) && hint->elements.size() == e.children.size();
  for (size_t i = 0; i < e.children.size(); ++i) {
    const Tree& c = *e.children[i];
    if (c.kind == Syntax::Starred) {
      for (const SugaredPtr& p : parts_of(c, expression(*c.children[0]))) s->parts.push_back(p);
      continue;
    }
    s->parts.push_back(expression(c, typed ? hint->elements[i] : nullptr));
  }
  return s;
}

SugaredPtr Emitter::unary(const Tree& e) {
  Variable* v = value(*e.children[0]);
  if (e.text == "+") return sugar(v);
  if (e.text == "-" && v->node()->is("prim::Constant")) {
    const Value* c = v->node()->attribute("value");
    if (c && c->is_int()) return sugar(constant(Value(-c->to_int())));
    if (c && c->is_double()) return sugar(constant(Value(-c->to_double())));
  }
  return builtin(e, e.text == "-" ? "aten::neg" : "aten::bitwise_not", {{"", v}});
}

SugaredPtr Emitter::binary(const Tree& e) {
  static const std::map<std::string, std::string> names = {
      {"+", "aten::add"},       {"-", "aten::sub"},       {"*", "aten::mul"},         {"/", "aten::div"},
      {"%", "aten::remainder"}, {"//", "aten::floordiv"}, {"**", "aten::pow"},        {"&", "aten::__and__"},
      {"|", "aten::__or__"},    {"^", "aten::__xor__"},   {"<<", "aten::__lshift__"}, {">>", "aten::__rshift__"},
      {"@", "aten::matmul"}};
  SugaredPtr left = expression(*e.children[0]);
  if (e.text == "%" && left->kind == Sugared::Kind::Variable && left->variable->type()->is(TypeKind::String)) {
    return builtin(e, "aten::percentFormat", {{"", left->variable}, {"", value(*e.children[1])}});
  }
  Variable* a = as_value(e, left);
  Variable* b = value(*e.children[1]);
  if (a->type()->is(TypeKind::Tuple) && b->type()->is(TypeKind::Tuple) && e.text == "+") {
    auto s = std::make_shared<Sugared>();
    s->kind = Sugared::Kind::Values;
    for (Variable* v : {a, b})
      for (const SugaredPtr& p : parts_of(e, sugar(v))) s->parts.push_back(p);
    return s;
  }
  return builtin(e, names.at(e.text), {{"", a}, {"", b}});
}

SugaredPtr Emitter::number(const Tree& e) {
  std::string text;
  for (char c : e.text)
    if (c != '_') text += c;
  if (text.ends_with("j") || text.ends_with("J"))
    return sugar(constant(Value(std::complex<double>(0, std::strtod(text.c_str(), nullptr)))));
  bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (!hexadecimal && text.find_first_of(".eE") != std::string::npos)
    return sugar(constant(Value(std::strtod(text.c_str(), nullptr))));
  errno = 0;
  bool binary = text.starts_with("0b");
  int64_t v = std::strtoll(text.c_str() + (binary || text.starts_with("0o") ? 2 : 0), nullptr,
                           hexadecimal              ? 16
                           : binary                 ? 2
                           : text.starts_with("0o") ? 8
                                                    : 10);
  if (errno) fail_at(e, "the number does not fit 64 bits");
  return sugar(constant(Value(v)));
}

SugaredPtr Emitter::format(const Tree& e) {
  std::string pattern;
  std::vector<Argument> arguments{{"", nullptr}};
  for (const TreePtr& c : e.children) {
    if (c->kind == Syntax::String) {
      pattern += c->text;
    } else {
      pattern += "{}";
      arguments.push_back({"", value(*c)});
    }
  }
  arguments[0].value = constant(Value(pattern));
  return builtin(e, "aten::format", arguments);
}

// ---- conditions ----

Variable* Emitter::truth(const Tree& at, Variable* v) {
  if (v->type()->is(TypeKind::Bool)) return v;
  if (v->type()->is(TypeKind::Tensor) || is_real(v->type()) || v->type()->is(TypeKind::Number))
    return as_value(at, builtin(at, "aten::Bool", {{"", v}}));
  if (is_list(v->type()) || is_dict(v->type()) || is_string(v->type())) {
    Variable* length = as_value(at, builtin(at, "aten::len", {{"", v}}));
    return as_value(at, builtin(at, "aten::Bool", {{"", length}}));
  }
  if (v->type()->is(TypeKind::Class) && v->type()->cls->method("__bool__")) {
    Variable* said = as_value(at, call_method(at, v, "__bool__", {}));
    if (!is_bool(said->type()))
      fail_at(at, "expected a bool expression for condition but found ", said->type()->annotation());
    return said;
  }
  fail_at(at, "Could not cast value of type ", v->type()->annotation(), " to bool");
}

Condition Emitter::condition(const Tree& e) {
  if (e.kind == Syntax::Not) {
    Condition c = condition(*e.children[0]);
    std::swap(c.if_true, c.if_false);
    if (c.known) c.known = !*c.known;
    c.value = negated(e, c.value);
    return c;
  }
  if (compares_with_none(e)) return is_none(e);
  if (e.kind == Syntax::Call && e.children[0]->kind == Syntax::Name && e.children[0]->text == "isinstance")
    return is_instance(e);
  if (e.kind == Syntax::Call && e.children[0]->kind == Syntax::Attribute && e.children[0]->text == "isinstance")
    return is_instance(e);
  if (e.kind == Syntax::And || e.kind == Syntax::Or) return both_conditions(e);
  Condition c;
  if (e.kind == Syntax::Constant && e.text != "None") c.known = e.text == "True";
  SugaredPtr s = expression(e);
  if (s->kind == Sugared::Kind::Constant && s->value.is_bool()) c.known = s->value.to_bool();
  c.value = truth(e, as_value(e, s));
  return c;
}

/// `a and b`, `a or b`: the second is looked at only where the first leaves it open.
Condition Emitter::both_conditions(const Tree& e) {
  bool both = e.kind == Syntax::And;
  Condition left = condition(*e.children[0]);
  if (left.known && *left.known != both) return left;
  if (left.known) {
    refine(both ? left.if_true : left.if_false);
    return condition(*e.children[1]);
  }
  Condition right;
  Condition out;
  Environment before = env_;
  Node* node = insert(e, "prim::If", {left.value}, {bool_type()});
  outer_.push_back(&before);
  for (bool first : {true, false}) {
    Block* block = node->add_block();
    Block* current = graph_.current();
    graph_.set_current(block);
    env_ = before;
    if (first == both) {
      refine(both ? left.if_true : left.if_false);
      right = condition(*e.children[1]);
      block->outputs.push_back(right.value);
    } else {
      block->outputs.push_back(constant(Value(!both)));
    }
    graph_.set_current(current);
  }
  outer_.pop_back();
  env_ = before;
  out.value = node->output();
  // A second that ends the question whatever the first says, as in `x.flag and not is_scripting()`.
  if (right.known && *right.known != both) {
    out.known = right.known;
    out.value = constant(Value(*out.known));
  }
  // Both hold in one answer; in the other, only what is told either way.
  Refinements& sure = both ? out.if_true : out.if_false;
  sure = both ? left.if_true : left.if_false;
  for (const auto& [name, type] : both ? right.if_true : right.if_false) sure[name] = type;
  return out;
}

Condition Emitter::is_none(const Tree& e) {
  const Tree& left = *e.children[0];
  const Tree& other = left.kind == Syntax::Constant && left.text == "None" ? *e.children[1] : left;
  bool wanted = e.text == "is";
  Variable* v = value(other);
  Condition c;
  if (v->type()->is(TypeKind::None)) c.known = wanted;
  else if (!may_be_none(v->type())) c.known = !wanted;
  if (c.known) c.value = constant(Value(*c.known));
  else c.value = one(e, wanted ? "aten::__is__" : "aten::__isnot__", {v, constant(Value())}, bool_type());
  if (other.kind == Syntax::Name && !c.known) {
    (wanted ? c.if_true : c.if_false)[other.text] = none_type();
    (wanted ? c.if_false : c.if_true)[other.text] = not_none(v->type());
  }
  return c;
}

Emitter::InstanceTest Emitter::instance_test(const Tree& e, const TypePtr& type) {
  InstanceTest test;
  auto is_module_class = [&](const Tree& t) {
    bool named = t.kind == Syntax::Name || t.kind == Syntax::Attribute;
    std::optional<bool> is = named ? resolver_.module_instance(type, path_of(t)) : std::nullopt;
    test.of_modules |= is.has_value();
    test.is_module |= is.value_or(false);
    return is.has_value();
  };
  auto add = [&](auto&& self, const Tree& t) -> void {
    if (t.kind == Syntax::Tuple || t.kind == Syntax::List)
      for (const TreePtr& c : t.children) self(self, *c);
    else if (t.kind == Syntax::Name && t.text == "list") test.any_list = true;
    else if (t.kind == Syntax::Name && t.text == "tuple") test.any_tuple = true;
    else if (t.kind == Syntax::Name && t.text == "dict") test.any_dict = true;
    else if (!is_module_class(t)) test.types.push_back(type_argument(t));
  };
  add(add, e);
  return test;
}

bool Emitter::InstanceTest::accepts(const TypePtr& type) const {
  if (is_module) return true;
  if ((any_list && is_list(type)) || (any_tuple && type->is(TypeKind::Tuple)) || (any_dict && is_dict(type)))
    return true;
  return std::any_of(types.begin(), types.end(), [&](const TypePtr& t) { return is_subtype(type, t); });
}

/// What is asked of a value of any type when the program runs; nothing is known of it before.
Condition Emitter::is_instance_of_any(const Tree& e, Variable* v, InstanceTest test) {
  if (test.of_modules)
    fail_at(e, "isinstance of a class of modules and a value of type Any is not in Umbra's TorchScript yet");
  if (test.any_tuple) fail_at(e, "isinstance(x, tuple) of a value of type Any is not in Umbra's TorchScript yet");
  TypePtr any = simple_type(TypeKind::Any);
  bool one_of_types = !test.types.empty() && !test.any_list && !test.any_dict;
  Condition c;
  if (one_of_types && e.children[1]->kind == Syntax::Name) c.if_true[e.children[1]->text] = union_type(test.types);
  if (test.any_list) test.types.push_back(list_type(any));
  if (test.any_dict) test.types.push_back(dict_type(any, any));
  c.value = instance_node(e, v, test.types);
  return c;
}

Variable* Emitter::instance_node(const Tree& e, Variable* v, std::vector<TypePtr> types) {
  Node* node = insert(e, "prim::isinstance", {v}, {bool_type()});
  node->op_types = std::move(types);
  return node->output();
}

Condition Emitter::is_instance(const Tree& e) {
  if (e.children.size() != 3) fail_at(e, "isinstance takes a value and a type");
  Variable* v = value(*e.children[1]);
  InstanceTest test = instance_test(*e.children[2], v->type());
  if (v->type()->is(TypeKind::Any)) return is_instance_of_any(e, v, std::move(test));
  auto fits = [&](const TypePtr& t) { return test.accepts(t); };
  TypePtr in = narrowed(v->type(), fits, true), out = narrowed(v->type(), fits, false);
  Condition c;
  if (!out) c.known = true;
  else if (!in) c.known = false;
  if (c.known) {
    c.value = constant(Value(*c.known));
    return c;
  }
  if (e.children[1]->kind == Syntax::Name) {
    c.if_true[e.children[1]->text] = in;
    c.if_false[e.children[1]->text] = out;
  }
  c.value = instance_node(e, v, in->is(TypeKind::Union) ? in->elements : std::vector<TypePtr>{in});
  return c;
}

SugaredPtr Emitter::short_circuit(const Tree& e) { return sugar(condition(e).value); }

SugaredPtr Emitter::compare(const Tree& e) {
  if (e.text == "is" || e.text == "is not") {
    if (compares_with_none(e)) return sugar(condition(e).value);
    Variable *a = value(*e.children[0]), *b = value(*e.children[1]);
    return sugar(one(e, e.text == "is" ? "aten::__is__" : "aten::__isnot__", {a, b}, bool_type()));
  }
  if (e.text == "in" || e.text == "not in") {
    Variable* item = value(*e.children[0]);
    SugaredPtr container = expression(*e.children[1]);
    Variable* found = nullptr;
    if (container->kind == Sugared::Kind::Modules) {  // its keys are what is in it
      auto keys = std::make_shared<Sugared>();
      keys->kind = Sugared::Kind::Values;
      for (const std::string& key : container->keys) keys->parts.push_back(sugar_constant(Value(key)));
      container = keys;
    }
    bool fixed = container->kind == Sugared::Kind::Values ||
                 (container->kind == Sugared::Kind::Variable && container->variable->type()->is(TypeKind::Tuple));
    if (fixed) {
      for (const SugaredPtr& p : parts_of(e, container)) {
        Variable* same = truth(e, as_value(e, builtin(e, "aten::eq", {{"", item}, {"", as_value(e, p)}})));
        found = found ? one(e, "aten::__or__", {found, same}, bool_type()) : same;
      }
      if (!found) found = constant(Value(false));
    } else {
      found = as_value(e, builtin(e, "aten::__contains__", {{"", as_value(e, container)}, {"", item}}));
    }
    return sugar(e.text == "in" ? found : negated(e, found));
  }
  static const std::map<std::string, std::string> names = {{"==", "aten::eq"}, {"!=", "aten::ne"}, {"<", "aten::lt"},
                                                           {"<=", "aten::le"}, {">", "aten::gt"},  {">=", "aten::ge"}};
  Variable* a = value(*e.children[0]);
  Variable* b = value(*e.children[1]);
  return builtin(e, names.at(e.text), {{"", a}, {"", b}});
}

SugaredPtr Emitter::if_else(const Tree& e, const TypePtr& hint) {
  Condition c = condition(*e.children[0]);
  if (c.known) {
    refine(*c.known ? c.if_true : c.if_false);
    return expression(*e.children[*c.known ? 1 : 2], hint);
  }
  auto assign_result = [&](size_t i) {
    Variable* v = value(*e.children[i], hint);
    if (hint && is_subtype(v->type(), hint) && !same_type(v->type(), hint))
      v = one(e, "prim::unchecked_cast", {v}, hint);
    env_["$if"] = sugar(v);
  };
  branches(
      e, c, [&] { assign_result(1); }, [&] { assign_result(2); });
  SugaredPtr out = env_["$if"];
  env_.erase("$if");
  if (!out) fail_at(e, "the two values of an if-expression are of different types");
  return out;
}

std::vector<SugaredPtr> Emitter::parts_of(const Tree& at, const SugaredPtr& s) {
  if (s->kind == Sugared::Kind::Values || s->kind == Sugared::Kind::Modules) return s->parts;
  if (s->kind == Sugared::Kind::Constant && s->value.is_list()) {
    std::vector<SugaredPtr> out;
    for (const Value& v : s->value.list()) out.push_back(sugar_constant(v));
    return out;
  }
  Variable* v = as_value(at, s);
  if (is_list(v->type())) fail_at(at, "cannot statically infer the expected size of a list in this context");
  if (!v->type()->is(TypeKind::Tuple)) fail_at(at, v->type()->annotation(), " cannot be used as a tuple");
  if (v->node()->is("prim::TupleConstruct")) {
    std::vector<SugaredPtr> out;
    for (Variable* p : v->node()->inputs) out.push_back(sugar(p));
    return out;
  }
  Node* node = insert(at, "prim::TupleUnpack", {v}, {});
  std::vector<SugaredPtr> out;
  for (const TypePtr& t : v->type()->elements) out.push_back(sugar(node->add_output(t)));
  return out;
}

}  // namespace umbra::jit
