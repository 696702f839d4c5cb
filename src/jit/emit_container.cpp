// Lists, dicts and comprehensions, whose types come from their elements or from an annotation.
#include "jit/builtin_rules.h"
#include "jit/emitter.h"

namespace umbra::jit {

namespace {

/// The members of a union that are containers of a kind, or the type itself where it is one.
std::vector<TypePtr> containers_in(const TypePtr& type, TypeKind kind) {
  if (type->is(kind)) return {type};
  std::vector<TypePtr> out;
  if (type->is(TypeKind::Optional) || type->is(TypeKind::Union))
    for (const TypePtr& t : type->elements)
      for (const TypePtr& found : containers_in(t, kind)) out.push_back(found);
  return out;
}

std::string alternatives(const std::vector<TypePtr>& types) {
  std::string out;
  for (size_t i = 0; i < types.size(); ++i)
    out += (i ? i + 1 == types.size() ? " or " : ", " : "") + types[i]->annotation();
  return out;
}

TypePtr unified(const TypePtr& so_far, const TypePtr& next) {
  TypePtr plain = without_details(next);
  if (!so_far) return plain;
  TypePtr both = unify(so_far, plain);
  return both ? both : union_type({so_far, plain});
}

bool can_be_key(const TypePtr& t) {
  return is_number(t) || is_string(t) || is_tensor(t) || t->is(TypeKind::Device) || is_bool(t);
}

}  // namespace

/// The container types that a literal may have by its annotation; none where nothing is said.
std::vector<TypePtr> Emitter::wanted_containers(const Tree& e, const TypePtr& hint, TypeKind kind, bool empty) {
  const char* name = kind == TypeKind::List ? "List" : "Dict";
  if (!hint || hint->is(TypeKind::Any)) return {};
  std::vector<TypePtr> wanted = containers_in(hint, kind);
  if (wanted.empty() && hint->is(TypeKind::Union))
    fail_at(e, "Expected a Union type annotation with an inner ", name, " type, but got ", hint->annotation());
  if (wanted.empty()) fail_at(e, "Expected an annotation of type ", name, " but got ", hint->annotation());
  if (empty && wanted.size() > 1)
    fail_at(e, "Cannot assign an empty ", kind == TypeKind::List ? "list" : "dict",
            " to a variable annotated to be type ", hint->annotation(), " because there are multiple possible ", name,
            " type candidates in the Union annotation");
  return wanted;
}

SugaredPtr Emitter::list(const Tree& e, const TypePtr& hint) {
  std::vector<TypePtr> wanted = wanted_containers(e, hint, TypeKind::List, e.children.empty());
  TypePtr inner = wanted.size() == 1 ? wanted[0]->element() : nullptr;
  Variables parts;
  for (const TreePtr& c : e.children) {
    if (c->kind == Syntax::Starred) {
      for (const SugaredPtr& p : parts_of(*c, expression(*c->children[0]))) parts.push_back(as_value(*c, p));
      continue;
    }
    parts.push_back(value(*c, inner));
  }
  TypePtr element;
  for (Variable* v : parts) element = unified(element, v->type());
  for (const TypePtr& w : wanted)
    if (!inner && element && is_subtype(element, w->element())) inner = w->element();
  if (!inner && !wanted.empty())
    fail_at(e, "Union type annotation `", hint->annotation(), "` can hold ", alternatives(wanted),
            ", but none of those types match the types of the given list elements, which were unified to ",
            element->annotation());
  if (inner && element && !is_subtype(element, inner))
    fail_at(e, "List type annotation `", list_type(inner)->annotation(),
            "` did not match the types of the given list elements, which were unified to ", element->annotation());
  if (inner) element = inner;
  return sugar(one(e, "prim::ListConstruct", parts, list_type(element ? element : tensor_type())));
}

SugaredPtr Emitter::dict(const Tree& e, const TypePtr& hint) {
  std::vector<TypePtr> wanted = wanted_containers(e, hint, TypeKind::Dict, e.children.empty());
  TypePtr whole = wanted.size() == 1 ? wanted[0] : nullptr;
  Variables parts;
  for (size_t i = 0; i < e.children.size(); ++i) {
    const Tree& c = *e.children[i];
    parts.push_back(value(c, whole ? whole->element(i % 2) : nullptr));
  }
  TypePtr key, element;
  for (size_t i = 0; i < parts.size(); ++i) {
    TypePtr type = without_details(parts[i]->type());
    if (i % 2) element = unified(element, type);
    else if (key && !same_type(key, type))
      fail_at(*e.children[i], "Dict keys must contain only a single type. Expected: ", key->annotation(), " but found ",
              type->annotation(), " instead");
    else key = type;
  }
  if (key && !can_be_key(key))
    fail_at(e, "Cannot create dict for key type '", key->text(),
            "', only int, float, complex, Tensor, device and string keys are supported");
  for (const TypePtr& w : wanted)
    if (!whole && key && is_subtype(key, w->element(0)) && is_subtype(element, w->element(1))) whole = w;
  if (!whole && !wanted.empty())
    fail_at(e, "Union type annotation `", hint->annotation(), "` can hold ", alternatives(wanted),
            ", but none of those dict types can hold the types of the given dict elements, which were unified to ",
            dict_type(key, element)->annotation());
  if (whole && key && !is_subtype(key, whole->element(0)))
    fail_at(e, "Type annotation was inferred to be ", whole->annotation(),
            "but the type of keys given by the dict literal is ", key->annotation());
  if (whole && element && !is_subtype(element, whole->element(1)))
    fail_at(e, "Type annotation was inferred to be `", whole->annotation(),
            "`, but the type of values given by the dict literal is ", element->annotation());
  if (!whole) whole = key ? dict_type(key, element) : dict_type(string_type(), tensor_type());
  return sugar(one(e, "prim::DictConstruct", parts, whole));
}

/// Elements that are known one by one: a comprehension over a tuple, or over modules.
SugaredPtr Emitter::unrolled_comprehension(const Tree& e, const Iterable& it, const TypePtr& wanted) {
  Environment before = env_;
  Variables parts;
  TypePtr element;
  for (const SugaredPtr& item : it.fixed) {
    assign(*e.children[1], item);
    parts.push_back(value(*e.children[0], wanted ? wanted->element() : nullptr));
    TypePtr both = element ? unify(element, parts.back()->type()) : without_details(parts.back()->type());
    if (!both)
      fail_at(e, "List type must be the same for all elements, but found ", element->annotation(), " and ",
              parts.back()->type()->annotation());
    element = both;
  }
  env_ = before;
  check_elements(e, wanted, element);
  return sugar(one(e, "prim::ListConstruct", parts, wanted ? wanted : list_type(element ? element : tensor_type())));
}

SugaredPtr Emitter::unrolled_dict(const Tree& e, const Iterable& it, const TypePtr& wanted) {
  Environment before = env_;
  Variables parts;
  TypePtr key = string_type(), element;
  for (const SugaredPtr& item : it.fixed) {
    assign(*e.children[2], item);
    parts.push_back(value(*e.children[0]));
    key = without_details(parts.back()->type());
    parts.push_back(value(*e.children[1]));
    element = unified(element, parts.back()->type());
  }
  env_ = before;
  TypePtr type = dict_type(key, element ? element : tensor_type());
  if (wanted && !is_subtype(type->element(1), wanted->element(1)))
    fail_at(e, "Dict type annotation `", wanted->annotation(), "` did not match the type of an actual value type `",
            type->element(1)->annotation(), "`\n");
  return sugar(one(e, "prim::DictConstruct", parts, wanted ? wanted : type));
}

void Emitter::check_elements(const Tree& e, const TypePtr& wanted, const TypePtr& element) {
  if (wanted && element && !is_subtype(element, wanted->element()))
    fail_at(e, "List type annotation `", wanted->annotation(),
            "` did not match the types of the given list elements, which were unified to ", element->annotation());
}

SugaredPtr Emitter::comprehension(const Tree& e, const TypePtr& hint) {
  bool is_dict = e.kind == Syntax::DictComp;
  size_t first = is_dict ? 2 : 1;
  const Tree &target = *e.children[first], &source = *e.children[first + 1];
  Iterable it = iterable_of(source);
  std::vector<TypePtr> all =
      hint ? containers_in(hint, is_dict ? TypeKind::Dict : TypeKind::List) : std::vector<TypePtr>{};
  TypePtr wanted = all.empty() ? nullptr : all[0];
  if (it.is_fixed && is_dict) return unrolled_dict(e, it, wanted);
  if (it.is_fixed) return unrolled_comprehension(e, it, wanted);
  TypePtr key, element;
  try_body(e, [&](Variable* i) {
    assign(target, it.item(i));
    key = without_details(value(*e.children[0], wanted ? wanted->element() : nullptr)->type());
    element = is_dict ? without_details(value(*e.children[1], wanted ? wanted->element(1) : nullptr)->type()) : key;
  });
  if (is_dict && wanted && !is_subtype(key, wanted->element(0)))
    fail_at(e, "Dict type annotation `", wanted->annotation(), "` did not match the type of an actual key type `",
            key->annotation(), "`\n");
  if (is_dict && wanted && !is_subtype(element, wanted->element(1)))
    fail_at(e, "Dict type annotation `", wanted->annotation(), "` did not match the type of an actual value type `",
            element->annotation(), "`\n");
  if (!is_dict) check_elements(e, wanted, element);
  TypePtr type = wanted ? wanted : is_dict ? dict_type(key, element) : list_type(element);
  Variable* out = one(e, is_dict ? "prim::DictConstruct" : "prim::ListConstruct", {}, type);
  plain_loop(e, it.length, [&](Variable* i) {
    assign(target, it.item(i));
    if (is_dict) {
      Variable* at = value(*e.children[0], type->element(0));
      builtin(e, "aten::_set_item", {{"", out}, {"", at}, {"", value(*e.children[1], type->element(1))}});
    } else {
      builtin(e, "aten::append", {{"", out}, {"", value(*e.children[0], type->element())}});
    }
  });
  return sugar(out);
}

}  // namespace umbra::jit
