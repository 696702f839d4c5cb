#include "umbra/aot/partition.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "aot/min_cut.h"
#include "umbra/dispatch/effects.h"
#include "umbra/fake/cost.h"
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

/// Checks, and calls with effects whose results nobody uses, belong to the graph that has what they look at.
bool is_check(const fx::Node* node) {
  if (node->op() != fx::Op::CallFunction || !node->is_impure() || !node->users().empty()) return false;
  return node->meta.val.is_none() || (node->target().op() && has_effect(*node->target().op()));
}

/// A write to an input, which the forward graph carries out at its end.
bool is_write(const fx::Node* node) { return node->target().op() && node->target().op()->is_mutable(); }

/// What a checkpoint computes once more, since the user would rather not keep it.
bool is_recomputation(const fx::Node& node) {
  const Value* tag = node.meta.find(fx::kPartitionerTag);
  return tag && tag->tag() == Value::Tag::String && tag->to_string() == fx::kBackwardOnly;
}

/// The joint graph with what every partitioner asks about its nodes.
class Analysis {
 public:
  explicit Analysis(const JointGraph& joint)
      : joint_(joint), graph_(joint.module->graph()), placeholders_(graph_.placeholders()) {
    fx::Arguments all = graph_.outputs();
    auto first_gradient = all.begin() + static_cast<ptrdiff_t>(joint.tokens + joint.forward_outputs());
    forward_outputs_.assign(all.begin(), first_gradient);
    gradients_.assign(first_gradient, all.end());
    needs_tangent_.resize(graph_.id_bound());
    for (size_t k = forward_inputs(); k < placeholders_.size(); ++k) needs_tangent_[placeholders_[k]->id()] = true;
    std::vector<bool> forward = ancestors(forward_roots());
    for (fx::Node* node : graph_.nodes()) {
      if (is_recomputation(*node) && !forward[node->id()]) needs_tangent_[node->id()] = true;
      for (fx::Node* input : node->inputs())
        if (needs_tangent_[input->id()]) needs_tangent_[node->id()] = true;
    }
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

  /// Cuts the graph at the values to be saved. `recomputes`: the backward computes forward values again, each where it
  /// is first needed.
  Partition cut(std::vector<fx::Node*> saved, bool recomputes = false) const {
    Partition out;
    out.forward_outputs = joint_.forward_outputs();
    fx::Arguments forward = forward_outputs_;
    std::vector<fx::Node*> primals(placeholders_.begin(),
                                   placeholders_.begin() + static_cast<ptrdiff_t>(forward_inputs()));
    auto first_number = std::stable_partition(saved.begin(), saved.end(), [](fx::Node* n) { return !is_number(n); });
    out.saved_numbers = static_cast<size_t>(saved.end() - first_number);
    std::vector<fx::Node*> backward_inputs(first_number, saved.end());
    backward_inputs.insert(backward_inputs.end(), saved.begin(), first_number);
    backward_inputs.insert(backward_inputs.end(), placeholders_.begin() + static_cast<ptrdiff_t>(forward_inputs()),
                           placeholders_.end());
    for (fx::Node* n : saved) {
      forward.push_back(n);
      out.saved.push_back(n->name());
      out.saved_bytes += bytes_of(n->meta.val);
    }
    out.forward = extract(primals, forward, false);
    keep_before_writes(out.forward->graph(), forward_outputs_.size());
    out.backward = extract(backward_inputs, gradients_, true);
    if (recomputes) order_by_need(out.backward->graph(), saved.size());
    return out;
  }

 private:
  size_t forward_inputs() const { return joint_.tokens + joint_.primals; }

  /// Moves what stands before the first use of a tangent to where it is needed, so that it lives no longer than it
  /// must.
  static void order_by_need(fx::Graph& graph, size_t first_tangent) {
    std::vector<fx::Node*> inputs = graph.placeholders(), nodes;
    std::vector<int64_t> place(graph.id_bound(), -1);  // in the order that was; inputs have none
    for (fx::Node* node : graph.nodes()) nodes.push_back(node);
    size_t start = nodes.size();
    for (size_t i = 0; i < nodes.size(); ++i)
      if (nodes[i]->op() != fx::Op::Placeholder) place[nodes[i]->id()] = static_cast<int64_t>(i);
    for (size_t k = first_tangent; k < inputs.size(); ++k)
      for (fx::Node* user : inputs[k]->users()) start = std::min(start, static_cast<size_t>(place[user->id()]));
    std::vector<bool> seen(graph.id_bound());
    for (size_t i = start; i < nodes.size(); ++i) {
      std::vector<fx::Node*> needed, stack{nodes[i]};
      while (!stack.empty()) {
        fx::Node* node = stack.back();
        stack.pop_back();
        for (fx::Node* input : node->inputs()) {
          int64_t at = place[input->id()];
          if (at < 0 || at >= static_cast<int64_t>(start) || seen[input->id()]) continue;
          seen[input->id()] = true;
          needed.push_back(input);
          stack.push_back(input);
        }
      }
      std::sort(needed.begin(), needed.end(),
                [&](fx::Node* a, fx::Node* b) { return place[a->id()] < place[b->id()]; });
      for (fx::Node* node : needed) node->move_before(nodes[i]);
    }
  }

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

/// What to keep so that the backward can be computed from it, at the least price. Each node is an edge from its "in" to
/// its "out" vertex, of the capacity of its price; keeping it is cutting that edge. Computing it again is cutting the
/// edge from the source.
class CutFinder {
 public:
  using Price = std::function<int64_t(fx::Node*, int64_t distance)>;
  CutFinder(const Analysis& analysis, Price keep)
      : analysis_(analysis),
        keep_(std::move(keep)),
        backward_(analysis.ancestors(analysis.gradients())),
        distances_(analysis.distances_from_backward()) {}

  /// `again`: the price of computing a node in the backward, kUnlimited where that cannot be.
  std::vector<fx::Node*> cut(const std::function<int64_t(fx::Node*)>& again) {
    fx::Graph& graph = analysis_.graph();
    size_t source = 2 * static_cast<size_t>(graph.id_bound()), sink = source + 1;
    FlowNetwork network(sink + 1);
    for (fx::Node* node : graph.nodes()) {
      if (node->op() == fx::Op::Output || !backward_[node->id()]) continue;
      if (analysis_.needs_tangent(node)) {
        network.add_edge(in(node), sink, FlowNetwork::kUnlimited);
      } else {
        bool storable = is_tensor_value(node) || node->meta.val.is_symbolic();
        network.add_edge(in(node), in(node) + 1,
                         storable ? keep_(node, distances_[node->id()]) : FlowNetwork::kUnlimited);
        if (node->op() != fx::Op::GetAttr) {
          int64_t price = node->op() == fx::Op::Placeholder ? FlowNetwork::kUnlimited : again(node);
          if (price > 0) network.add_edge(source, in(node), price);
        }
        for (const fx::Argument& g : analysis_.gradients())
          if (g.node() == node) network.add_edge(in(node) + 1, sink, FlowNetwork::kUnlimited);
      }
      for (fx::Node* user : node->users())
        if (user->op() != fx::Op::Output && backward_[user->id()] && !analysis_.needs_tangent(node))
          network.add_edge(in(node) + 1, in(user), FlowNetwork::kUnlimited);
    }
    reached_ = network.cut(source, sink);
    std::vector<fx::Node*> saved;
    for (fx::Node* node : graph.nodes())
      if (is_forward(node) && reached_[in(node)] && !reached_[in(node) + 1]) saved.push_back(node);
    return saved;
  }

  /// Whether the last cut has the backward compute a node once more.
  bool computes_again(const fx::Node* node) const { return is_forward(node) && !reached_[in(node)]; }

 private:
  static size_t in(const fx::Node* n) { return 2 * static_cast<size_t>(n->id()); }
  bool is_forward(const fx::Node* node) const {
    return node->op() != fx::Op::Output && backward_[node->id()] && !analysis_.needs_tangent(node);
  }

  const Analysis& analysis_;
  Price keep_;
  std::vector<bool> backward_;
  std::vector<int64_t> distances_;
  std::vector<bool> reached_;
};

/// Whether a call gives the same whenever it is made.
bool is_repeatable(const fx::Node* node) {
  const Operator* op = node->target().op();
  return can_recompute(node) || (op && !op->definition().random && !op->is_mutable() && !node->is_impure());
}

/// What it costs to make a call once more: its floating-point operations, and what it reads and writes.
int64_t work_of(const fx::Node* node) {
  const Operator* op = node->target().op();
  if (!op || can_recompute(node)) return 0;
  std::vector<Value> arguments;
  int64_t elements = 0;
  auto count = [&](TensorImpl* t) { elements += t->sym_numel().has_hint() ? t->sym_numel().hint() : kUnknownElements; };
  for (size_t i = 0; i < op->argument_count(); ++i) {
    const fx::Argument* given = node->argument(i);
    arguments.push_back(!given              ? Value()
                        : given->node()     ? given->node()->meta.val
                        : given->is_value() ? given->value()
                                            : Value());
    arguments.back().each_tensor(count);
  }
  node->meta.val.each_tensor(count);
  return count_flops(*op, arguments.data(), &node->meta.val) + elements;
}

/// What to keep in a part of the memory that min-cut takes: with the least work done again. Work has a price in bytes;
/// the lowest one at which what is kept fits is found by bisection. Layers that are all alike would change places all
/// at one price, so each has one of its own, a little above the one before.
class Budget {
 public:
  Budget(const Analysis& analysis, double budget)
      : analysis_(analysis), finder_(analysis, [this](fx::Node* node, int64_t distance) {
          return is_input(node) ? 1 : price_of(node, distance);
        }) {
    for (fx::Node* node : analysis.graph().placeholders())
      if (is_tensor_value(node)) inputs_.insert(node->meta.val.tensor_ref().storage().get());
    work_.resize(analysis.graph().id_bound());
    repeatable_.resize(work_.size());
    for (fx::Node* node : analysis.graph().nodes()) {
      repeatable_[node->id()] = node->op() == fx::Op::CallFunction && is_repeatable(node);
      if (repeatable_[node->id()]) work_[node->id()] = work_of(node);
    }
    Choice usual = at(std::numeric_limits<double>::infinity());
    limit_ = static_cast<int64_t>(budget * static_cast<double>(usual.bytes));
    best_ = at(0);  // as little memory as possible
    limit_ = std::max(limit_, best_.bytes);
  }

  std::vector<fx::Node*> choose() {
    double low = 0, high = 1e6;  // thousandths of bytes for a unit of work
    for (int step = 0; step < 40 && high - low > 1e-9 * high; ++step) {
      double middle = low == 0 && step < 20 ? high / 8 : (low + high) / 2;
      (consider(at(middle)) ? low : high) = middle;
    }
    fill(low);
    return best_.saved;
  }

 private:
  struct Choice {
    std::vector<fx::Node*> saved, again;  // `again`: what costs work
    int64_t bytes = 0, work = 0;
  };

  Choice at(double price) {
    double size = static_cast<double>(work_.size());
    Choice out;
    out.saved = finder_.cut([&](fx::Node* node) {
      if (!repeatable_[node->id()]) return FlowNetwork::kUnlimited;
      double work = static_cast<double>(work_[node->id()]);
      if (work == 0) return int64_t{0};
      double own = work * price * (1 + 0.05 * node->id() / size);
      return own < 1e15 ? static_cast<int64_t>(own) : FlowNetwork::kUnlimited;
    });
    for (fx::Node* node : out.saved)
      if (!is_input(node)) out.bytes += bytes_of(node->meta.val);
    for (fx::Node* node : analysis_.graph().nodes())
      if (work_[node->id()] > 0 && finder_.computes_again(node)) {
        out.again.push_back(node);
        out.work += work_[node->id()];
      }
    return out;
  }

  /// An input, or a view of one, takes no memory of its own.
  bool is_input(const fx::Node* node) const {
    return is_tensor_value(node) && inputs_.contains(node->meta.val.tensor_ref().storage().get());
  }

  /// Takes a choice that fits and is better than the best; says whether it fits.
  bool consider(Choice choice) {
    if (choice.bytes > limit_) return false;
    if (choice.work < best_.work) best_ = std::move(choice);
    return true;
  }

  /// What memory is left is filled with the results of the calls that cost most for their bytes.
  void fill(double price) {
    std::vector<fx::Node*> calls = best_.again;
    auto worth = [&](fx::Node* n) {
      return static_cast<double>(work_[n->id()]) / static_cast<double>(bytes_of(n->meta.val) + 1);
    };
    std::stable_sort(calls.begin(), calls.end(), [&](fx::Node* a, fx::Node* b) { return worth(a) > worth(b); });
    int tries = 0;
    for (fx::Node* node : calls) {
      if (bytes_of(node->meta.val) > limit_ - best_.bytes) continue;
      if (++tries > 64) break;
      int64_t before = best_.work;
      repeatable_[node->id()] = false;
      consider(at(price));
      if (best_.work == before) repeatable_[node->id()] = true;
    }
  }

  const Analysis& analysis_;
  std::unordered_set<const void*> inputs_;  // their storages
  CutFinder finder_;
  std::vector<int64_t> work_;  // by node
  std::vector<bool> repeatable_;
  int64_t limit_ = 0;
  Choice best_;
};

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
  fx::eliminate_common_subexpressions(joint.module->graph(), is_recomputation);
  Analysis analysis(joint);
  auto again = [](fx::Node* node) { return can_recompute(node) ? 0 : FlowNetwork::kUnlimited; };
  return analysis.cut(CutFinder(analysis, price_of).cut(again), true);
}

Partition budget_partition(const JointGraph& joint, double budget) {
  check(budget >= 0 && budget <= 1, "The valid ranges for memory budget are 0 <= m <= 1. The provided value is ",
        budget);
  if (budget == 1) return min_cut_partition(joint);
  fx::eliminate_common_subexpressions(joint.module->graph(), is_recomputation);
  Analysis analysis(joint);
  return analysis.cut(Budget(analysis, budget).choose(), true);
}

}  // namespace umbra::aot
