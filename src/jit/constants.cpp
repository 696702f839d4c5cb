// Constants: what follows from them is computed before anything runs.
#include "jit/program.h"
#include "umbra/autograd/grad_mode.h"
#include "umbra/jit/alias.h"
#include "umbra/jit/passes.h"

namespace umbra::jit {

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

/// Computes what depends on constants alone, tensors and lists among them.
class ConstantTensors {
 public:
  explicit ConstantTensors(Graph& graph) : graph_(graph), aliases_(graph) {}

  void run() {
    NoGrad off;
    std::vector<Node*> nodes;
    each_node(graph_.block(), [&](Node& n) { nodes.push_back(&n); });
    for (Node* n : nodes) visit(*n);
    graph_.set_current(&graph_.block());
  }

 private:
  void visit(Node& n) {
    if (n.is("prim::Constant")) {
      if (const Value* value = constant_value(n.output())) known_[n.output()] = *value;
      return;
    }
    if (n.has_side_effects() || !n.blocks().empty() || n.outputs().size() != 1 || n.inputs.empty() ||
        aliases_.has_writers(n))
      return;
    std::vector<Value> inputs;
    bool has_tensor = false;
    for (const Variable* v : n.inputs) {
      auto found = known_.find(v);
      if (found == known_.end()) return;
      inputs.push_back(found->second);
      has_tensor |= v->type()->is(TypeKind::Tensor);
    }
    if (n.is("prim::ListConstruct")) known_[n.output()] = make_list(n.output()->type()->element(), std::move(inputs));
    else if (n.op && has_tensor) compute(n, std::move(inputs));
  }

  void compute(Node& n, std::vector<Value> inputs) {
    Value result;
    try {
      result = run_node(n, std::move(inputs))[0];
    } catch (const Error&) {  // it fails when the program runs, and not before
      return;
    }
    known_[n.output()] = result;
    if (!result.is_tensor() && !is_plain(result)) return;
    graph_.set_before(&n);
    Variable* c = graph_.insert_constant(result, result.is_tensor() ? tensor_type_of(result.tensor_ref()) : nullptr);
    graph_.set_before(nullptr);
    known_[c] = result;
    graph_.replace_uses(n.output(), c);
  }

  Graph& graph_;
  AliasAnalysis aliases_;
  std::unordered_map<const Variable*, Value> known_;
};

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

void propagate_constant_tensors(Graph& graph) {
  propagate_constants(graph);
  ConstantTensors(graph).run();
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

}  // namespace umbra::jit
