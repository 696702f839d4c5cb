#include "jit/exits.h"

#include <utility>

namespace umbra::jit {
namespace {

using Statements = std::vector<TreePtr>;

struct Flow {
  bool always = false;   // nothing after it runs
  bool maybe = false;    // something after it may have to be skipped
  bool returns = false;  // always, and by a return or a raise: the function is left with a result
};

class Exits {
 public:
  explicit Exits(bool use_done) : use_done_(use_done) {}
  bool needs_done = false, returns_value = false;

  Flow rewrite(const Statements& in, size_t first, Statements& out) {
    Flow flow;
    for (size_t i = first; i < in.size(); ++i) {
      const TreePtr& s = in[i];
      switch (s->kind) {
        case Syntax::Return: {
          returns_value |= !s->children.empty();
          out.push_back(assign("$ret", s->children.empty() ? constant(*s, "None") : s->children[0], *s));
          if (!loops_.empty()) needs_done = true;
          if (use_done_) out.push_back(assign("$done", constant(*s, "True"), *s));
          return {true, true, true};
        }
        case Syntax::Break:
        case Syntax::Continue: {
          if (loops_.empty())
            fail_at(*s, s->kind == Syntax::Break ? "'break' outside loop" : "'continue' not properly in loop");
          bool is_break = s->kind == Syntax::Break;
          (is_break ? loops_.back().breaks : loops_.back().continues) = true;
          out.push_back(
              assign((is_break ? "$brk" : "$cont") + std::to_string(loops_.back().number), constant(*s, "True"), *s));
          return {true, true, false};
        }
        case Syntax::Raise: out.push_back(s); return {true, flow.maybe, true};
        case Syntax::If: {
          if (if_statement(in, i, out, flow)) return flow;
          break;
        }
        case Syntax::With: {
          TreePtr copy = std::make_shared<Tree>(*s);
          copy->body.clear();
          Flow inner = rewrite(s->body, 0, copy->body);
          out.push_back(copy);
          if (inner.always) return inner;
          if (inner.maybe) {
            skip_rest(in, i + 1, out, flow, *s);
            return flow;
          }
          break;
        }
        case Syntax::While:
        case Syntax::For: {
          if (loop(s, out)) {
            needs_done = true;
            skip_rest(in, i + 1, out, flow, *s);
            return flow;
          }
          break;
        }
        default: out.push_back(s);
      }
    }
    return flow;
  }

 private:
  struct Loop {
    int number;
    bool breaks = false, continues = false;
  };

  bool if_statement(const Statements& in, size_t i, Statements& out, Flow& flow) {
    const TreePtr& s = in[i];
    TreePtr copy = std::make_shared<Tree>(*s);
    copy->body.clear();
    copy->orelse.clear();
    Flow yes = rewrite(s->body, 0, copy->body), no = rewrite(s->orelse, 0, copy->orelse);
    copy->text = yes.always ? "yes" : no.always ? "no" : "";
    if (yes.always ? yes.returns : no.returns) copy->text += " returns";
    out.push_back(copy);
    if (!yes.maybe && !no.maybe && !(yes.always && no.always)) return false;  // at most one branch raises
    if (yes.always && no.always) {
      flow = {true, true, yes.returns && no.returns};
      return true;
    }
    if (!yes.always && !no.always) {
      skip_rest(in, i + 1, out, flow, *s);
      return true;
    }
    // What follows runs in the branch that goes on.
    Statements rest(yes.always ? s->orelse : s->body);
    rest.insert(rest.end(), in.begin() + static_cast<long>(i) + 1, in.end());
    Statements& target = yes.always ? copy->orelse : copy->body;
    target.clear();
    Flow other = rewrite(rest, 0, target);
    const Flow& leaving = yes.always ? yes : no;
    flow = {other.always, true, other.returns && leaving.returns};
    return true;
  }

  /// `if not (left): rest`
  void skip_rest(const Statements& in, size_t first, Statements& out, Flow& flow, const Tree& at) {
    if (loops_.empty()) needs_done = true;
    TreePtr guard = make(Syntax::If, at);
    Flow rest = rewrite(in, first, guard->body);
    flow = {false, true, false};
    if (rest.always) flow = {rest.returns && loops_.empty(), true, rest.returns && loops_.empty()};
    if (guard->body.empty()) return;
    TreePtr left;
    auto add = [&](const std::string& name) {
      TreePtr flag = make(Syntax::Name, at, name);
      if (!left) left = flag;
      else {
        TreePtr both = make(Syntax::Or, at);
        both->children = {left, flag};
        left = both;
      }
    };
    if (use_done_) add("$done");
    if (!loops_.empty()) {
      std::string n = std::to_string(loops_.back().number);
      if (loops_.back().breaks) add("$brk" + n);
      if (loops_.back().continues) add("$cont" + n);
    }
    if (!left) return void(out.insert(out.end(), guard->body.begin(), guard->body.end()));
    TreePtr negated = make(Syntax::Not, at);
    negated->children = {left};
    guard->children = {negated};
    guard->text = "no";
    out.push_back(guard);
  }

  /// True where the body may return.
  bool loop(const TreePtr& s, Statements& out) {
    TreePtr copy = std::make_shared<Tree>(*s);
    copy->body.clear();
    loops_.push_back({++count_});
    bool before = std::exchange(needs_done, false);
    rewrite(s->body, 0, copy->body);
    Loop own = loops_.back();
    loops_.pop_back();
    bool returns = needs_done;
    needs_done |= before;
    std::string n = std::to_string(own.number);
    if (own.breaks) {
      out.push_back(assign("$brk" + n, constant(*s, "False"), *s));
      copy->orelse.push_back(make(Syntax::Name, *s, "$brk" + n));  // flags that end the loop
    }
    if (returns && use_done_) copy->orelse.push_back(make(Syntax::Name, *s, "$done"));
    if (own.continues) copy->body.insert(copy->body.begin(), assign("$cont" + n, constant(*s, "False"), *s));
    out.push_back(copy);
    return returns;
  }

  static TreePtr make(Syntax kind, const Tree& at, std::string text = "") {
    auto tree = std::make_shared<Tree>();
    tree->kind = kind;
    tree->text = std::move(text);
    tree->source = at.source;
    tree->begin = at.begin;
    tree->end = at.end;
    return tree;
  }
  static TreePtr constant(const Tree& at, const char* text) { return make(Syntax::Constant, at, text); }
  static TreePtr assign(const std::string& name, TreePtr value, const Tree& at) {
    TreePtr tree = make(Syntax::Assign, at);
    TreePtr target = make(Syntax::Name, at, name);
    if (name != "$ret") target->end = target->begin;  // it is not written there
    tree->children = {target, std::move(value)};
    return tree;
  }

  bool use_done_;
  int count_ = 0;
  std::vector<Loop> loops_;
};

}  // namespace

Rewritten rewrite_exits(const Tree& def) {
  for (bool use_done : {false, true}) {
    Exits exits(use_done);
    Rewritten out;
    Flow flow = exits.rewrite(def.body, 0, out.body);
    if (exits.needs_done && !use_done) continue;
    out.always_returns = flow.returns;
    out.returns_value = exits.returns_value;
    if (use_done) {
      auto start = std::make_shared<Tree>();
      start->kind = Syntax::Assign;
      start->source = def.source;
      start->begin = def.begin;
      start->end = def.begin;
      auto name = std::make_shared<Tree>(*start), value = std::make_shared<Tree>(*start);
      name->kind = Syntax::Name;
      name->text = "$done";
      value->kind = Syntax::Constant;
      value->text = "False";
      start->children = {name, value};
      out.body.insert(out.body.begin(), start);
    }
    return out;
  }
  fail<AssertionError>("a function's exits cannot be found");
}

}  // namespace umbra::jit
