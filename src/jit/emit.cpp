// Functions and statements.
#include "jit/builtins.h"
#include "jit/emitter.h"
#include "jit/exits.h"
#include "umbra/jit/passes.h"

namespace umbra::jit {

namespace {

/// Values that are no attribute and no branch's or loop's result have a number behind their name, as PyTorch prints
/// them.
void number_names(Graph& graph) {
  auto number = [&](Variable& v) {
    if (!v.name().empty() && v.name().find('.') == std::string::npos) v.set_name(graph.fresh_name(v.name()));
  };
  for (const auto& v : graph.block().inputs())
    if (v->name() != "self") number(*v);
  each_node(graph.block(), [&](Node& n) {
    if (!n.is("prim::If") && !n.is("prim::Loop") && !n.is("prim::GetAttr"))
      for (const auto& v : n.outputs()) number(*v);
    for (const auto& inner : n.blocks())
      for (const auto& v : inner->inputs()) number(*v);
  });
}

/// "Mlp.forward" of a method, else the last part of the name.
std::string shown_name(const Function& function) {
  size_t dot = function.name.rfind('.');
  bool is_method = !function.parameters.empty() && function.parameters[0].type->cls && dot != std::string::npos &&
                   function.parameters[0].type->cls->name == function.name.substr(0, dot);
  if (is_method) dot = function.name.rfind('.', dot - 1);
  return function.name.substr(dot + 1);
}

}  // namespace

void define(Function& function, const TreePtr& def, Resolver& resolver) {
  Compilation compilation(shown_name(function));
  function.graph = std::make_shared<Graph>();
  Emitter(function, resolver).body(*def);
  eliminate_dead_code(*function.graph);
  pool_constants(*function.graph);
  number_names(*function.graph);
}

// ---- functions ----

void Emitter::body(const Tree& def) {
  for (const Parameter& p : function_.parameters) {
    Variable* v = graph_.add_input(p.name, p.type);
    env_[p.name] = sugar(v);
  }
  Rewritten rewritten = rewrite_exits(def);
  if (!function_.result && rewritten.returns_value && !rewritten.always_returns) {  // what is left is None
    Tree whole = def;
    auto none = std::make_shared<Tree>(def);
    none->kind = Syntax::Return;
    none->children.clear();
    none->body.clear();
    whole.body.push_back(none);
    rewritten = rewrite_exits(whole);
  }
  statements(rewritten.body);
  auto found = env_.find("$ret");
  if (!rewritten.always_returns && !raises_ && function_.result && !function_.result->is(TypeKind::None))
    fail_at(def, "Function was not annotated as having type None, but does not return along all paths");
  Variable* result = nullptr;
  if (found != env_.end() && (rewritten.always_returns || rewritten.returns_value))
    result = as_value(def, found->second);
  else if (raises_ && function_.result && !function_.result->is(TypeKind::None))
    result = one(def, "prim::Uninitialized", {}, function_.result);
  else result = constant(Value());
  if (!function_.result) function_.result = result->type();
  graph_.add_output(result);
}

namespace {
class TreePlace final : public LateText {
 public:
  explicit TreePlace(const Tree& tree) : range_(shown_range(tree)) {}
  std::string text() const override { return range_.source->place(range_.begin); }
  SourceRange range() const override { return range_; }

 private:
  SourceRange range_;
};
}  // namespace

Node* Emitter::insert(const Tree& at, std::string kind, Variables inputs, std::vector<TypePtr> outputs) {
  Node* node = graph_.insert(std::move(kind), std::move(inputs), std::move(outputs));
  node->source = make_counted<TreePlace>(at);
  return node;
}

Variable* Emitter::tuple(const Tree& at, const Variables& parts) {
  std::vector<TypePtr> types;
  for (Variable* v : parts) types.push_back(v->type());
  return one(at, "prim::TupleConstruct", parts, tuple_type(std::move(types)));
}

SugaredPtr Emitter::lookup(const Tree& at, const std::string& name) {
  if (auto found = env_.find(name); found != env_.end()) {
    if (found->second) return found->second;
    auto why = undefined_.find(name);
    if (why != undefined_.end() && why->second.empty()) fail_at(at, "undefined value ", name);
    if (why != undefined_.end()) fail_at(at, why->second, "and was used here");
    fail_at(at, name, " is not defined in all branches that lead here");
  }
  if (SugaredPtr s = resolver_.name(name)) return usable(at, s);
  static const char* const known[] = {
      "len",           "range",   "enumerate", "zip",    "print", "abs",      "min",
      "max",           "sum",     "sorted",    "any",    "all",   "round",    "isinstance",
      "getattr",       "hasattr", "reversed",  "ord",    "chr",   "annotate", "unchecked_cast",
      "uninitialized", "divmod",  "pow",       "super",  "hash",  "hex",      "bin",
      "oct",           "id",      "map",       "filter", "fork",  "wait",     "tuple",
      "iter",          "next",    "slice"};
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

SugaredPtr Emitter::usable(const Tree& at, const SugaredPtr& s) {
  if (s->kind == Sugared::Kind::Refused) fail_at(at, s->name);
  return s;
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
    Compilation::reach(*s);
    statement(*s);
  }
}

void Emitter::statement(const Tree& s) {
  statement_ = &s;
  switch (s.kind) {
    case Syntax::Pass: return;
    case Syntax::Import:
      throw UnsupportedSyntax(
          concat("import statements aren't supported:\n", whole_range(s).pointed(), Compilation::waiting()), true);
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
    case Syntax::Delete: return delete_target(*s.children[0]);
    case Syntax::With: return with_statement(s);
    case Syntax::Def:
      if (s.text == "__forked_function" && s.parameters.empty() && s.body.size() == 1 &&
          s.body[0]->kind == Syntax::Return && s.body[0]->children.size() == 1) {  // as archives write what they fork
        forked_ = s.body[0]->children[0];
        return;
      }
      [[fallthrough]];
    case Syntax::Class:
      throw UnsupportedSyntax(concat("function definitions aren't supported:\n",
                                     SourceRange{s.source, s.begin, s.begin + 3}.pointed(), Compilation::waiting()),
                              true);
    default: fail_at(s, "this statement is not supported");
  }
}

void Emitter::delete_target(const Tree& t) {
  if (t.kind == Syntax::Tuple) {
    for (const TreePtr& c : t.children) delete_target(*c);
  } else if (t.kind == Syntax::Name) {
    env_.erase(t.text);
    undefined_[t.text] = "";
  } else if (t.kind == Syntax::Subscript) {
    if (t.children[1]->kind == Syntax::Slice)
      fail_at(t,
              "del statements only support deletion at a single index, slicing is not supported (see "
              "https://github.com/pytorch/pytorch/issues/31430)");
    Variable* of = value(*t.children[0]);
    if (!of->type()->is(TypeKind::Class))
      return void(builtin(t, "aten::Delete", {{"", of}, {"", value(*t.children[1])}}));
    if (!of->type()->cls->method("__delitem__")) fail_at(t, "Class does not define __delitem__");
    call_method(t, of, "__delitem__", {{"", value(*t.children[1])}});
  } else {
    fail_at(t, "del statements are only supported for deleting list and dict items and variables");
  }
}

// ---- with ----

/// Objects are entered in order and left in the opposite one. What is open when a program raises is left by the
/// interpreter.
void Emitter::with_statement(const Tree& s) {
  Variables open;
  for (const TreePtr& item : s.children) {
    const Tree& e = item->kind == Syntax::Keyword ? *item->children[0] : *item;
    Variable* object = value(e);
    if (!object->type()->is(TypeKind::Class)) fail_at(e, "With item expression must return an object");
    const ClassPtr& cls = object->type()->cls;
    FunctionPtr enter = cls->method("__enter__"), exit = cls->method("__exit__");
    if (!enter || !exit)
      fail_at(e, "Object returned by with item expression does not define __enter__ and __exit__ methods");
    enter->ensure();
    if (enter->parameters.size() != 1) fail_at(e, "__enter__ must have only one argument and one return value");
    if (exit->parameters.size() != 4)
      fail_at(e, "__exit__ must have four arguments: self, the exception's type and value, and a traceback");
    Variable* entered = one(s, "prim::Enter", {object}, enter->result);
    open.push_back(object);
    if (item->kind == Syntax::Keyword) assign_name(e, item->text, sugar(entered));
  }
  statements(s.body);
  for (size_t i = open.size(); i-- > 0 && !raises_;) insert(s, "prim::Exit", {open[i]}, {});
}

// ---- errors ----

Variable* Emitter::as_message(const Tree& at, Variable* v) {
  return v->type()->is(TypeKind::String) ? v : as_value(at, builtin(at, "aten::str", {{"", v}}));
}

void Emitter::raise(const Tree& s) {
  if (s.children.empty()) fail_at(s, "raise needs an exception");
  const Tree& e = *s.children[0];
  Variables inputs;
  if (e.kind == Syntax::Call) {
    std::string path = path_of(*e.children[0]);
    std::vector<Argument> arguments = arguments_of(e);
    Variables parts;
    for (const Argument& a : arguments) parts.push_back(a.value);
    Variable* message = parts.empty() ? constant(Value("")) : parts.size() == 1 ? parts[0] : tuple(s, parts);
    inputs.push_back(as_message(s, message));
    std::string full = resolver_.exception(path);
    if (full.empty()) expression(*e.children[0]);  // a name that is none is told
    inputs.push_back(constant(Value(full.empty() ? path : full)));
  } else {
    inputs.push_back(constant(Value("")));
  }
  insert(s, "prim::RaiseException", inputs, {});
  raises_ = true;
}

void Emitter::assertion(const Tree& s) {
  Condition c = condition(*s.children[0]);
  raise_unless(s, c, [&]() -> Variable* { return s.children.size() > 1 ? value(*s.children[1]) : nullptr; });
  if (!c.known) refine(c.if_true);
}

/// Where the condition does not hold, an error is raised; the reason, which may be null, is computed only then.
void Emitter::raise_unless(const Tree& at, const Condition& c, const std::function<Variable*()>& reason) {
  branches(
      at, c, [] {},
      [&] {
        Variable* message = constant(Value("AssertionError: "));
        if (Variable* given = reason()) {
          Variable* why = as_message(at, given);
          const Value* known = why->node()->is("prim::Constant") ? why->node()->attribute("value") : nullptr;
          message = known ? constant(Value("AssertionError: " + known->to_string()))
                          : as_value(at, builtin(at, "aten::add", {{"", message}, {"", why}}));
        }
        insert(at, "prim::RaiseException", {message}, {});
        raises_ = true;
      });
}

}  // namespace umbra::jit
