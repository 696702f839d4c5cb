// Assignments.
#include "jit/builtin_rules.h"
#include "jit/emitter.h"

namespace umbra::jit {

namespace {
/// `[]` and `{}` are of whatever type is wanted.
bool is_empty_container(const Variable& v, const Type& wanted) {
  const TypePtr& type = v.type();
  bool empty = (type->is(TypeKind::List) && v.node()->is("prim::ListConstruct")) ||
               (type->is(TypeKind::Dict) && v.node()->is("prim::DictConstruct"));
  const Type& inner = wanted.is(TypeKind::Optional) ? *wanted.element() : wanted;
  return empty && v.node()->inputs.empty() && inner.is(type->kind);
}
}  // namespace

void Emitter::assign(const Tree& target, const SugaredPtr& v) {
  switch (target.kind) {
    case Syntax::Name: return assign_name(target, target.text, v);
    case Syntax::Tuple:
    case Syntax::List: return unpack(target, v);
    case Syntax::Subscript: return assign_subscript(target, as_value(target, v));
    case Syntax::Attribute: return assign_attribute(target, v);
    default: fail_at(target, "unexpected expression on left-hand side of assignment");
  }
}

void Emitter::assign_attribute(const Tree& target, const SugaredPtr& v) {
  Variable* object = value(*target.children[0]);
  const Tree& whole = statement_ ? *statement_ : target;
  if (!object->type()->is(TypeKind::Class))
    fail_at(whole, "Tried to set an attribute: ", target.text, " on a non-class: ", object->type()->annotation());
  const ClassPtr& cls = object->type()->cls;
  int i = cls->find(target.text);
  Variable* new_value = as_value(target, v);
  std::string setter = cls->method("__" + target.text + "_setter") ? "__" + target.text + "_setter"
                       : i < 0                                     ? resolver_.setter(*sugar(object), target.text)
                                                                   : "";
  if (!setter.empty()) return void(call_method(target, object, setter, {{"", new_value}}));
  bool initialising = function_.name.ends_with(".__init__") && !cls->is_module;
  if (i < 0 && initialising && !outer_.empty()) fail_at(target, "assignment cannot be in a control-flow block");
  if (i < 0 && initialising) i = cls->add_attribute({target.text, without_details(new_value->type())});
  if (i < 0)
    fail_at(whole, "Tried to set nonexistent attribute: ", target.text,
            ". Did you forget to initialize it in __init__()?");
  const TypePtr& wanted = cls->attributes[static_cast<size_t>(i)].type;
  if (!is_subtype(new_value->type(), wanted) && !is_empty_container(*new_value, *wanted))
    fail_at(whole, "Wrong type for attribute assignment. Expected ", wanted->annotation(), " but got ",
            new_value->type()->annotation());
  new_value = coerced(target, new_value, wanted, concat("the attribute '", target.text, "'"));
  insert(target, "prim::SetAttr", {object, new_value}, {})->set_attribute("name", Value(target.text));
}

void Emitter::assign_name(const Tree& at, const std::string& name, SugaredPtr v) {
  if (name == "$ret") {
    Variable* result = as_value(at, v);
    last_return_ = &at;
    if (function_.result) result = coerced(at, result, function_.result, "the return");
    env_[name] = sugar(result);
    return;
  }
  bool is_slice = v->kind == Sugared::Kind::Range && v->name == "slice";
  if (v->kind == Sugared::Kind::Constant || v->kind == Sugared::Kind::Values ||
      (v->kind == Sugared::Kind::Range && !is_slice))
    v = sugar(as_value(at, v));
  if (v->kind == Sugared::Kind::Variable && !outer_.empty()) {
    auto before = env_.find(name);
    auto outside = outer_.back()->find(name);
    if (outside != outer_.back()->end() && outside->second && outside->second->kind == Sugared::Kind::Variable &&
        before != env_.end()) {
      const TypePtr& old = outside->second->variable->type();
      if (!is_subtype(v->variable->type(), old) && is_empty_container(*v->variable, *old))
        v = sugar(coerced(at, v->variable, old->is(TypeKind::Optional) ? old->element() : old, "the variable"));
      if (!is_subtype(v->variable->type(), old))
        fail_at(at, "Variable '", name, "' previously had type ", old->annotation(),
                " but is now being assigned to a value of type ", v->variable->type()->annotation(), "\n");
    }
  }
  if (v->kind == Sugared::Kind::Variable && v->variable->name().empty() && !name.starts_with("$"))
    v->variable->set_name(name);
  env_[name] = std::move(v);
}

void Emitter::unpack(const Tree& target, const SugaredPtr& v) {
  size_t count = target.children.size();
  size_t star = 0;
  while (star < count && target.children[star]->kind != Syntax::Starred) ++star;
  bool starred = star < count;
  std::vector<SugaredPtr> parts;
  if (v->kind == Sugared::Kind::Variable && v->variable->type()->is(TypeKind::List)) {
    Variable* list = v->variable;
    if (starred) fail_at(target, "a list cannot be unpacked into a starred target");
    Node* node = insert(target, "prim::ListUnpack", {list}, {});
    for (size_t i = 0; i < count; ++i) parts.push_back(sugar(node->add_output(list->type()->element())));
  } else {
    parts = parts_of(target, v);
  }
  if (starred && parts.size() + 1 >= count) {
    Variables rest;
    auto first = parts.begin() + static_cast<long>(star), last = first + static_cast<long>(parts.size() + 1 - count);
    for (auto p = first; p != last; ++p) rest.push_back(as_value(target, *p));
    parts.insert(parts.erase(first, last), sugar(tuple(target, rest)));
  }
  if (parts.size() < count) fail_at(target, "need ", count, " values to unpack but found only ", parts.size());
  if (parts.size() > count) fail_at(target, "too many values to unpack: need ", count, " but found ", parts.size());
  for (size_t i = 0; i < count; ++i)
    assign(target.children[i]->kind == Syntax::Starred ? *target.children[i]->children[0] : *target.children[i],
           parts[i]);
}

void Emitter::assign_subscript(const Tree& target, Variable* v) {
  Variable* object = value(*target.children[0]);
  const Tree& index = *target.children[1];
  if (object->type()->is(TypeKind::List) || object->type()->is(TypeKind::Dict)) {
    TypePtr element = object->type()->element(object->type()->is(TypeKind::Dict) ? 1 : 0);
    builtin(target, "aten::_set_item",
            {{"", object}, {"", value(index)}, {"", coerced(target, v, element, "the element")}});
    return;
  }
  if (object->type()->is(TypeKind::Class))
    return void(call_method(target, object, "__setitem__", {{"", value(index)}, {"", v}}));
  if (!object->type()->is(TypeKind::Tensor))
    fail_at(target, object->type()->annotation(), " does not support subscripted assignment");
  Variables indices;
  Variable* part = index_tensor(target, object, index, indices);
  if (!v->type()->is(TypeKind::Tensor)) {
    v = as_value(target, builtin(target, "aten::tensor",
                                 {{"", v},
                                  {"", one(target, "prim::dtype", {object}, simple_type(TypeKind::Int))},
                                  {"", one(target, "prim::device", {object}, simple_type(TypeKind::Device))},
                                  {"", constant(Value(false))}}));
  }
  if (indices.empty()) {
    builtin(target, "aten::copy_", {{"", part}, {"", v}, {"", constant(Value(false))}});
    return;
  }
  Variable* list = one(target, "prim::ListConstruct", indices, list_type(optional_type(tensor_type())));
  builtin(target, "aten::index_put_", {{"", part}, {"", list}, {"", v}, {"", constant(Value(false))}});
}

void Emitter::annotated(const Tree& s) {
  TypePtr type = resolve_type(*s.children[1], resolver_);
  if (s.children.size() < 3) return;
  const Tree& target = *s.children[0];
  Variable* v = value(*s.children[2], type);
  if (target.kind == Syntax::Name && !is_subtype(v->type(), type) && !is_empty_container(*v, *type))
    fail_at(target, "Variable '", target.text, "' is annotated with type ", type->annotation(),
            " but is being assigned to a value of type ", v->type()->annotation());
  v = coerced(s, v, type, "the attribute");
  if (target.kind == Syntax::Attribute && function_.name.ends_with(".__init__")) {
    Variable* object = value(*target.children[0]);
    if (object->type()->is(TypeKind::Class) && object->type()->cls->find(target.text) < 0)
      object->type()->cls->add_attribute({target.text, type});
  }
  assign(target, sugar(v));
}

void Emitter::augmented(const Tree& s) {
  const Tree& target = *s.children[0];
  static const std::map<std::string, std::string> names = {
      {"+", "add"},     {"-", "sub"},    {"*", "mul"},     {"/", "div"},         {"%", "remainder"},  {"**", "pow"},
      {"&", "__and__"}, {"|", "__or__"}, {"^", "__xor__"}, {"<<", "__lshift__"}, {">>", "__rshift__"}};
  size_t op = s.source->text.find(s.text + "=", target.end);
  if (!names.contains(s.text))
    throw UnsupportedSyntax(
        concat("unsupported kind of augmented assignment: ", s.text == "@" ? "MatMult" : "FloorDiv", ":\n",
               SourceRange{s.source, op, op + s.text.size() + 1}.pointed(), Compilation::waiting()),
        false);
  auto computed = [&](Variable* left) {
    Variable* right = value(*s.children[1]);
    const std::string& name = names.at(s.text);
    bool list = left->type()->is(TypeKind::List);
    static const std::map<std::string, std::string> in_place = {
        {"+", "add_"},       {"-", "sub_"},         {"*", "mul_"},        {"/", "div_"},
        {"%", "remainder_"}, {"<<", "__ilshift__"}, {">>", "__irshift__"}};
    if (auto found = in_place.find(s.text); found != in_place.end() && left->type()->is(TypeKind::Tensor))
      return as_value(s, builtin(s, "aten::" + found->second, {{"", left}, {"", right}}));
    return as_value(s, builtin(s, "aten::" + name + (list && s.text == "+" ? "_" : ""), {{"", left}, {"", right}}));
  };
  if (target.kind == Syntax::Subscript) {
    Variable* old = value(target);
    Variable* result = computed(old);
    Variable* object = value(*target.children[0]);
    if (!object->type()->is(TypeKind::Tensor)) return assign_subscript(target, result);
    Variables indices;
    index_tensor(target, object, *target.children[1], indices);
    if (!indices.empty()) assign_subscript(target, result);
    return;
  }
  assign(target, sugar(computed(value(target))));
}

}  // namespace umbra::jit
