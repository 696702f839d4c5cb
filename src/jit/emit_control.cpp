// Branches and loops: what they assign is joined behind them.
#include <unordered_set>

#include "jit/builtin_rules.h"
#include "jit/emitter.h"

namespace umbra::jit {

namespace {

/// Whether a value is the variable itself, or the variable as a condition told it to be.
bool is_refinement(const SugaredPtr& s, const SugaredPtr& of) {
  if (s == of) return true;
  if (!s || !of || s->kind != Sugared::Kind::Variable || of->kind != Sugared::Kind::Variable) return false;
  const Variable* v = s->variable;
  while (v != of->variable && v->node()->is("prim::unchecked_cast")) v = v->node()->inputs[0];
  return v == of->variable;
}

/// The names in a target of an assignment.
void names_in(const Tree& target, std::vector<std::string>& names) {
  if (target.kind == Syntax::Name) names.push_back(target.text);
  else if (target.kind == Syntax::Tuple || target.kind == Syntax::List || target.kind == Syntax::Starred)
    for (const TreePtr& c : target.children) names_in(*c, names);
}

/// The names that statements assign, in order.
void assigned(const Tree& tree, std::vector<std::string>& names) {
  switch (tree.kind) {
    case Syntax::Assign:
      for (size_t i = 0; i + 1 < tree.children.size(); ++i) names_in(*tree.children[i], names);
      break;
    case Syntax::Annotated:
      if (tree.children.size() > 2) names_in(*tree.children[0], names);
      break;
    case Syntax::Augmented:
    case Syntax::For: names_in(*tree.children[0], names); break;
    default: break;
  }
  for (const TreePtr& s : tree.body) assigned(*s, names);
  if (tree.kind == Syntax::If)
    for (const TreePtr& s : tree.orelse) assigned(*s, names);
}

/// A break or continue of the loop with this body, as `rewrite_exits` wrote it, or null.
const Tree* leaves_turn(const std::vector<TreePtr>& body) {
  for (const TreePtr& s : body) {
    if (s->kind == Syntax::For || s->kind == Syntax::While) continue;
    bool sets_flag = s->kind == Syntax::Assign && s->children[0]->kind == Syntax::Name &&
                     (s->children[0]->text.starts_with("$brk") || s->children[0]->text.starts_with("$cont"));
    if (sets_flag && s->children.back()->text == "True") return s.get();
    for (const auto* part : {&s->body, &s->orelse})
      if (const Tree* found = leaves_turn(*part)) return found;
  }
  return nullptr;
}

}  // namespace

// ---- branches ----

void Emitter::if_statement(const Tree& s) {
  Condition c = condition(*s.children[0]);
  branches(
      s, c, [&] { statements(s.body); }, [&] { statements(s.orelse); });
}

/// Of an if-statement `at` may say which branch leaves: what that one does not define is not read behind it. Where it
/// returns, nothing of it is.
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
  join(at, node, before, env_yes, env_no, raises_yes, raises_no);
}

namespace {
bool other_types(const Sugared& a, const Sugared& b) {
  bool variables = a.kind == Sugared::Kind::Variable && b.kind == Sugared::Kind::Variable;
  return variables && !unify(a.variable->type(), b.variable->type());
}
}  // namespace

/// A branch that leaves, or that has no part in a name of ours, gives the other one's name a value that is never read.
void Emitter::fill_in(const Tree& at, Node* node, const std::string& name, const bool (&raises)[2],
                      SugaredPtr (&values)[2]) {
  static constexpr std::string_view kLeaving[2] = {"yes", "no"};
  bool internal = name.starts_with("$"), is_if = at.kind == Syntax::If;
  bool returns = is_if && !internal && at.text.ends_with(" returns") && values[0] && values[1] &&
                 other_types(*values[0], *values[1]);
  for (int branch : {0, 1}) {
    const SugaredPtr& other = values[1 - branch];
    bool leaves = raises[branch] || (is_if && at.text.starts_with(kLeaving[branch]));
    bool unread = !values[branch] || raises[branch] || (returns && leaves);
    if (!unread || !(internal || leaves) || !other || other->kind != Sugared::Kind::Variable) continue;
    Block* current = graph_.current();
    graph_.set_current(node->blocks()[branch].get());
    values[branch] = sugar(one(at, "prim::Uninitialized", {}, other->variable->type()));
    graph_.set_current(current);
  }
}

/// What a name is behind an if-statement: null where it is not to be read, with the reason in `undefined_`.
SugaredPtr Emitter::joined(const Tree& at, Node* node, const std::string& name, const SugaredPtr& yes,
                           const SugaredPtr& no, bool was_defined) {
  if (!yes || !no) {
    if (auto deleted = undefined_.find(name); deleted != undefined_.end() && deleted->second.empty()) return nullptr;
    undefined_[name] =
        concat("\n", name, " is not defined in the ", yes ? "false" : "true", " branch:\n", whole_range(at).pointed());
    return nullptr;
  }
  if (yes->kind != Sugared::Kind::Variable || no->kind != Sugared::Kind::Variable) return yes == no ? yes : nullptr;
  TypePtr type = unify(yes->variable->type(), no->variable->type());
  if (!type) {
    std::string yes_type = yes->variable->type()->annotation(), no_type = no->variable->type()->annotation();
    if (name == "$ret")
      fail_at(last_return_ ? *last_return_ : at, "Previous return statement returned a value of type ", yes_type,
              " but this return statement returns a value of type ", no_type);
    std::string mismatch = concat("Type mismatch: ", name, " is set to type ", yes_type,
                                  " in the true branch and type ", no_type, " in the false branch");
    if (was_defined) fail_at(at, mismatch);
    undefined_[name] = concat(mismatch, ":\n", whole_range(at).pointed());
    return nullptr;
  }
  node->blocks()[0]->outputs.push_back(yes->variable);
  node->blocks()[1]->outputs.push_back(no->variable);
  Variable* out = node->add_output(type);
  if (!name.starts_with("$")) out->set_name(name);
  return sugar(out);
}

void Emitter::join(const Tree& at, Node* node, const Environment& before, const Environment& yes, const Environment& no,
                   bool yes_raises, bool no_raises) {
  env_ = before;
  std::vector<std::string> names;
  for (const auto& [name, v] : yes) names.push_back(name);
  for (const auto& [name, v] : no)
    if (!yes.contains(name)) names.push_back(name);
  auto found = [](const Environment& environment, const std::string& name) {
    auto at = environment.find(name);
    return at == environment.end() ? nullptr : at->second;
  };
  for (const std::string& name : names) {
    SugaredPtr values[2] = {found(yes, name), found(no, name)};
    auto old = before.find(name);
    bool known = old != before.end();
    if (known && values[0] == old->second && values[1] == old->second) continue;
    // What a condition told about a variable holds inside its branches; behind them it is the variable again.
    bool only_told = known && is_refinement(values[0], old->second) && is_refinement(values[1], old->second);
    if (only_told && !yes_raises && !no_raises) continue;
    fill_in(at, node, name, {yes_raises, no_raises}, values);
    env_[name] = joined(at, node, name, values[0], values[1], known && old->second);
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

/// Writes a loop's body once, to learn the types in it, and takes it away again.
void Emitter::try_body(const Tree& at, const std::function<void(Variable*)>& body) {
  Environment before = env_;
  Node* trial = insert(at, "prim::Loop", {}, {});
  Block* current = graph_.current();
  graph_.set_current(trial->add_block());
  bool raises = std::exchange(raises_, false);
  outer_.push_back(&before);
  body(trial->blocks()[0]->add_input(int_type()));
  outer_.pop_back();
  raises_ = raises;
  graph_.set_current(current);
  env_ = before;
  graph_.erase(trial);
}

/// A loop that carries nothing: what its body does shows in a container.
void Emitter::plain_loop(const Tree& at, Variable* length, const std::function<void(Variable*)>& body) {
  Environment before = env_;
  Node* node = insert(at, "prim::Loop", {length, constant(Value(true))}, {});
  Block* block = node->add_block();
  Variable* index = block->add_input(int_type());
  Block* current = graph_.current();
  graph_.set_current(block);
  outer_.push_back(&before);
  body(index);
  outer_.pop_back();
  block->outputs.push_back(constant(Value(true)));
  graph_.set_current(current);
  env_ = before;
}

/// What a loop's body assigns and the code before it had: the values that go from turn to turn. A result that is
/// returned inside starts as nothing.
std::vector<std::string> Emitter::carried_by(const Tree& s, const std::function<void(Variable*)>& head) {
  std::vector<std::string> names, carried;
  assigned(s, names);
  std::unordered_set<std::string> seen;
  for (const std::string& n : names) {
    auto found = env_.find(n);
    bool is_value = found != env_.end() && found->second && found->second->kind == Sugared::Kind::Variable;
    if (seen.insert(n).second && is_value && !n.starts_with("$cont")) carried.push_back(n);
  }
  if (!seen.contains("$ret") || env_.contains("$ret")) return carried;
  TypePtr type = function_.result;
  if (!type)
    try_body(s, [&](Variable* i) {
      head(i);
      statements(s.body);
      if (env_.contains("$ret") && env_["$ret"]) type = env_["$ret"]->variable->type();
    });
  if (type) {
    env_["$ret"] = sugar(one(s, "prim::Uninitialized", {}, type));
    carried.push_back("$ret");
  }
  return carried;
}

void Emitter::loop(const Tree& s, Variable* trips, const std::function<Variable*()>& condition,
                   const std::function<void(Variable*)>& head) {
  std::vector<std::string> carried = carried_by(s, head);
  Variable* first = condition ? condition() : constant(Value(true));
  Environment before = env_;
  Variables inputs{trips, first};
  for (const std::string& n : carried) inputs.push_back(before[n]->variable);
  Node* node = insert(s, "prim::Loop", inputs, {});
  Block* block = node->add_block();
  Variable* index = block->add_input(int_type());
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
    again = s.orelse.empty() ? condition() : one(s, "aten::__and__", {again, condition()}, bool_type());
  outer_.pop_back();
  raises_ = raises;
  block->outputs.push_back(again);
  for (const std::string& n : carried) block->outputs.push_back(carried_on(s, n, before[n]->variable->type()));
  graph_.set_current(current);
  env_ = before;
  for (const std::string& n : carried) {
    Variable* out = node->add_output(before[n]->variable->type());
    if (!n.starts_with("$")) out->set_name(n);
    env_[n] = sugar(out);
  }
}

/// The value of a carried variable at the end of a loop's body.
Variable* Emitter::carried_on(const Tree& s, const std::string& name, const TypePtr& type) {
  Variable* v = env_.at(name) ? as_value(s, env_.at(name)) : nullptr;
  if (!v) fail_at(s, name, " is not defined along all paths of the loop's body");
  if (!is_subtype(v->type(), type))
    fail_at(s, "Variable '", name, "' previously had type ", type->annotation(),
            " but is now being assigned to a value of type ", v->type()->annotation(), "\n");
  return v;
}

void Emitter::while_statement(const Tree& s) {
  Variable* most = constant(Value(std::numeric_limits<int64_t>::max()));
  loop(
      s, most, [&] { return condition(*s.children[0]).value; }, [](Variable*) {});
}

void Emitter::for_statement(const Tree& s) {
  Iterable it = iterable_of(*s.children[1]);
  if (it.is_fixed) return unrolled_loop(s, it.fixed);
  loop(s, it.length, nullptr, [&](Variable* i) { assign(*s.children[0], it.item(i)); });
}

/// The body once for each item. A return inside leaves out the turns that follow.
void Emitter::unrolled_loop(const Tree& s, const std::vector<SugaredPtr>& items) {
  if (const Tree* left = leaves_turn(s.body))
    fail_whole(*left,
               "Because we emit iteration over modulelists or tuples as unrolled loops, we do not support break or "
               "continue inside the body of these loops");
  for (size_t i = 0; i < items.size() && !raises_; ++i) {
    auto turn = [&] {
      assign(*s.children[0], items[i]);
      statements(s.body);
    };
    if (i == 0 || s.orelse.empty()) {
      turn();
      continue;
    }
    std::vector<std::string> targets;
    names_in(*s.children[0], targets);
    for (const std::string& name : targets) env_.erase(name);  // each turn's is a value of its own type
    Condition goes_on;
    goes_on.value = not_ended(s, constant(Value(true)));
    branches(s, goes_on, turn, [] {});
  }
}

}  // namespace umbra::jit
