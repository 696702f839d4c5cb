// Functions that the compiler knows by name: Python's own, and torch.jit's.
#include <limits>
#include <unordered_map>

#include "jit/builtin_rules.h"
#include "jit/emitter.h"

namespace umbra::jit {

/// A call of a function known by name.
struct Emitter::SpecialCall {
  const Tree& e;
  const std::string& name;
  const TypePtr& hint;

  size_t count() const { return e.children.size() - 1; }
  const Tree& argument(size_t i) const {
    if (i >= count()) fail_at(e, name, "() is missing an argument");
    return *e.children[i + 1];
  }
  const std::string& literal(size_t i) const {
    if (argument(i).kind != Syntax::String) fail_at(argument(i), name, "'s second argument must be a string literal");
    return argument(i).text;
  }
};

SugaredPtr Emitter::call_special(const Tree& e, const std::string& name, const TypePtr& hint) {
  using Special = SugaredPtr (Emitter::*)(const SpecialCall&);
  static const std::unordered_map<std::string_view, Special> table = {
      {"isinstance", &Emitter::call_isinstance},
      {"annotate", &Emitter::call_annotate},
      {"unchecked_cast", &Emitter::call_annotate},
      {"uninitialized", &Emitter::call_uninitialized},
      {"is_scripting", &Emitter::call_is_scripting},
      {"is_tracing", &Emitter::call_is_scripting},
      {"is_compiling", &Emitter::call_is_scripting},
      {"range", &Emitter::call_range},
      {"enumerate", &Emitter::call_range},
      {"zip", &Emitter::call_range},
      {"slice", &Emitter::call_slice},
      {"getattr", &Emitter::call_getattr},
      {"hasattr", &Emitter::call_hasattr},
      {"len", &Emitter::call_len},
      {"print", &Emitter::call_print},
      {"min", &Emitter::call_extreme},
      {"max", &Emitter::call_extreme},
      {"abs", &Emitter::call_extreme},
      {"list", &Emitter::call_list},
      {"dict", &Emitter::call_dict},
      {"aten::dict", &Emitter::call_dict},
      {"tuple", &Emitter::call_tuple},
      {"fork", &Emitter::call_fork},
      {"wait", &Emitter::call_wait},
      {"aten::wait", &Emitter::call_wait},
      {"device", &Emitter::call_device},
      {"aten::device", &Emitter::call_device},
      {"aten::_assert", &Emitter::call_assert},
  };
  auto found = table.find(name);
  return found == table.end() ? nullptr : (this->*found->second)({e, name, hint});
}

SugaredPtr Emitter::call_isinstance(const SpecialCall& c) {
  Condition condition = is_instance(c.e);
  return condition.known ? sugar_constant(Value(*condition.known)) : sugar(condition.value);
}

SugaredPtr Emitter::call_annotate(const SpecialCall& c) {
  TypePtr type = type_argument(c.argument(0));
  Variable* v = value(c.argument(1), type);
  if (c.name == "unchecked_cast") return sugar(one(c.e, "prim::unchecked_cast", {v}, type));
  if (type->is(TypeKind::Number) && is_tensor(v->type())) return sugar(one(c.e, "aten::ScalarImplicit", {v}, type));
  return sugar(coerced(c.e, v, type, "annotate"));
}

SugaredPtr Emitter::call_uninitialized(const SpecialCall& c) {
  return sugar(one(c.e, "prim::Uninitialized", {}, type_argument(c.argument(0))));
}

SugaredPtr Emitter::call_is_scripting(const SpecialCall& c) { return sugar_constant(Value(c.name == "is_scripting")); }

SugaredPtr Emitter::call_range(const SpecialCall& c) {
  auto s = std::make_shared<Sugared>();
  s->kind = Sugared::Kind::Range;
  s->name = c.name;
  for (size_t i = 0; i < c.count(); ++i) {
    const Tree& a = c.argument(i);
    s->parts.push_back(expression(a.kind == Syntax::Keyword ? *a.children[0] : a));
  }
  return s;
}

namespace {
bool is_none_part(const Sugared& s) {
  if (s.kind == Sugared::Kind::Constant) return s.value.is_none();
  return s.kind == Sugared::Kind::Variable && s.variable->type()->is(TypeKind::None);
}
}  // namespace

/// slice(start, stop, step), to be used as an index.
SugaredPtr Emitter::call_slice(const SpecialCall& c) {
  for (size_t i = 0; i < c.count(); ++i)
    if (c.argument(i).kind == Syntax::Keyword) fail_at(c.e, "Slice does not accept any keyword arguments");
  if (c.count() == 0 || c.count() > 3) fail_at(c.e, "slice accepts exactly 1, 2 or 3 arguments, got: ", c.count());
  SugaredPtr s = call_range(c);
  if (s->parts.size() == 1) s->parts.insert(s->parts.begin(), sugar_constant(Value()));
  while (s->parts.size() < 3) s->parts.push_back(sugar_constant(Value()));
  // A bound that is None is one that goes all the way.
  const int64_t whole[] = {0, std::numeric_limits<int64_t>::max(), 1};
  for (size_t i = 0; i < 3; ++i)
    if (is_none_part(*s->parts[i])) s->parts[i] = sugar_constant(Value(whole[i]));
  return s;
}

SugaredPtr Emitter::call_getattr(const SpecialCall& c) {
  if (c.count() < 2 || c.count() > 3)
    fail_whole(c.e, "getattr expected to have number of arguments between 2 and 3 but found ", c.count());
  SugaredPtr object = expression(c.argument(0));
  const std::string& name = c.literal(1);
  if (c.count() == 2 || has_attribute(c, object, name)) return attribute_of(c.e, object, name);
  return expression(c.argument(2));
}

SugaredPtr Emitter::call_hasattr(const SpecialCall& c) {
  if (c.count() != 2) fail_whole(c.e, "hasattr expected exactly 2 arguments but found ", c.count());
  const std::string& name = c.literal(1);
  return sugar_constant(Value(has_attribute(c, expression(c.argument(0)), name)));
}

bool Emitter::has_attribute(const SpecialCall& c, const SugaredPtr& object, const std::string& name) {
  Variable* v = as_value(c.e, object);
  const ClassPtr& cls = v->type()->cls;
  const auto& fields = v->type()->fields;
  if (!cls && fields.empty())
    fail_whole(c.e, "hasattr's first argument must be an object or NamedTuple, ",
               v->type()->is(TypeKind::Tuple) ? "but got a normal Tuple " : "got ", v->type()->annotation(),
               " instead");
  bool has = std::ranges::find(fields, name) != fields.end();
  has |= cls && (cls->find(name) >= 0 || cls->method(name) || cls->overloads.contains(name));
  if (cls)
    for (const auto& [key, constant] : cls->constants) has |= key == name;
  return has;
}

SugaredPtr Emitter::call_len(const SpecialCall& c) {
  SugaredPtr s = modules_of(c.e, expression(c.argument(0)));
  if (s->kind == Sugared::Kind::Values || s->kind == Sugared::Kind::Modules)
    return sugar(constant(Value(static_cast<int64_t>(s->parts.size()))));
  return builtin(c.e, "aten::len", {{"", as_value(c.e, s)}});
}

SugaredPtr Emitter::call_print(const SpecialCall& c) {
  Variables inputs;
  for (const Argument& a : arguments_of(c.e)) {
    if (!a.name.empty()) fail_at(c.e, "print doesn't accept any keyword arguments");
    inputs.push_back(a.value);
  }
  insert(c.e, "prim::Print", inputs, {});
  return sugar(constant(Value()));
}

SugaredPtr Emitter::call_extreme(const SpecialCall& c) {
  std::vector<Argument> a = arguments_of(c.e);
  if (!a.empty() && is_tensor(a[0].value->type())) return builtin(c.e, "aten::" + c.name, a);
  while (a.size() > 2) {
    Variable* first = as_value(c.e, builtin(c.e, "prim::" + c.name, {a[0], a[1]}));
    a.erase(a.begin());
    a[0] = {"", first};
  }
  return builtin(c.e, "prim::" + c.name, a);
}

SugaredPtr Emitter::call_list(const SpecialCall& c) {
  if (c.count() == 0)
    return sugar(one(c.e, "prim::ListConstruct", {}, c.hint && is_list(c.hint) ? c.hint : list_type(tensor_type())));
  Iterable it = iterable_of(c.argument(0));
  if (it.is_fixed) {
    Variables parts;
    for (const SugaredPtr& p : it.fixed) {
      parts.push_back(as_value(c.e, p));
      if (!is_subtype(parts.back()->type(), without_details(parts[0]->type())))
        fail_at(c.e, "List type must be the same for all elements, but found ", parts[0]->type()->annotation(), " and ",
                parts.back()->type()->annotation());
    }
    if (parts.empty()) fail_at(c.e, "list() of an empty tuple");
    return sugar(one(c.e, "prim::ListConstruct", parts, list_type(without_details(parts[0]->type()))));
  }
  TypePtr element;
  try_body(c.e, [&](Variable* i) { element = without_details(as_value(c.e, it.item(i))->type()); });
  Variable* out = one(c.e, "prim::ListConstruct", {}, list_type(element));
  plain_loop(c.e, it.length, [&](Variable* i) {
    builtin(c.e, "aten::append", {{"", out}, {"", as_value(c.e, it.item(i))}});
  });
  return sugar(out);
}

SugaredPtr Emitter::call_dict(const SpecialCall& c) {
  if (c.count() == 0)
    return sugar(one(c.e, "prim::DictConstruct", {},
                     c.hint && is_dict(c.hint) ? c.hint : dict_type(string_type(), tensor_type())));
  std::vector<Argument> given = arguments_of(c.e);
  if (given[0].name.empty()) {
    if (given.size() > 1) fail_at(c.e, "dict() takes one sequence of pairs, or keywords");
    return builtin(c.e, "aten::dict", given);
  }
  Variables parts;
  TypePtr element;
  for (const Argument& a : given) {
    parts.push_back(constant(Value(a.name)));
    parts.push_back(a.value);
    element = element ? unify(element, a.value->type()) : without_details(a.value->type());
    if (!element) fail_at(c.e, "Dict values must be of one type");
  }
  return sugar(one(c.e, "prim::DictConstruct", parts, dict_type(string_type(), element)));
}

SugaredPtr Emitter::call_tuple(const SpecialCall& c) {
  auto s = std::make_shared<Sugared>();
  s->kind = Sugared::Kind::Values;
  s->parts = parts_of(c.e, expression(c.argument(0)));
  return s;
}

/// What is forked runs at once; the value is a future by its type alone.
SugaredPtr Emitter::call_fork(const SpecialCall& c) {
  Variable* v = nullptr;
  if (c.count() == 1 && c.argument(0).kind == Syntax::Name && c.argument(0).text == "__forked_function" && forked_) {
    v = value(*forked_);
  } else {
    Tree inner = c.e;
    inner.children.erase(inner.children.begin());
    v = as_value(c.e, call(inner, nullptr));
  }
  return sugar(one(c.e, "prim::unchecked_cast", {v}, future_type(v->type())));
}

SugaredPtr Emitter::call_wait(const SpecialCall& c) {
  Variable* v = value(c.argument(0));
  if (!v->type()->is(TypeKind::Future)) fail_at(c.e, "wait takes what fork gave");
  return sugar(one(c.e, "prim::unchecked_cast", {v}, v->type()->element()));
}

SugaredPtr Emitter::call_device(const SpecialCall& c) {
  std::vector<Argument> arguments = arguments_of(c.e);
  for (Argument& a : arguments)
    if (a.name == "type" || a.name == "index" || a.name == "device") a.name.clear();
  if (arguments.size() == 2) return builtin(c.e, "aten::device", std::move(arguments));
  return create(c.e, simple_type(TypeKind::Device), std::move(arguments));
}

/// torch._assert(condition, message): the statement as a function, whose arguments are computed before the question.
SugaredPtr Emitter::call_assert(const SpecialCall& c) {
  Variable* given[2] = {};
  size_t place = 0;
  for (const Argument& a : arguments_of(c.e)) {
    size_t i = a.name.empty() ? place++ : a.name == "condition" ? 0 : a.name == "message" ? 1 : 2;
    if (i >= 2 || given[i]) fail_at(c.e, "_assert takes a condition and a message, each once");
    given[i] = a.value;
  }
  if (!given[0] || !given[1]) fail_at(c.e, "_assert takes a condition and a message, each once");
  Condition condition;
  condition.value = truth(c.e, given[0]);
  raise_unless(c.e, condition, [&] { return given[1]; });
  return sugar(constant(Value()));
}

}  // namespace umbra::jit
