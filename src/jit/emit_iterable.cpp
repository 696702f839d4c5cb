// What loops and comprehensions go over.
#include <algorithm>

#include "jit/builtin_rules.h"
#include "jit/emitter.h"

namespace umbra::jit {

namespace {

SugaredPtr together(std::vector<SugaredPtr> parts) {
  auto out = std::make_shared<Sugared>();
  out->kind = Sugared::Kind::Values;
  out->parts = std::move(parts);
  return out;
}

}  // namespace

bool by_name(const Sugared& s) {
  return s.kind == Sugared::Kind::Modules && s.variable &&
         (s.variable->type()->cls->name.ends_with("ModuleDict") ||
          s.variable->type()->cls->name.ends_with("ParameterDict"));
}

Emitter::Iterable Emitter::iterable_of(const Tree& e) { return iterable(e, expression(e)); }

Emitter::Iterable Emitter::iterable(const Tree& at, const SugaredPtr& given) {
  SugaredPtr s = modules_of(at, given);
  if (s->kind == Sugared::Kind::Range && s->name == "range") return range_of(at, *s);
  if (s->kind == Sugared::Kind::Range && s->name == "enumerate") return enumerated(at, *s);
  if (s->kind == Sugared::Kind::Range && s->name == "zip") return zipped(at, *s);
  if (s->kind == Sugared::Kind::Type && s->type->is(TypeKind::Enum)) return members_of(at, s->type);
  bool fixed = s->kind == Sugared::Kind::Values || s->kind == Sugared::Kind::Modules ||
               (s->kind == Sugared::Kind::Constant && s->value.is_list()) ||
               (s->kind == Sugared::Kind::Variable && s->variable->type()->is(TypeKind::Tuple));
  Iterable it;
  if (fixed) {
    it.is_fixed = true;
    it.fixed = parts_of(at, s);
    for (size_t i = 0; by_name(*s) && i < s->keys.size(); ++i) it.fixed[i] = sugar_constant(Value(s->keys[i]));
    return it;
  }
  Variable* v = as_value(at, s);
  if (is_dict(v->type())) v = as_value(at, builtin(at, "aten::keys", {{"", v}}));
  if (v->type()->is(TypeKind::Tensor))
    v = as_value(at, builtin(at, "aten::unbind", {{"", v}, {"", constant(Value(0))}}));
  if (!is_list(v->type()) && !is_string(v->type()))
    fail_at(at, "'", v->type()->annotation(), "' object is not iterable");
  it.length = as_value(at, builtin(at, "aten::len", {{"", v}}));
  it.item = [this, v, &at](Variable* i) { return builtin(at, "aten::__getitem__", {{"", v}, {"", i}}); };
  return it;
}

Emitter::Iterable Emitter::range_of(const Tree& at, const Sugared& s) {
  Iterable it;
  Variables a;
  for (const SugaredPtr& p : s.parts) {
    a.push_back(as_value(at, p));
    if (a.back()->type()->is(TypeKind::Tensor)) a.back() = one(at, "aten::IntImplicit", {a.back()}, int_type());
    if (!is_int(a.back()->type())) fail_at(at, "range() takes integers, but got ", a.back()->type()->annotation());
  }
  if (a.empty() || a.size() > 3) fail_at(at, "range expected at least 1 arguments, got ", a.size());
  if (a.size() == 1) {
    it.length = a[0];
    it.item = [](Variable* i) { return sugar(i); };
    return it;
  }
  if (a.size() == 2) a.push_back(constant(Value(1)));
  it.length = one(at, "aten::__range_length", a, int_type());
  it.item = [this, a, &at](Variable* i) { return sugar(one(at, "aten::__derive_index", {i, a[0], a[2]}, int_type())); };
  return it;
}

Emitter::Iterable Emitter::enumerated(const Tree& at, const Sugared& s) {
  if (s.parts.empty()) fail_at(at, "enumerate expected at least 1 arguments, got 0");
  if (s.parts.size() > 2) fail_at(at, "enumerate expected at most 2 arguments, got ", s.parts.size());
  Iterable it, inner = iterable(at, s.parts[0]);
  Variable* start = s.parts.size() > 1 ? as_value(at, s.parts[1]) : nullptr;
  auto number = [this, start, &at](Variable* i) {
    return start ? builtin(at, "aten::add", {{"", start}, {"", i}}) : sugar(i);
  };
  if (inner.is_fixed) {
    it.is_fixed = true;
    for (size_t i = 0; i < inner.fixed.size(); ++i)
      it.fixed.push_back(together({number(constant(Value(static_cast<int64_t>(i)))), inner.fixed[i]}));
    return it;
  }
  it.length = inner.length;
  it.item = [inner, number](Variable* i) { return together({number(i), inner.item(i)}); };
  return it;
}

Emitter::Iterable Emitter::zipped(const Tree& at, const Sugared& s) {
  Iterable it;
  std::vector<Iterable> all;
  bool fixed = false;
  size_t shortest = SIZE_MAX;
  for (const SugaredPtr& p : s.parts) {
    all.push_back(iterable(at, p));
    fixed |= all.back().is_fixed;
    if (all.back().is_fixed) shortest = std::min(shortest, all.back().fixed.size());
  }
  if (all.empty()) fail_at(at, "zip expected at least 1 arguments, got 0");
  for (const Iterable& it : all)  // nobody could know when such a loop ends
    if (fixed && !it.is_fixed)
      fail_whole(
          at,
          "Can not iterate over a module list or tuple with a value that does not have a statically determinable "
          "length\n");
  if (fixed) {
    it.is_fixed = true;
    for (size_t i = 0; i < shortest; ++i) {
      std::vector<SugaredPtr> parts;
      for (Iterable& one_of : all) parts.push_back(one_of.fixed[i]);
      it.fixed.push_back(together(std::move(parts)));
    }
    return it;
  }
  it.length = all[0].length;
  for (size_t i = 1; i < all.size(); ++i)
    it.length = as_value(at, builtin(at, "prim::min", {{"", it.length}, {"", all[i].length}}));
  it.item = [all](Variable* i) {
    std::vector<SugaredPtr> parts;
    for (const Iterable& one_of : all) parts.push_back(one_of.item(i));
    return together(std::move(parts));
  };
  return it;
}

/// `for member in Colour`: a list of the enum's members.
Emitter::Iterable Emitter::members_of(const Tree& at, const TypePtr& type) {
  Variables members;
  for (size_t i = 0; i < type->cls->constants.size(); ++i)
    members.push_back(constant(Value::object(make_counted<EnumValue>(type->cls, i)), type));
  return iterable(at, sugar(one(at, "prim::ListConstruct", members, list_type(type))));
}

}  // namespace umbra::jit
