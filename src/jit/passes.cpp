#include "umbra/jit/passes.h"

#include <algorithm>
#include <unordered_set>

#include "jit/builtins.h"
#include "umbra/jit/interpreter.h"

namespace umbra::jit {

// ---- dead code ----

namespace {

using Live = std::vector<bool>;  // by the values' numbers

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
    // A loop's body may read what it computed the time before.
    for (const auto& inner : n->blocks()) sweep(graph, *inner, live);
  }
}

}  // namespace

void eliminate_dead_code(Graph& graph) {
  Live live(graph.value_limit());
  sweep(graph, graph.block(), live);
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
  return true;
}

bool makes_new_container(const Node& n) {
  return n.is("prim::ListConstruct") || n.is("prim::DictConstruct") || n.is("prim::CreateObject");
}

}  // namespace

void eliminate_common_subexpressions(Graph& graph) {
  bool writes = false;
  each_node(graph.block(), [&](const Node& n) { writes |= n.has_side_effects(); });
  std::vector<Node*> kept;
  std::vector<Node*> nodes;
  for (const auto& n : graph.block().nodes()) nodes.push_back(n.get());
  for (Node* n : nodes) {
    bool pure = !n->has_side_effects() && n->blocks().empty() &&
                (n->is("prim::Constant") || (!writes && !makes_new_container(*n)));
    Node* same = nullptr;
    if (pure)
      for (Node* k : kept)
        if (same_call(*k, *n)) same = k;
    if (!same) {
      if (pure) kept.push_back(n);
      continue;
    }
    for (size_t i = 0; i < n->outputs().size(); ++i) graph.replace_uses(n->output(i), same->output(i));
    graph.erase(n);
  }
}

// ---- constants ----

namespace {

bool is_plain(const Value& v) {
  using Tag = Value::Tag;
  switch (v.tag()) {
    case Tag::None:
    case Tag::Int:
    case Tag::Double:
    case Tag::Bool:
    case Tag::String:
    case Tag::Device: return true;
    default: return false;
  }
}

const Value* constant_value(const Variable* v) {
  static const Value none{};
  if (!v->node()->is("prim::Constant") || v->node()->callee) return nullptr;
  const Value* value = v->node()->attribute("value");
  return value ? value : &none;
}

}  // namespace

void propagate_constants(Graph& graph) {
  std::vector<Node*> nodes;
  each_node(graph.block(), [&](Node& n) { nodes.push_back(&n); });
  for (Node* n : nodes) {
    if (n->op || n->outputs().size() != 1 || n->has_side_effects() || !n->blocks().empty() || n->inputs.empty())
      continue;
    std::vector<Value> inputs;
    std::vector<TypePtr> types;
    for (Variable* v : n->inputs)
      if (const Value* c = constant_value(v); c && is_plain(*c)) inputs.push_back(*c), types.push_back(v->type());
    if (inputs.size() != n->inputs.size()) continue;
    TypePtr type;
    const Builtin* builtin = find_builtin(n->kind(), types, &type);
    if (!builtin) continue;
    try {
      Value result = builtin->run(inputs.data(), inputs.size());
      if (!is_plain(result)) continue;
      graph.set_before(n);
      Variable* c = graph.insert_constant(result);
      graph.set_before(nullptr);
      graph.replace_uses(n->output(), c);
    } catch (const Error&) {  // it fails when the program runs, and not before
      continue;
    }
  }
  graph.set_current(&graph.block());
  eliminate_dead_code(graph);
}

bool fold_branches(Graph& graph) {
  std::vector<Node*> found;
  each_node(graph.block(), [&](Node& n) {
    const Value* c = n.is("prim::If") ? constant_value(n.inputs[0]) : nullptr;
    if (c && c->is_bool()) found.push_back(&n);
  });
  if (found.empty()) return false;
  Node* n = found.back();  // the innermost of the last: those around it are folded when it is gone
  const Block& taken = *n->blocks()[constant_value(n->inputs[0])->to_bool() ? 0 : 1];
  ValueMap values;
  graph.set_current(n->block());
  graph.set_before(n);
  Variables outputs = copy_into(graph, taken, values);
  graph.set_before(nullptr);
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::string name = n->output(i)->name();
    graph.replace_uses(n->output(i), outputs[i]);
  }
  graph.erase(n);
  graph.set_current(&graph.block());
  return true;
}

void pool_constants(Graph& graph) {
  std::vector<Node*> found;
  each_node(graph.block(), [&](Node& n) {
    if (n.is("prim::Constant")) found.push_back(&n);
  });
  std::unordered_map<std::string, Variable*> pooled;
  ValueMap replaced;
  Node* first = graph.block().nodes().empty() ? nullptr : graph.block().nodes().front().get();
  if (!first) return;
  for (Node* n : found) {
    const Value* value = n->attribute("value");
    bool shared = n->callee || !value || is_plain(*value);
    std::string key = n->callee ? "function " + std::to_string(reinterpret_cast<uintptr_t>(n->callee.get()))
                      : shared  ? n->output()->type()->text() + (value ? to_source(*value) : "")
                                : "";
    Variable*& same = shared ? pooled[key] : replaced[n->output()];
    if (!same) {
      graph.set_current(&graph.block());
      graph.set_before(first);
      Node* moved = graph.insert("prim::Constant", {}, {n->output()->type()});
      moved->attributes = n->attributes;
      moved->source = n->source;
      moved->callee = n->callee;
      same = moved->output();
    }
    if (same->name().empty() && !n->output()->name().empty()) {
      std::string name = n->output()->name();
      n->output()->set_name("");
      same->set_name(name);
    }
    replaced[n->output()] = same;
  }
  graph.set_before(nullptr);
  auto replace = [&](Variables& values) {
    for (Variable*& v : values)
      if (auto at = replaced.find(v); at != replaced.end()) v = at->second;
  };
  replace(graph.block().outputs);
  each_node(graph.block(), [&](Node& n) {
    replace(n.inputs);
    for (const auto& inner : n.blocks()) replace(inner->outputs);
  });
  for (Node* n : found) graph.erase(n);
  graph.set_current(&graph.block());
}

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
  eliminate_dead_code(graph);
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
