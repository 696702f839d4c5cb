#include "umbra/aot/partition.h"

#include <algorithm>

#include "aot/min_cut.h"
#include "umbra/graph/passes.h"

namespace umbra::aot {

namespace {

constexpr int64_t kUnknownElements = 4096;  // of a tensor whose size only the run will tell

int64_t bytes_of(const Value& value) {
  int64_t bytes = value.is_symbolic() ? 8 : 0;
  value.each_tensor([&](TensorImpl* t) {
    SymInt elements = t->sym_numel();
    bytes += (elements.has_hint() ? elements.hint() : kUnknownElements) * item_size(t->dtype());
  });
  return bytes;
}

/// A size, or what is computed of sizes: kept as a number, not as a tensor.
bool is_number(const fx::Node* node) { return node->meta.val.is_symbolic(); }

/// Checks give nothing, and belong to the graph that has what they look at.
bool is_check(const fx::Node* node) {
  return node->op() == fx::Op::CallFunction && node->is_impure() && node->users().empty() && node->meta.val.is_none();
}

/// A write to an input, which the forward graph carries out at its end.
bool is_write(const fx::Node* node) { return node->target().op() && node->target().op()->is_mutable(); }

/// The joint graph with what every partitioner asks about its nodes.
class Analysis {
 public:
  explicit Analysis(const JointGraph& joint)
      : joint_(joint), graph_(joint.module->graph()), placeholders_(graph_.placeholders()) {
    needs_tangent_.resize(graph_.id_bound());
    for (size_t k = joint.primals; k < placeholders_.size(); ++k) needs_tangent_[placeholders_[k]->id()] = true;
    for (fx::Node* node : graph_.nodes())
      for (fx::Node* input : node->inputs())
        if (needs_tangent_[input->id()]) needs_tangent_[node->id()] = true;
    fx::Arguments all = graph_.outputs();
    forward_outputs_.assign(all.begin(), all.begin() + static_cast<ptrdiff_t>(joint.forward_outputs()));
    gradients_.assign(all.begin() + static_cast<ptrdiff_t>(joint.forward_outputs()), all.end());
  }

  fx::Graph& graph() const { return graph_; }
  bool needs_tangent(const fx::Node* node) const { return needs_tangent_[node->id()]; }
  const fx::Arguments& gradients() const { return gradients_; }
  /// What the forward graph is there for: its outputs, and what it writes.
  fx::Arguments forward_roots() const {
    fx::Arguments roots = forward_outputs_;
    for (fx::Node* node : graph_.nodes())
      if (is_write(node)) roots.push_back(node);
    return roots;
  }

  /// How many calls are between each node and the first one of the backward that needs it, by id.
  std::vector<int64_t> distances_from_backward() const {
    std::vector<int64_t> distances(graph_.id_bound(), graph_.id_bound());
    for (fx::Node* node : graph_.reversed()) {
      if (node->op() == fx::Op::Output) continue;
      if (needs_tangent(node)) distances[node->id()] = 0;
      for (fx::Node* user : node->users())
        distances[node->id()] = std::min(distances[node->id()], distances[user->id()] + 1);
    }
    return distances;
  }

  /// Nodes from which some outputs are computed, by id.
  std::vector<bool> ancestors(const fx::Arguments& outputs) const {
    std::vector<bool> seen(graph_.id_bound());
    std::vector<fx::Node*> stack;
    auto visit = [&](fx::Node* n) {
      if (!seen[n->id()]) {
        seen[n->id()] = true;
        stack.push_back(n);
      }
    };
    for (const fx::Argument& a : outputs) a.each_node(visit);
    while (!stack.empty()) {
      fx::Node* n = stack.back();
      stack.pop_back();
      for (fx::Node* input : n->inputs()) visit(input);
    }
    return seen;
  }

  /// Cuts the graph at the values to be saved.
  Partition cut(std::vector<fx::Node*> saved) const {
    Partition out;
    out.forward_outputs = forward_outputs_.size();
    fx::Arguments forward = forward_outputs_;
    std::vector<fx::Node*> primals(placeholders_.begin(),
                                   placeholders_.begin() + static_cast<ptrdiff_t>(joint_.primals));
    auto first_number = std::stable_partition(saved.begin(), saved.end(), [](fx::Node* n) { return !is_number(n); });
    out.saved_numbers = static_cast<size_t>(saved.end() - first_number);
    std::vector<fx::Node*> backward_inputs(first_number, saved.end());
    backward_inputs.insert(backward_inputs.end(), saved.begin(), first_number);
    backward_inputs.insert(backward_inputs.end(), placeholders_.begin() + static_cast<ptrdiff_t>(joint_.primals),
                           placeholders_.end());
    for (fx::Node* n : saved) {
      forward.push_back(n);
      out.saved.push_back(n->name());
      out.saved_bytes += bytes_of(n->meta.val);
    }
    out.forward = extract(primals, forward, false);
    keep_before_writes(out.forward->graph(), out.forward_outputs);
    out.backward = extract(backward_inputs, gradients_, true);
    return out;
  }

 private:
  /// What lies in an input that the graph writes is kept as it was before.
  static void keep_before_writes(fx::Graph& graph, size_t first_saved) {
    std::vector<fx::Node*> writes;
    for (fx::Node* node : graph.nodes())
      if (is_write(node)) writes.push_back(node);
    if (writes.empty()) return;
    fx::Arguments results = graph.outputs();
    for (size_t k = first_saved; k < results.size(); ++k) {
      fx::Node* kept = results[k].node();
      bool written = kept->meta.val.is_tensor() && std::any_of(writes.begin(), writes.end(), [&](fx::Node* write) {
                       const Value& target = write->args()[0].node()->meta.val;
                       return target.tensor_ref().storage() == kept->meta.val.tensor_ref().storage();
                     });
      if (!written) continue;
      auto before = graph.inserting_before(writes[0]);
      fx::Node* copy = graph.call(get_operator("aten::clone"), {kept});
      copy->meta = kept->meta;
      results[k] = copy;
    }
    graph.output_node()->set_args({fx::Argument::list(std::move(results))});
  }

  /// The part of the graph that computes some outputs, and the checks that belong to it.
  IntrusivePtr<fx::GraphModule> extract(const std::vector<fx::Node*>& inputs, const fx::Arguments& outputs,
                                        bool with_tangents) const {
    fx::Arguments all = outputs;
    for (fx::Node* node : graph_.nodes())
      if ((is_check(node) && needs_tangent(node) == with_tangents) || (is_write(node) && !with_tangents))
        all.push_back(node);
    IntrusivePtr<fx::Graph> graph = fx::extract_subgraph(graph_, inputs, all);
    fx::Arguments results = graph->outputs();
    results.resize(outputs.size());
    graph->output_node()->set_args({fx::Argument::list(std::move(results))});  // compilers get graphs that give lists
    auto module = make_counted<fx::GraphModule>(std::move(graph));
    for (const fx::Attribute& a : joint_.module->attributes()) module->set(a.path, a.value, a.kind);
    module->remove_unused_attributes();
    return module;
  }

  const JointGraph& joint_;
  fx::Graph& graph_;
  std::vector<fx::Node*> placeholders_;
  std::vector<bool> needs_tangent_;
  fx::Arguments forward_outputs_, gradients_;
};

bool is_tensor_value(const fx::Node* node) { return node->meta.val.is_tensor(); }

// Cheap enough to be done twice: views, pointwise operators, sizes. Random numbers would come out differently.
bool can_recompute(const fx::Node* node) {
  const Operator* op = node->target().op();
  if (!op) {
    // A higher-order operator holds graphs of any cost.
    const fx::Function* function = node->target().function();
    return node->op() == fx::Op::CallFunction && !function->has_side_effects &&
           !function->name.starts_with("torch.ops.higher_order.");
  }
  const Definition& d = op->definition();
  if (d.random || op->is_mutable()) return false;
  return op->is_view() || d.elementwise || op->has_tag(Tag::Pointwise) || op->has_tag(Tag::CheapToRepeat) ||
         d.not_differentiable;
}

/// What it costs to keep a value: its bytes; among equals, what is nearer to its use in the backward. A number costs
/// next to nothing, since it takes no memory of the device.
int64_t price_of(const fx::Node* node, int64_t distance) {
  constexpr int64_t kByte = 1024, kStep = 4;
  if (is_number(node)) return 1;
  return std::max<int64_t>(bytes_of(node->meta.val), 1) * kByte + kStep * std::min<int64_t>(distance, 100);
}

}  // namespace

Partition partition_of(IntrusivePtr<fx::GraphModule> forward, IntrusivePtr<fx::GraphModule> backward,
                       size_t forward_outputs) {
  Partition out;
  out.forward_outputs = forward_outputs;
  fx::Arguments results = forward->graph().outputs();
  check<AssertionError>(results.size() >= forward_outputs, "a partition's forward graph gives ", results.size(),
                        " values, and ", forward_outputs, " are the function's own");
  for (size_t k = forward_outputs; k < results.size(); ++k) {
    fx::Node* node = results[k].node();
    check<AssertionError>(node, "a partition's forward graph saves what is no node");
    check<AssertionError>(is_number(node) || out.saved_numbers == 0,
                          "a partition's forward graph saves tensors first, then numbers");
    out.saved_numbers += is_number(node);
    out.saved.push_back(node->name());
    out.saved_bytes += bytes_of(node->meta.val);
  }
  out.forward = std::move(forward);
  out.backward = std::move(backward);
  return out;
}

Partition default_partition(const JointGraph& joint) {
  Analysis analysis(joint);
  std::vector<bool> forward = analysis.ancestors(analysis.forward_roots()),
                    backward = analysis.ancestors(analysis.gradients());
  // A list cannot be kept, its elements can: those of a forward operator are forward values, though only the backward
  // reads them.
  for (fx::Node* node : analysis.graph().nodes())
    if (node->target().function() && node->target().function()->name == "operator.getitem" &&
        forward[node->inputs()[0]->id()])
      forward[node->id()] = true;
  std::vector<fx::Node*> saved;
  auto save = [&](fx::Node* node) {
    if (std::find(saved.begin(), saved.end(), node) == saved.end()) saved.push_back(node);
  };
  for (fx::Node* node : analysis.graph().nodes()) {
    if (node->op() == fx::Op::Output || analysis.needs_tangent(node)) continue;
    bool available = forward[node->id()] || node->op() == fx::Op::Placeholder;
    if (!available || !backward[node->id()]) continue;
    std::vector<fx::Node*> readers;
    for (fx::Node* user : node->users())
      if (user->op() != fx::Op::Output && backward[user->id()] &&
          (analysis.needs_tangent(user) || !forward[user->id()]))
        readers.push_back(user);
    bool is_gradient = std::any_of(analysis.gradients().begin(), analysis.gradients().end(),
                                   [&](const fx::Argument& g) { return g.node() == node; });
    if (readers.empty() && !is_gradient) continue;
    // Of a tensor whose sizes are all that is read, these are kept.
    auto reads_size = [&](fx::Node* reader) { return is_number(reader) && !analysis.needs_tangent(reader); };
    if (!is_gradient && !is_number(node) && std::all_of(readers.begin(), readers.end(), reads_size))
      for (fx::Node* size : readers) save(size);
    else save(node);
  }
  return analysis.cut(saved);
}

Partition min_cut_partition(const JointGraph& joint) {
  fx::eliminate_common_subexpressions(joint.module->graph());
  Analysis analysis(joint);
  fx::Graph& graph = analysis.graph();
  std::vector<bool> backward = analysis.ancestors(analysis.gradients());
  std::vector<int64_t> distances = analysis.distances_from_backward();
  // Each node is an edge from its "in" to its "out" vertex, of the capacity of its bytes; saving it is cutting that
  // edge.
  size_t source = 2 * static_cast<size_t>(graph.id_bound()), sink = source + 1;
  FlowNetwork network(sink + 1);
  auto in = [](const fx::Node* n) { return 2 * static_cast<size_t>(n->id()); };
  for (fx::Node* node : graph.nodes()) {
    if (node->op() == fx::Op::Output || !backward[node->id()]) continue;
    if (analysis.needs_tangent(node)) {
      network.add_edge(in(node), sink, FlowNetwork::kUnlimited);
    } else {
      bool storable = is_tensor_value(node) || node->meta.val.is_symbolic();
      network.add_edge(in(node), in(node) + 1,
                       storable ? price_of(node, distances[node->id()]) : FlowNetwork::kUnlimited);
      if (node->op() == fx::Op::Placeholder || (node->op() != fx::Op::GetAttr && !can_recompute(node)))
        network.add_edge(source, in(node), FlowNetwork::kUnlimited);
      for (const fx::Argument& g : analysis.gradients())
        if (g.node() == node) network.add_edge(in(node) + 1, sink, FlowNetwork::kUnlimited);
    }
    for (fx::Node* user : node->users())
      if (user->op() != fx::Op::Output && backward[user->id()] && !analysis.needs_tangent(node))
        network.add_edge(in(node) + 1, in(user), FlowNetwork::kUnlimited);
  }
  std::vector<bool> reached = network.cut(source, sink);
  std::vector<fx::Node*> saved;
  for (fx::Node* node : graph.nodes())
    if (node->op() != fx::Op::Output && backward[node->id()] && !analysis.needs_tangent(node) && reached[in(node)] &&
        !reached[in(node) + 1])
      saved.push_back(node);
  return analysis.cut(saved);
}

}  // namespace umbra::aot
