#include "umbra/jit/passes.h"

#include <algorithm>
#include <unordered_set>

#include "umbra/jit/alias.h"
#include "umbra/jit/objects.h"

namespace umbra::jit {

// ---- dead code ----

namespace {

using Live = std::vector<bool>;  // by the values' numbers

/// Results of a branch that nobody reads.
void drop_unread(Node& n, const Live& live) {
  for (size_t i = n.outputs().size(); i-- > 0;) {
    if (live[n.output(i)->unique()]) continue;
    n.erase_output(i);
    for (const auto& b : n.blocks()) b->outputs.erase(b->outputs.begin() + static_cast<long>(i));
  }
}

void sweep(Graph& graph, Block& block, Live& live) {
  auto mark = [&](const Variables& values) {
    for (Variable* v : values) live[v->unique()] = true;
  };
  mark(block.outputs);
  Node* before = nullptr;
  for (Node* n = block.nodes().empty() ? nullptr : block.nodes().back().get(); n; n = before) {
    before = n->previous();
    bool needed = false;
    for (const auto& v : n->outputs()) needed = needed || live[v->unique()];
    needed = needed || n->has_side_effects() || n->is("prim::TracedModuleForward");
    if (!needed) {
      graph.erase(n);
      continue;
    }
    mark(n->inputs);
    if (n->is("prim::If")) drop_unread(*n, live);
    // A loop's body may read what it computed the time before.
    for (const auto& inner : n->blocks()) sweep(graph, *inner, live);
  }
}

/// Finds the nodes whose results or writes somebody may see.
class Needed {
 public:
  Needed(const Graph& graph, const AliasAnalysis& aliases) : aliases_(aliases) {
    do {
      grown_ = false;
      mark(graph.block());
    } while (grown_);
  }
  bool contains(const Node& n) const { return nodes_.contains(&n); }

 private:
  void mark(const Block& block) {
    mark(block.outputs);
    for (auto at = block.nodes().rbegin(); at != block.nodes().rend(); ++at) {
      const Node& n = **at;
      if (!nodes_.contains(&n) && !is_seen(n)) continue;
      grown_ |= nodes_.insert(&n).second;
      mark(n.inputs);
      for (const auto& inner : n.blocks()) mark(*inner);
    }
  }
  void mark(const Variables& values) {
    for (Variable* v : values)
      if (seen_.insert(v).second) {
        live_.push_back(v);
        grown_ = true;
      }
  }
  bool is_seen(const Node& n) const {
    for (const auto& v : n.outputs())
      if (seen_.contains(v.get())) return true;
    if (!n.blocks().empty())
      for (const auto& inner : n.blocks())
        for (const auto& m : inner->nodes())
          if (is_seen(*m)) return true;
    if (!n.has_side_effects()) return false;
    if (n.blocks().empty() && !only_writes(n)) return true;
    return n.blocks().empty() && (aliases_.writes_outside(n) || aliases_.writes_to(n, live_));
  }

  const AliasAnalysis& aliases_;
  std::unordered_set<const Node*> nodes_;
  std::unordered_set<const Variable*> seen_;
  Variables live_;
  bool grown_ = false;
};

void sweep(Graph& graph, Block& block, const Needed& needed) {
  Node* before = nullptr;
  for (Node* n = block.nodes().empty() ? nullptr : block.nodes().back().get(); n; n = before) {
    before = n->previous();
    if (!needed.contains(*n)) {
      graph.erase(n);
      continue;
    }
    for (const auto& inner : n->blocks()) sweep(graph, *inner, needed);
  }
}

}  // namespace

void eliminate_dead_code(Graph& graph) {
  Live live(graph.value_limit());
  sweep(graph, graph.block(), live);
}

void eliminate_dead_writes(Graph& graph) {
  Needed needed(graph, AliasAnalysis(graph));
  sweep(graph, graph.block(), needed);
}

// ---- common subexpressions ----

namespace {

bool same_call(const Node& a, const Node& b) {
  if (a.kind() != b.kind() || a.op != b.op || a.inputs != b.inputs || a.outputs().size() != b.outputs().size())
    return false;
  if (!a.blocks().empty() || a.attributes.size() != b.attributes.size() || a.callee != b.callee) return false;
  for (size_t i = 0; i < a.attributes.size(); ++i)
    if (a.attributes[i].first != b.attributes[i].first || !equal(a.attributes[i].second, b.attributes[i].second))
      return false;
  for (size_t i = 0; i < a.outputs().size(); ++i)
    if (!same_type(a.output(i)->type(), b.output(i)->type())) return false;
  return a.op_types == b.op_types;
}

/// Makes one of equal calls whose values nobody writes, and which nobody outside could tell apart.
class CommonCalls {
 public:
  explicit CommonCalls(Graph& graph) : graph_(graph), aliases_(graph) { visit(graph.block()); }

 private:
  using Known = std::unordered_map<std::string_view, std::vector<Node*>>;  // by kinds

  void visit(Block& block) {
    known_.emplace_back();
    std::vector<Node*> nodes;
    for (const auto& n : block.nodes()) nodes.push_back(n.get());
    for (Node* n : nodes) {
      for (const auto& inner : n->blocks()) visit(*inner);
      if (n->has_side_effects() || !n->blocks().empty() || n->is("prim::CreateObject") ||
          (!n->is("prim::Constant") && aliases_.has_writers(*n)))
        continue;
      if (Node* same = earlier(*n)) replace(n, same);
      else known_.back()[n->kind()].push_back(n);
    }
    known_.pop_back();
  }

  Node* earlier(const Node& n) const {
    for (const Known& level : known_)
      if (auto found = level.find(n.kind()); found != level.end())
        for (Node* k : found->second)
          if (same_call(*k, n) && exchangeable(*k, n)) return k;
    return nullptr;
  }

  bool exchangeable(const Node& a, const Node& b) const {
    for (size_t i = 0; i < a.outputs().size(); ++i)
      if (!aliases_.exchangeable(a.output(i), b.output(i)) ||
          (escaped_.contains(a.output(i)) && aliases_.escapes(b.output(i))))
        return false;
    return true;
  }

  void replace(Node* n, Node* by) {
    for (size_t i = 0; i < n->outputs().size(); ++i) {
      if (aliases_.escapes(n->output(i))) escaped_.insert(by->output(i));
      graph_.replace_uses(n->output(i), by->output(i));
    }
    graph_.erase(n);
  }

  Graph& graph_;
  AliasAnalysis aliases_;
  std::vector<Known> known_;                     // of the blocks around
  std::unordered_set<const Variable*> escaped_;  // those that stand for one that goes out
};

}  // namespace

void eliminate_common_subexpressions(Graph& graph) { CommonCalls{graph}; }

// ---- inlining ----

namespace {

void inline_in(Graph& graph, Block& block, std::vector<const Function*>& inside) {
  std::vector<Node*> nodes;
  for (const auto& n : block.nodes()) nodes.push_back(n.get());
  for (Node* n : nodes) {
    for (const auto& inner : n->blocks()) inline_in(graph, *inner, inside);
    FunctionPtr callee;
    size_t skipped = 0;
    if (n->is("prim::CallFunction")) {
      callee = n->inputs[0]->node()->callee;
      skipped = 1;
    } else if (n->is("prim::CallMethod") && n->inputs[0]->type()->cls) {
      callee = n->inputs[0]->type()->cls->method(n->attribute("name")->to_string());
    }
    if (!callee || callee->ignored || !callee->ensure()) continue;
    check(std::ranges::find(inside, callee.get()) == inside.end() && inside.size() < 200,
          "functions that call themselves cannot be inlined");
    auto body = callee->graph->copy();
    inside.push_back(callee.get());
    inline_in(*body, body->block(), inside);
    inside.pop_back();
    ValueMap values;
    for (size_t i = 0; i < body->block().inputs().size(); ++i) values[body->block().input(i)] = n->inputs[i + skipped];
    graph.set_before(n);
    Variables outputs = copy_into(graph, body->block(), values);
    graph.set_before(nullptr);
    if (!n->outputs().empty() && !outputs.empty()) {
      std::string name = n->output()->name();
      graph.replace_uses(n->output(), outputs[0]);
    }
    graph.erase(n);
  }
}

}  // namespace

void inline_calls(Graph& graph) {
  std::vector<const Function*> inside;
  inline_in(graph, graph.block(), inside);
  graph.set_current(&graph.block());
}

// ---- lint ----

namespace {

void lint_block(const Block& block, std::unordered_set<const Variable*> visible) {
  for (const auto& v : block.inputs()) visible.insert(v.get());
  auto seen = [&](const Variable* v, const std::string& where) {
    check(visible.contains(v), "the graph is broken: %", v->debug_name(), " is read by ", where, " before it is there");
  };
  for (const auto& n : block.nodes()) {
    for (const Variable* v : n->inputs) seen(v, n->kind());
    for (const auto& inner : n->blocks()) lint_block(*inner, visible);
    if (n->is("prim::If"))
      for (const auto& inner : n->blocks())
        check(inner->outputs.size() == n->outputs().size(), "the graph is broken: a branch gives ",
              inner->outputs.size(), " values, expected ", n->outputs().size());
    if (n->op)
      check(n->inputs.size() == n->op->argument_count(), "the graph is broken: ", n->op->name(), " has ",
            n->inputs.size(), " arguments, expected ", n->op->argument_count());
    for (const auto& v : n->outputs()) visible.insert(v.get());
  }
  for (const Variable* v : block.outputs) seen(v, "a return");
}

}  // namespace

void lint(const Graph& graph) { lint_block(graph.block(), {}); }

// ---- comparison ----

namespace {

using Numbers = std::unordered_map<const Variable*, size_t>;

bool same_blocks(const Block& a, const Block& b, Numbers& left, Numbers& right) {
  auto define = [&](const auto& x, const auto& y) {
    for (size_t i = 0; i < x.size(); ++i) {
      left[x[i].get()] = left.size();
      right[y[i].get()] = right.size();
    }
  };
  auto same = [&](const Variables& x, const Variables& y) {
    if (x.size() != y.size()) return false;
    for (size_t i = 0; i < x.size(); ++i)
      if (left[x[i]] != right[y[i]]) return false;
    return true;
  };
  if (a.inputs().size() != b.inputs().size() || a.nodes().size() != b.nodes().size()) return false;
  define(a.inputs(), b.inputs());
  auto n = b.nodes().begin();
  for (const auto& m : a.nodes()) {
    const Node &x = *m, &y = **n++;
    if (x.kind() != y.kind() || !same(x.inputs, y.inputs) || x.outputs().size() != y.outputs().size() ||
        x.blocks().size() != y.blocks().size() || x.attributes.size() != y.attributes.size())
      return false;
    for (size_t i = 0; i < x.attributes.size(); ++i) {
      const Value &p = x.attributes[i].second, &q = y.attributes[i].second;
      if (p.is_tensor() || p.is_object() ? p.tag() != q.tag() : !equal(p, q)) return false;
    }
    define(x.outputs(), y.outputs());
    for (size_t i = 0; i < x.blocks().size(); ++i)
      if (!same_blocks(*x.blocks()[i], *y.blocks()[i], left, right)) return false;
  }
  return same(a.outputs, b.outputs);
}

}  // namespace

bool same_structure(const Graph& a, const Graph& b) {
  Numbers left, right;
  return same_blocks(a.block(), b.block(), left, right);
}

}  // namespace umbra::jit
