// From a trace with blocks for the modules that were called to one method for each call.
#include <algorithm>
#include <unordered_set>

#include "umbra/jit/objects.h"
#include "umbra/jit/passes.h"
#include "umbra/jit/trace.h"

namespace umbra::jit {
namespace {

void collect_defined(const Block& block, std::unordered_set<const Variable*>& defined) {
  for (const auto& v : block.inputs()) defined.insert(v.get());
  each_node(block, [&](const Node& n) {
    for (const auto& v : n.outputs()) defined.insert(v.get());
    for (const auto& b : n.blocks())
      for (const auto& v : b->inputs()) defined.insert(v.get());
  });
}

/// What a block reads of the outside, in order.
std::vector<Variable*> captures_of(const Block& block, const std::unordered_set<const Variable*>& defined) {
  std::vector<Variable*> out;
  std::unordered_set<const Variable*> seen;
  auto use = [&](Variable* v) {
    if (!defined.contains(v) && seen.insert(v).second) out.push_back(v);
  };
  each_node(block, [&](const Node& n) {
    for (Variable* v : n.inputs) use(v);
    for (const auto& b : n.blocks())
      for (Variable* v : b->outputs) use(v);
  });
  return out;
}

std::string free_method_name(const ClassType& cls) {
  std::string name = "forward";
  for (int i = 1; cls.methods.contains(name); ++i) name = "forward" + std::to_string(i);
  return name;
}

class Methods {
 public:
  explicit Methods(Graph& graph) : graph_(graph) {
    each_node(graph.block(), [&](Node& n) {
      for (const Variable* v : n.inputs) readers_[v].push_back(&n);
    });
    given_.insert(graph.block().outputs.begin(), graph.block().outputs.end());
  }

  void lower(Block& block) {
    std::vector<Node*> calls;
    for (const auto& n : block.nodes())
      if (n->is("prim::TracedModuleForward")) calls.push_back(n.get());
    for (Node* call : calls) {
      lower(*call->blocks()[0]);
      replace(call);
    }
  }

 private:
  void replace(Node* node) {
    Block& block = *node->blocks()[0];
    ClassPtr cls = block.input(0)->type()->cls;
    std::unordered_set<const Variable*> defined;
    std::unordered_set<const Node*> inside;
    collect_defined(block, defined);
    each_node(block, [&](const Node& n) { inside.insert(&n); });
    std::vector<Variable*> captures = captures_of(block, defined), results;
    for (const auto& n : block.nodes())
      for (const auto& v : n->outputs())
        if (is_read_outside(v.get(), inside)) results.push_back(v.get());

    auto function = std::make_shared<Function>();
    std::string method = free_method_name(*cls);
    function->name = cls->name + "." + method;
    function->graph = std::make_shared<Graph>();
    ValueMap values;
    auto parameter = [&](Variable* v, const std::string& name) {
      values[v] = function->graph->add_input(name, v->type());
      std::string plain = values[v]->debug_name();
      function->parameters.push_back({plain, without_details(v->type()), {}, false});
    };
    parameter(block.input(0), "self");
    for (Variable* v : captures)
      parameter(v, v->name().empty() ? "argument_" + std::to_string(function->parameters.size()) : v->name());
    block.outputs = results;
    std::vector<Variable*> outputs = copy_into(*function->graph, block, values);
    function->graph->add_output(packed(*function->graph, outputs));
    function->result = without_details(function->graph->block().outputs[0]->type());
    eliminate_dead_code(*function->graph);
    cls->add_method(method, function);

    graph_.set_before(node);
    std::vector<Variable*> inputs{node->inputs[0]};
    inputs.insert(inputs.end(), captures.begin(), captures.end());
    Node* call = graph_.insert("prim::CallMethod", std::move(inputs), {function->result});
    call->set_attribute("name", Value(method));
    call->scope = node->scope;
    for (Variable* v : call->inputs) {
      std::erase_if(readers_[v], [&](const Node* n) { return n == node || inside.contains(n); });
      readers_[v].push_back(call);
    }
    unpack(call->output(), results, inside);
    block.outputs.clear();
    graph_.set_before(nullptr);
    for (Variable* v : results) v->set_name("");
    for (const Variable* v : defined) readers_.erase(v);  // others may come to lie where these lay
    graph_.erase(node);
  }

  static Variable* packed(Graph& graph, const std::vector<Variable*>& values) {
    if (values.size() == 1) return values[0];
    if (values.empty()) return graph.insert_constant(Value());
    std::vector<TypePtr> types;
    for (Variable* v : values) types.push_back(v->type());
    return graph.insert("prim::TupleConstruct", values, {tuple_type(std::move(types))})->output();
  }

  bool is_read_outside(const Variable* v, const std::unordered_set<const Node*>& inside) {
    if (given_.contains(v)) return true;
    for (const Node* n : readers_[v])
      if (!inside.contains(n)) return true;
    return false;
  }

  void unpack(Variable* result, const std::vector<Variable*>& values, const std::unordered_set<const Node*>& inside) {
    if (values.size() == 1) return replace(values[0], result, inside);
    if (values.empty()) return;
    Node* node = graph_.insert("prim::TupleUnpack", {result}, {});
    readers_[result].push_back(node);
    for (Variable* v : values) replace(v, node->add_output(without_details(v->type())), inside);
  }

  /// Puts a value in the place of another wherever that is read, but for nodes that go away.
  void replace(Variable* from, Variable* to, const std::unordered_set<const Node*>& inside) {
    for (Node* n : readers_[from]) {
      if (inside.contains(n)) continue;
      std::replace(n->inputs.begin(), n->inputs.end(), from, to);
      readers_[to].push_back(n);
    }
    if (!given_.erase(from)) return;
    auto& outputs = graph_.block().outputs;
    std::replace(outputs.begin(), outputs.end(), from, to);
    given_.insert(to);
  }

  std::unordered_map<const Variable*, std::vector<Node*>> readers_;
  std::unordered_set<const Variable*> given_;  // by the whole program
  Graph& graph_;
};

}  // namespace

void Trace::make_methods(const std::string& method) {
  Methods(*graph_).lower(graph_->block());
  eliminate_dead_code(*graph_);
  if (!scopes_[0].self) return;
  auto function = std::make_shared<Function>();
  function->name = scopes_[0].cls->name + "." + method;
  function->graph = graph_;
  for (const auto& v : graph_->block().inputs())
    function->parameters.push_back({v->debug_name(), without_details(v->type()), {}, false});
  function->result = without_details(graph_->block().outputs.at(0)->type());
  scopes_[0].cls->add_method(method, function);
}

}  // namespace umbra::jit
