// Functions and statements.
#include <unordered_set>

#include "jit/builtins.h"
#include "jit/emitter.h"
#include "jit/exits.h"
#include "umbra/jit/passes.h"

namespace umbra::jit {

namespace {

std::shared_ptr<Sugared> make(Sugared::Kind kind) {
  auto s = std::make_shared<Sugared>();
  s->kind = kind;
  return s;
}

/// Whether a value is the variable itself, or the variable as a condition told it to be.
bool is_refinement(const SugaredPtr& s, const SugaredPtr& of) {
  if (s == of) return true;
  if (!s || !of || s->kind != Sugared::Kind::Variable || of->kind != Sugared::Kind::Variable) return false;
  const Variable* v = s->variable;
  while (v != of->variable && v->node()->is("prim::unchecked_cast")) v = v->node()->inputs[0];
  return v == of->variable;
}

/// The names that statements assign, in order.
void assigned(const Tree& tree, std::vector<std::string>& names) {
  auto target = [&](auto&& self, const Tree& t) -> void {
    if (t.kind == Syntax::Name) names.push_back(t.text);
    else if (t.kind == Syntax::Tuple || t.kind == Syntax::List || t.kind == Syntax::Starred)
      for (const TreePtr& c : t.children) self(self, *c);
  };
  switch (tree.kind) {
    case Syntax::Assign:
      for (size_t i = 0; i + 1 < tree.children.size(); ++i) target(target, *tree.children[i]);
      break;
    case Syntax::Annotated:
      if (tree.children.size() > 2) target(target, *tree.children[0]);
      break;
    case Syntax::Augmented:
    case Syntax::For: target(target, *tree.children[0]); break;
    default: break;
  }
  for (const TreePtr& s : tree.body) assigned(*s, names);
  if (tree.kind == Syntax::If)
    for (const TreePtr& s : tree.orelse) assigned(*s, names);
}

}  // namespace

SugaredPtr sugar(Variable* v) {
  auto s = make(Sugared::Kind::Variable);
  s->variable = v;
  return s;
}
SugaredPtr sugar_constant(Value value) {
  auto s = make(Sugared::Kind::Constant);
  s->value = std::move(value);
  return s;
}
SugaredPtr sugar_builtin(std::string name) {
  auto s = make(Sugared::Kind::Builtin);
  s->name = std::move(name);
  return s;
}
SugaredPtr sugar_type(TypePtr type) {
  auto s = make(Sugared::Kind::Type);
  s->type = std::move(type);
  return s;
}
SugaredPtr sugar_function(FunctionPtr function) {
  auto s = make(Sugared::Kind::Function);
  s->function = std::move(function);
  return s;
}
SugaredPtr sugar_namespace(std::string name) {
  auto s = make(Sugared::Kind::Operators);
  s->name = std::move(name);
  return s;
}

// ---- types ----

namespace {
std::string path_of(const Tree& t) {
  if (t.kind == Syntax::Name) return t.text;
  if (t.kind == Syntax::Attribute) return path_of(*t.children[0]) + "." + t.text;
  return "";
}
}  // namespace

TypePtr resolve_type(const Tree& tree, Resolver& resolver) {
  if (tree.kind == Syntax::Constant && tree.text == "None") return simple_type(TypeKind::None);
  if (tree.kind == Syntax::String) {
    auto text = std::make_shared<SourceText>(SourceText{tree.text, tree.source->file, tree.source->first_line});
    return resolve_type(*parse_expression(text), resolver);
  }
  if (tree.kind == Syntax::Binary && tree.text == "|")
    return union_type({resolve_type(*tree.children[0], resolver), resolve_type(*tree.children[1], resolver)});
  std::string path = path_of(tree.kind == Syntax::Subscript ? *tree.children[0] : tree);
  std::string last = path.substr(path.rfind('.') + 1);
  if (tree.kind == Syntax::Subscript) {
    const Tree& index = *tree.children[1];
    std::vector<TypePtr> parts;
    if (index.kind == Syntax::Tuple)
      for (const TreePtr& c : index.children) parts.push_back(resolve_type(*c, resolver));
    else parts.push_back(resolve_type(index, resolver));
    if ((last == "List" || last == "list") && parts.size() == 1) return list_type(parts[0]);
    if ((last == "Dict" || last == "dict") && parts.size() == 2) return dict_type(parts[0], parts[1]);
    if (last == "Tuple" || last == "tuple") return tuple_type(parts);
    if (last == "Optional" && parts.size() == 1) return optional_type(parts[0]);
    if (last == "Union") return union_type(parts);
    if ((last == "Future") && parts.size() == 1) return future_type(parts[0]);
    if (last == "Final" && parts.size() == 1) return parts[0];
    fail_at(tree, "Unknown type name '", path, "'");
  }
  static const std::pair<const char*, TypeKind> simple[] = {{"Tensor", TypeKind::Tensor},
                                                            {"int", TypeKind::Int},
                                                            {"float", TypeKind::Float},
                                                            {"bool", TypeKind::Bool},
                                                            {"str", TypeKind::String},
                                                            {"complex", TypeKind::Complex},
                                                            {"number", TypeKind::Number},
                                                            {"NoneType", TypeKind::None},
                                                            {"Any", TypeKind::Any},
                                                            {"Device", TypeKind::Device},
                                                            {"Generator", TypeKind::Generator}};
  bool plain = path == last || path == "torch.Tensor" || path == "typing.Any" || path == "torch.Generator";
  if (plain)
    for (auto [name, kind] : simple)
      if (last == name) return simple_type(kind);
  if (path == "torch.device") return simple_type(TypeKind::Device);
  if (path == "torch.dtype" || path == "torch.layout" || path == "torch.memory_format")
    return simple_type(TypeKind::Int);
  if (path == "torch.Size") return list_type(simple_type(TypeKind::Int));
  if (TypePtr type = resolver.type(path)) return type;
  if (path == "Tuple" || path == "tuple") return tuple_type({});
  if (path == "List" || path == "list")
    fail_at(tree, "Attempted to use List without a contained type. Please add a contained type, e.g. List[int]");
  if (path == "Dict" || path == "dict")
    fail_at(tree, "Attempted to use Dict without contained types. Please add contained type, e.g. Dict[int, int]");
  if (path == "Optional")
    fail_at(tree,
            "Attempted to use Optional without a contained type. Please add a contained type, e.g. Optional[int]");
  fail_at(tree, "Unknown type name '", path.empty() ? "?" : path, "'");
}

void declare(Function& function, const Tree& def, Resolver& resolver, const TypePtr& self) {
  for (size_t i = 0; i < def.parameters.size(); ++i) {
    const ParameterTree& p = def.parameters[i];
    Parameter out{p.name, nullptr, {}, p.keyword_only};
    if (i == 0 && self) out.type = self;
    else out.type = p.annotation ? resolve_type(*p.annotation, resolver) : tensor_type();
    function.parameters.push_back(std::move(out));
  }
  if (def.returns) function.result = resolve_type(*def.returns, resolver);
}

void define(Function& function, const TreePtr& def, Resolver& resolver) {
  function.graph = std::make_shared<Graph>();
  Emitter(function, resolver).body(*def);
  eliminate_dead_code(*function.graph);
}

// ---- functions ----

void Emitter::body(const Tree& def) {
  for (const Parameter& p : function_.parameters) {
    Variable* v = graph_.add_input(p.name, p.type);
    env_[p.name] = sugar(v);
  }
  Rewritten rewritten = rewrite_exits(def);
  statements(rewritten.body);
  TypePtr none = simple_type(TypeKind::None);
  auto found = env_.find("$ret");
  if (!rewritten.always_returns && !raises_) {
    bool nothing = function_.result ? is_subtype(none, function_.result) : !rewritten.returns_value;
    if (!nothing || (found != env_.end() && rewritten.returns_value && !function_.result))
      fail_at(def, "Function was not annotated as having type None, but does not return along all paths");
  }
  Variable* result = nullptr;
  if (found != env_.end() && (rewritten.always_returns || rewritten.returns_value))
    result = as_value(def, found->second);
  else if (raises_ && function_.result && !function_.result->is(TypeKind::None))
    result = one(def, "prim::Uninitialized", {}, function_.result);
  else result = constant(Value());
  if (!function_.result) function_.result = result->type();
  graph_.add_output(result);
}

Node* Emitter::insert(const Tree& at, std::string kind, std::vector<Variable*> inputs, std::vector<TypePtr> outputs) {
  Node* node = graph_.insert(std::move(kind), std::move(inputs), std::move(outputs));
  node->source = at.source->place(at.begin);
  return node;
}

Variable* Emitter::tuple(const Tree& at, const std::vector<Variable*>& parts) {
  std::vector<TypePtr> types;
  for (Variable* v : parts) types.push_back(v->type());
  return one(at, "prim::TupleConstruct", parts, tuple_type(std::move(types)));
}

SugaredPtr Emitter::lookup(const Tree& at, const std::string& name) {
  if (auto found = env_.find(name); found != env_.end()) {
    if (found->second) return found->second;
    fail_at(at, name, " is not defined in all branches that lead here");
  }
  if (SugaredPtr s = resolver_.name(name)) return s;
  static const char* const known[] = {
      "len",           "range",   "enumerate", "zip",    "print", "abs",      "min",
      "max",           "sum",     "sorted",    "any",    "all",   "round",    "isinstance",
      "getattr",       "hasattr", "reversed",  "ord",    "chr",   "annotate", "unchecked_cast",
      "uninitialized", "divmod",  "pow",       "super",  "hash",  "hex",      "bin",
      "oct",           "id",      "map",       "filter", "fork",  "wait",     "tuple",
      "iter",          "next"};
  for (const char* k : known)
    if (name == k) return sugar_builtin(name);
  static const std::pair<const char*, TypeKind> types[] = {
      {"int", TypeKind::Int},    {"float", TypeKind::Float},     {"bool", TypeKind::Bool},
      {"str", TypeKind::String}, {"complex", TypeKind::Complex}, {"Tensor", TypeKind::Tensor}};
  for (auto [n, kind] : types)
    if (name == n) return sugar_type(simple_type(kind));
  if (name == "list" || name == "dict") return sugar_builtin(name);
  fail_at(at, "undefined value ", name);
}

void Emitter::refine(const Refinements& what) {
  for (const auto& [name, type] : what) {
    auto found = env_.find(name);
    if (found == env_.end() || !found->second || found->second->kind != Sugared::Kind::Variable) continue;
    Variable* v = found->second->variable;
    if (same_type(v->type(), type)) continue;
    Variable* cast = graph_.insert("prim::unchecked_cast", {v}, {type})->output();
    if (!name.starts_with("$")) cast->set_name(name);
    found->second = sugar(cast);
  }
}

// ---- statements ----

void Emitter::statements(const std::vector<TreePtr>& list) {
  for (const TreePtr& s : list) {
    if (raises_) return;
    statement(*s);
  }
}

void Emitter::statement(const Tree& s) {
  switch (s.kind) {
    case Syntax::Pass:
    case Syntax::Import: return;
    case Syntax::Expression:
      if (s.children[0]->kind != Syntax::String) expression(*s.children[0]);
      return;
    case Syntax::Assign: {
      const Tree& last = *s.children.back();
      TypePtr hint;
      if (s.children[0]->kind == Syntax::Name && s.children[0]->text == "$ret") hint = function_.result;
      SugaredPtr v = expression(last, hint);
      for (size_t i = 0; i + 1 < s.children.size(); ++i) assign(*s.children[i], v);
      return;
    }
    case Syntax::Annotated: return annotated(s);
    case Syntax::Augmented: return augmented(s);
    case Syntax::If: return if_statement(s);
    case Syntax::While: return while_statement(s);
    case Syntax::For: return for_statement(s);
    case Syntax::Raise: return raise(s);
    case Syntax::Assert: return assertion(s);
    case Syntax::Delete: {
      const Tree& t = *s.children[0];
      if (t.kind == Syntax::Name) env_.erase(t.text);
      else if (t.kind == Syntax::Subscript)
        builtin(s, "aten::Delete", {{"", value(*t.children[0])}, {"", value(*t.children[1])}});
      else fail_at(s, "del of this kind is not supported");
      return;
    }
    case Syntax::With: return with_statement(s);
    case Syntax::Def:
    case Syntax::Class:
      throw UnsupportedSyntax(
          concat("function definitions inside functions aren't supported:\n", s.source->pointed(s.begin, 3)), true);
    default: fail_at(s, "this statement is not supported");
  }
}

void Emitter::assign(const Tree& target, const SugaredPtr& v) {
  switch (target.kind) {
    case Syntax::Name: return assign_name(target, target.text, v);
    case Syntax::Tuple:
    case Syntax::List: return unpack(target, v);
    case Syntax::Subscript: return assign_subscript(target, as_value(target, v));
    case Syntax::Attribute: {
      Variable* object = value(*target.children[0]);
      if (!object->type()->is(TypeKind::Class))
        fail_at(target, "Tried to set an attribute of ", object->type()->annotation());
      const ClassPtr& cls = object->type()->cls;
      int i = cls->find(target.text);
      Variable* new_value = as_value(target, v);
      bool initialising = function_.name.ends_with(".__init__") && !cls->is_module;
      if (i < 0 && initialising) i = cls->add_attribute({target.text, without_details(new_value->type())});
      if (i < 0)
        fail_at(target, "Tried to set nonexistent attribute: ", target.text,
                ". Did you forget to initialize it in __init__()?");
      new_value = coerced(target, new_value, cls->attributes[static_cast<size_t>(i)].type,
                          concat("the attribute '", target.text, "'"));
      insert(target, "prim::SetAttr", {object, new_value}, {})->set_attribute("name", Value(target.text));
      return;
    }
    default: fail_at(target, "unexpected expression on left-hand side of assignment");
  }
}

void Emitter::assign_name(const Tree& at, const std::string& name, SugaredPtr v) {
  if (name == "$ret") {
    Variable* result = as_value(at, v);
    if (function_.result) result = coerced(at, result, function_.result, "the return");
    env_[name] = sugar(result);
    return;
  }
  if (v->kind == Sugared::Kind::Constant || v->kind == Sugared::Kind::Values || v->kind == Sugared::Kind::Range)
    v = sugar(as_value(at, v));
  if (v->kind == Sugared::Kind::Variable && !outer_.empty()) {
    auto before = env_.find(name);
    auto outside = outer_.back()->find(name);
    if (outside != outer_.back()->end() && outside->second && outside->second->kind == Sugared::Kind::Variable &&
        before != env_.end()) {
      const TypePtr& old = outside->second->variable->type();
      if (!is_subtype(v->variable->type(), old))
        fail_at(at, "Variable '", name, "' previously had type ", old->annotation(),
                " but is now being assigned to a value of type ", v->variable->type()->annotation());
    }
  }
  if (v->kind == Sugared::Kind::Variable && v->variable->name().empty() && !name.starts_with("$"))
    v->variable->set_name(name);
  env_[name] = std::move(v);
}

void Emitter::unpack(const Tree& target, const SugaredPtr& v) {
  size_t count = target.children.size();
  for (size_t i = 0; i < count; ++i)
    if (target.children[i]->kind == Syntax::Starred && i + 1 != count)
      fail_at(target, "a starred target has to be the last");
  bool starred = count > 0 && target.children.back()->kind == Syntax::Starred;
  std::vector<SugaredPtr> parts;
  if (v->kind == Sugared::Kind::Variable &&
      (v->variable->type()->is(TypeKind::List) || v->variable->type()->is(TypeKind::Tensor))) {
    Variable* list = v->variable;
    if (list->type()->is(TypeKind::Tensor))
      list = as_value(target, builtin(target, "aten::unbind", {{"", list}, {"", constant(Value(0))}}));
    if (starred) fail_at(target, "a list cannot be unpacked into a starred target");
    Node* node = insert(target, "prim::ListUnpack", {list}, {});
    for (size_t i = 0; i < count; ++i) parts.push_back(sugar(node->add_output(list->type()->element())));
  } else {
    parts = parts_of(target, v);
  }
  if (starred && parts.size() + 1 >= count) {
    std::vector<Variable*> rest;
    for (size_t i = count - 1; i < parts.size(); ++i) rest.push_back(as_value(target, parts[i]));
    parts.resize(count - 1);
    parts.push_back(sugar(tuple(target, rest)));
  }
  if (parts.size() != count) fail_at(target, "Provided ", parts.size(), " values but need ", count, " to unpack");
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
  if (!object->type()->is(TypeKind::Tensor))
    fail_at(target, "'", object->type()->annotation(), "' object does not support item assignment");
  std::vector<Variable*> indices;
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
  Variable* v = coerced(s, value(*s.children[2], type), type,
                        target.kind == Syntax::Name ? "the variable '" + target.text + "'" : "the attribute");
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
      {"+", "add"},         {"-", "sub"},         {"*", "mul"},     {"/", "div"},    {"%", "remainder"},
      {"//", "floordiv"},   {"**", "pow"},        {"&", "__and__"}, {"|", "__or__"}, {"^", "__xor__"},
      {"<<", "__lshift__"}, {">>", "__rshift__"}, {"@", "matmul"}};
  auto computed = [&](Variable* left) {
    Variable* right = value(*s.children[1]);
    const std::string& name = names.at(s.text);
    bool list = left->type()->is(TypeKind::List);
    if (left->type()->is(TypeKind::Tensor) && (s.text == "+" || s.text == "-" || s.text == "*" || s.text == "/"))
      return as_value(s, builtin(s, "aten::" + name + "_", {{"", left}, {"", right}}));
    return as_value(s, builtin(s, "aten::" + name + (list && s.text == "+" ? "_" : ""), {{"", left}, {"", right}}));
  };
  if (target.kind == Syntax::Subscript) {
    Variable* old = value(target);
    Variable* result = computed(old);
    Variable* object = value(*target.children[0]);
    if (!object->type()->is(TypeKind::Tensor)) return assign_subscript(target, result);
    std::vector<Variable*> indices;
    index_tensor(target, object, *target.children[1], indices);
    if (!indices.empty()) assign_subscript(target, result);
    return;
  }
  assign(target, sugar(computed(value(target))));
}

// ---- branches ----

void Emitter::if_statement(const Tree& s) {
  Condition c = condition(*s.children[0]);
  branches(
      s, c, [&] { statements(s.body); }, [&] { statements(s.orelse); });
}

void Emitter::branches(const Tree& at, const Condition& c, const std::function<void()>& yes,
                       const std::function<void()>& no) {
  if (c.known) {  // only the branch that runs has to compile
    refine(*c.known ? c.if_true : c.if_false);
    return *c.known ? yes() : no();
  }
  Node* node = insert(at, "prim::If", {c.value}, {});
  Environment before = env_;
  bool raises_before = raises_;
  outer_.push_back(&before);
  auto branch = [&](const Refinements& what, const std::function<void()>& write) {
    Block* block = node->add_block();
    Block* current = graph_.current();
    graph_.set_current(block);
    env_ = before;
    raises_ = false;
    refine(what);
    write();
    graph_.set_current(current);
    return std::make_pair(env_, raises_);
  };
  auto [env_yes, raises_yes] = branch(c.if_true, yes);
  auto [env_no, raises_no] = branch(c.if_false, no);
  outer_.pop_back();
  raises_ = raises_before || (raises_yes && raises_no);
  join(at, node, before, std::move(env_yes), std::move(env_no), raises_yes, raises_no);
}

void Emitter::join(const Tree& at, Node* node, const Environment& before, Environment yes, Environment no,
                   bool yes_raises, bool no_raises) {
  env_ = before;
  std::vector<std::string> names;
  for (const auto& [name, v] : yes) names.push_back(name);
  for (const auto& [name, v] : no)
    if (!yes.contains(name)) names.push_back(name);
  Block* blocks[2] = {node->blocks()[0].get(), node->blocks()[1].get()};
  auto in_block = [&](int which, auto&& f) {
    Block* current = graph_.current();
    graph_.set_current(blocks[which]);
    Variable* v = f();
    graph_.set_current(current);
    return v;
  };
  for (const std::string& name : names) {
    SugaredPtr a = yes.contains(name) ? yes[name] : nullptr, b = no.contains(name) ? no[name] : nullptr;
    auto old = before.find(name);
    if (old != before.end() && a == old->second && b == old->second) continue;
    // What a condition told about a variable holds inside its branches; behind them it is the variable again.
    bool only_told = old != before.end() && is_refinement(a, old->second) && is_refinement(b, old->second);
    if (only_told && !yes_raises && !no_raises) continue;
    bool internal = name.starts_with("$");
    if ((!a || yes_raises) && b && b->kind == Sugared::Kind::Variable && (internal || yes_raises))
      a = sugar(in_block(0, [&] { return one(at, "prim::Uninitialized", {}, b->variable->type()); }));
    if ((!b || no_raises) && a && a->kind == Sugared::Kind::Variable && (internal || no_raises))
      b = sugar(in_block(1, [&] { return one(at, "prim::Uninitialized", {}, a->variable->type()); }));
    if (!a || !b) {
      env_[name] = nullptr;
      continue;
    }
    if (a->kind != Sugared::Kind::Variable || b->kind != Sugared::Kind::Variable) {
      env_[name] = a == b ? a : nullptr;
      continue;
    }
    TypePtr type = unify(a->variable->type(), b->variable->type());
    if (!type && name == "$ret")
      fail_at(at, "Previous return statement returned a value of type ", a->variable->type()->annotation(),
              " but this return statement returns a value of type ", b->variable->type()->annotation());
    if (!type && old != before.end() && old->second)
      fail_at(at, "Type mismatch: ", name, " is set to type ", a->variable->type()->annotation(),
              " in the true branch and type ", b->variable->type()->annotation(), " in the false branch");
    if (!type) {
      env_[name] = nullptr;
      continue;
    }
    blocks[0]->outputs.push_back(a->variable);
    blocks[1]->outputs.push_back(b->variable);
    Variable* out = node->add_output(type);
    if (!internal) out->set_name(name);
    env_[name] = sugar(out);
  }
}

// ---- loops ----

Variable* Emitter::not_ended(const Tree& s, Variable* condition) {
  for (const TreePtr& flag : s.orelse) {
    Variable* open = negated(s, as_value(s, lookup(s, flag->text)));
    condition = one(s, "aten::__and__", {condition, open}, simple_type(TypeKind::Bool));
  }
  return condition;
}

void Emitter::loop(const Tree& s, Variable* trips, const std::function<Variable*()>& condition,
                   const std::function<void(Variable*)>& head) {
  std::vector<std::string> names, carried;
  assigned(s, names);
  std::unordered_set<std::string> seen;
  Environment before = env_;
  auto is_loop_flag = [](const std::string& n) { return n.starts_with("$cont"); };
  for (const std::string& n : names)
    if (seen.insert(n).second && !is_loop_flag(n) && before.contains(n) && before[n] &&
        before[n]->kind == Sugared::Kind::Variable)
      carried.push_back(n);
  if (seen.contains("$ret") && !before.contains("$ret")) {
    TypePtr type = function_.result;
    if (!type) {  // found out by writing the body once
      Node* trial = insert(s, "prim::Loop", {}, {});
      Block* current = graph_.current();
      graph_.set_current(trial->add_block());
      bool raises = std::exchange(raises_, false);
      outer_.push_back(&before);
      head(trial->blocks()[0]->add_input(simple_type(TypeKind::Int)));
      statements(s.body);
      outer_.pop_back();
      raises_ = raises;
      if (env_.contains("$ret") && env_["$ret"]) type = env_["$ret"]->variable->type();
      graph_.set_current(current);
      env_ = before;
      graph_.erase(trial);
    }
    if (type) {
      env_["$ret"] = sugar(one(s, "prim::Uninitialized", {}, type));
      before = env_;
      carried.push_back("$ret");
    }
  }
  Variable* first = condition ? condition() : constant(Value(true));
  before = env_;
  std::vector<Variable*> inputs{trips, first};
  for (const std::string& n : carried) inputs.push_back(before[n]->variable);
  Node* node = insert(s, "prim::Loop", inputs, {});
  Block* block = node->add_block();
  Variable* index = block->add_input(simple_type(TypeKind::Int));
  for (const std::string& n : carried) {
    Variable* v = block->add_input(before[n]->variable->type());
    if (!n.starts_with("$")) v->set_name(n);
    env_[n] = sugar(v);
  }
  Block* current = graph_.current();
  graph_.set_current(block);
  bool raises = std::exchange(raises_, false);
  outer_.push_back(&before);
  head(index);
  statements(s.body);
  Variable* again = not_ended(s, constant(Value(true)));
  if (condition && !raises_)
    again = s.orelse.empty() ? condition() : one(s, "aten::__and__", {again, condition()}, simple_type(TypeKind::Bool));
  outer_.pop_back();
  raises_ = raises;
  block->outputs.push_back(again);
  for (const std::string& n : carried) {
    Variable* v = env_.at(n) ? as_value(s, env_.at(n)) : nullptr;
    if (!v) fail_at(s, n, " is not defined along all paths of the loop's body");
    const TypePtr& type = before[n]->variable->type();
    if (!is_subtype(v->type(), type))
      fail_at(s, "Variable '", n, "' previously had type ", type->annotation(),
              " but is now being assigned to a value of type ", v->type()->annotation());
    block->outputs.push_back(v);
  }
  graph_.set_current(current);
  env_ = before;
  for (const std::string& n : carried) {
    Variable* out = node->add_output(before[n]->variable->type());
    if (!n.starts_with("$")) out->set_name(n);
    env_[n] = sugar(out);
  }
}

void Emitter::while_statement(const Tree& s) {
  Variable* most = constant(Value(std::numeric_limits<int64_t>::max()));
  loop(
      s, most, [&] { return condition(*s.children[0]).value; }, [](Variable*) {});
}

void Emitter::for_statement(const Tree& s) {
  Iterable it = iterable_of(*s.children[1]);
  if (it.is_fixed) {
    if (!s.orelse.empty())
      fail_at(s, "break, continue and return inside a loop over a tuple or modules are not supported");
    for (const SugaredPtr& item : it.fixed) {
      assign(*s.children[0], item);
      statements(s.body);
    }
    return;
  }
  loop(s, it.length, nullptr, [&](Variable* i) { assign(*s.children[0], it.item(i)); });
}

// ---- with ----

/// torch.no_grad() and torch.enable_grad(): the mode is set, and set back. A program that raises inside leaves its own
/// mode behind, which the interpreter takes back.
void Emitter::with_statement(const Tree& s) {
  std::vector<Variable*> before;
  for (const TreePtr& item : s.children) {
    const Tree& e = item->kind == Syntax::Keyword ? *item->children[0] : *item;
    std::string path = e.kind == Syntax::Call && e.children.size() == 1 ? path_of(*e.children[0]) : "";
    std::string last = path.substr(path.rfind('.') + 1);
    if (item->kind == Syntax::Keyword || (last != "no_grad" && last != "enable_grad"))
      fail_at(e,
              "with statements other than `with torch.no_grad()` and `with torch.enable_grad()` are not in Umbra's "
              "TorchScript yet");
    before.push_back(one(s, "aten::is_grad_enabled", {}, simple_type(TypeKind::Bool)));
    insert(s, "aten::set_grad_enabled", {constant(Value(last == "enable_grad"))}, {});
  }
  statements(s.body);
  for (size_t i = before.size(); i-- > 0 && !raises_;) insert(s, "aten::set_grad_enabled", {before[i]}, {});
}

// ---- errors ----

void Emitter::raise(const Tree& s) {
  Variable *message = nullptr, *type = nullptr;
  if (s.children.empty()) fail_at(s, "raise needs an exception");
  const Tree& e = *s.children[0];
  std::string name = e.kind == Syntax::Call ? path_of(*e.children[0]) : path_of(e);
  if (e.kind == Syntax::Call && e.children.size() > 1 && name != "ops.prim") {
    Variable* v = value(*e.children[1]);
    message = v->type()->is(TypeKind::String) ? v : as_value(s, builtin(s, "aten::str", {{"", v}}));
  } else {
    message = constant(Value(""));
  }
  type = constant(Value(name.empty() ? "Exception" : name));
  insert(s, "prim::RaiseException", {message, type}, {});
  raises_ = true;
}

void Emitter::assertion(const Tree& s) {
  Condition c = condition(*s.children[0]);
  branches(
      s, c, [] {},
      [&] {
        Variable* message = nullptr;
        if (s.children.size() > 1) {
          Variable* v = value(*s.children[1]);
          message = v->type()->is(TypeKind::String) ? v : as_value(s, builtin(s, "aten::str", {{"", v}}));
        } else {
          message = constant(Value("AssertionError: "));
        }
        insert(s, "prim::RaiseException", {message, constant(Value("builtins.AssertionError"))}, {});
        raises_ = true;
      });
  if (!c.known) refine(c.if_true);
}

}  // namespace umbra::jit
