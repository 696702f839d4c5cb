// From a trace with blocks for the modules that were called to one method for each call.
#include <algorithm>
#include <unordered_set>

#include "umbra/jit/objects.h"
#include "umbra/jit/passes.h"
#include "umbra/jit/trace.h"

namespace umbra::jit {
namespace {

std::string free_method_name(const ClassType& cls) {
  std::string name = "forward";
  for (int i = 1; cls.methods.contains(name); ++i) name = "forward" + std::to_string(i);
  return name;
}

Block* parent_of(const Block* block) { return block->owner() ? block->owner()->block() : nullptr; }
bool contains(const Block* outer, const Block* inner) {
  while (inner && inner != outer) inner = parent_of(inner);
  return inner == outer;
}

/// Makes methods of the blocks of module calls: what a block reads of the outside are arguments, what is read of it
/// are results.
class Methods {
 public:
  explicit Methods(Graph& graph) : graph_(graph) {}

  void lower() {
    find_uses(graph_.block());
    for (Variable* v : graph_.block().outputs) use(v, &graph_.block());
    for (const auto& [block, call] : calls_)  // PyTorch gives each call's results a number before it makes methods
      if (block != &graph_.block())
        graph_.skip_numbers(call.results.size() > 1 ? 2 * call.results.size() + 2 : call.results.size());
    lower(graph_.block());
    replace_inputs(graph_.block(), {});
    for (Variable*& v : graph_.block().outputs) v = stand_in(v);
  }

 private:
  struct Call {
    Variables captures, results;
  };
  /// What a block reads of the outside, and the method's input that stands for it.
  using Arguments = std::vector<std::pair<Variable*, Variable*>, RecyclingAllocator<std::pair<Variable*, Variable*>>>;

  static bool add(Variables& values, Variable* v) {
    if (std::ranges::find(values, v) != values.end()) return false;
    values.push_back(v);
    return true;
  }

  /// Notes a value that crosses the borders of calls.
  void use(Variable* v, Block* here) {
    Block* home = v->node()->block();
    if (home == here) return;
    for (Block* b = here; !contains(b, home); b = parent_of(b))
      if (!add(calls_[b].captures, v)) break;
    for (Block* b = home; !contains(b, here); b = parent_of(b)) add(calls_[b].results, v);
  }

  void find_uses(Block& block) {
    for (const auto& n : block.nodes()) {
      for (Variable* v : n->inputs) use(v, &block);
      for (const auto& inner : n->blocks()) find_uses(*inner);
    }
  }

  void lower(Block& block) {
    for (auto at = block.nodes().begin(); at != block.nodes().end();) {
      Node* node = (at++)->get();
      if (!node->is(module_forward_)) continue;
      lower(*node->blocks()[0]);
      make_method(node);
    }
  }

  void make_method(Node* node) {
    Block& block = *node->blocks()[0];
    ClassPtr cls = block.input(0)->type()->cls;
    Call& call = calls_[&block];
    auto function = std::make_shared<Function>();
    std::string method = free_method_name(*cls);
    function->name = cls->name + "." + method;
    function->graph = std::make_shared<Graph>();
    Arguments arguments;
    arguments.reserve(call.captures.size() + 1);
    function->parameters.reserve(call.captures.size() + 1);
    auto parameter = [&](Variable* v, const std::string& name, const TypePtr& type) {
      arguments.emplace_back(v, function->graph->add_input(name, type));
      function->parameters.push_back({parameter_name(*arguments.back().second), without_details(type), {}, false});
    };
    parameter(block.input(0), block.input(0)->name(), block.input(0)->type());
    for (Variable* v : call.captures) parameter(v, stand_in(v)->name(), v->type());
    Variables given = ordered(block, call.results), results;
    for (Variable* v : given) results.push_back(stand_in(v));
    replace_inputs(block, arguments);
    function->graph->take_nodes(block);
    function->graph->add_output(packed(*function->graph, results));
    number_values(*function->graph, parent_of(&block) == &graph_.block());
    function->result = without_details(function->graph->block().outputs[0]->type());
    eliminate_dead_code(*function->graph);
    cls->add_method(method, function);
    call_instead(node, method, *function, call.captures, given);
  }

  /// Numbers as PyTorch has them: calls of methods get theirs last, and in methods of the outermost module's parts
  /// arguments get theirs where they are first read.
  void number_values(Graph& graph, bool is_outermost) {
    graph.forget_numbers();
    const OwnVariables& inputs = graph.block().inputs();
    for (size_t i = 0; i < (is_outermost ? 1 : inputs.size()); ++i) graph.number(*inputs[i]);
    Variables calls;
    for (const auto& n : graph.block().nodes()) {
      bool is_call = n->is(call_method_) && made_calls_.contains(n.get());
      for (const auto& v : n->outputs()) {
        if (!is_call) graph.number(*v);
        else graph.skip_numbers(1), calls.push_back(v.get());
      }
      if (!is_outermost) continue;
      for (Variable* v : n->inputs)
        if (v->node() == graph.block().parameter() && !v->is_numbered()) graph.number(*v);
    }
    for (const auto& v : inputs)
      if (!v->is_numbered()) graph.number(*v);
    for (Variable* v : calls) graph.number(*v);
  }

  /// Results in the order in which the block computes them.
  Variables ordered(const Block& block, const Variables& results) {
    if (results.size() < 2) return results;
    Variables out;
    for (const auto& n : block.nodes())
      for (const auto& output : n->outputs())
        for (Variable* v : results)
          if (stand_in(v) == output.get()) out.push_back(v);
    return out;
  }

  /// Puts a call of the method in the place of the block, and its results in the place of the block's values.
  void call_instead(Node* node, const std::string& method, const Function& function, const Variables& captures,
                    const Variables& given) {
    graph_.set_before(node);
    Variables inputs{node->inputs[0]};
    inputs.insert(inputs.end(), captures.begin(), captures.end());
    Node* made = graph_.insert(call_method_, std::move(inputs));
    made->add_output(function.result);
    made->set_attribute("name", Value(method));
    made_calls_.insert(made);
    if (node->block() != &graph_.block()) graph_.withhold_number(*made->output());
    if (given.size() == 1) stand_ins_[given[0]] = made->output();
    if (given.size() > 1) {
      Node* unpack = graph_.insert("prim::TupleUnpack", {made->output()}, {});
      for (Variable* v : given) stand_ins_[v] = unpack->add_output(without_details(v->type()));
    }
    graph_.set_before(nullptr);
    graph_.erase(node);
  }

  static Variable* packed(Graph& graph, const Variables& values) {
    if (values.size() == 1) return values[0];
    if (values.empty()) return graph.insert_constant(Value());
    std::vector<TypePtr> types;
    for (Variable* v : values) types.push_back(v->type());
    return graph.insert("prim::TupleConstruct", values, {tuple_type(std::move(types))})->output();
  }

  Variable* stand_in(Variable* v) const {
    auto found = stand_ins_.find(v);
    return found == stand_ins_.end() ? v : found->second;
  }

  void replace_inputs(Block& block, const Arguments& arguments) {
    for (const auto& n : block.nodes())
      for (Variable*& v : n->inputs) {
        if (v->node()->block() == &block && v->node() != block.parameter()) continue;
        auto found = std::ranges::find(arguments, v, &Arguments::value_type::first);
        v = found == arguments.end() ? stand_in(v) : found->second;
      }
  }

  const Kind *call_method_ = Kind::of("prim::CallMethod"), *module_forward_ = Kind::of("prim::TracedModuleForward");
  Graph& graph_;
  std::unordered_map<const Block*, Call> calls_;
  std::unordered_set<const Node*> made_calls_;
  ValueMap stand_ins_;  // what has the value of a method's result, in the innermost block that is not a method yet
};

}  // namespace

void Trace::make_methods(const std::string& method) {
  finish_names();
  Methods(*graph_).lower();
  eliminate_dead_code(*graph_);
  if (!scopes_[0].self) return;
  auto function = std::make_shared<Function>();
  ClassPtr cls = scopes_[0].self->type()->cls;
  function->name = cls->name + "." + method;
  function->graph = graph_;
  for (const auto& v : graph_->block().inputs())
    function->parameters.push_back({parameter_name(*v), without_details(v->type()), {}, false});
  function->result = without_details(graph_->block().outputs.at(0)->type());
  cls->add_method(method, function);
}

}  // namespace umbra::jit
