// The backward pass: nodes run on the calling thread, latest first, each once all gradients that flow into it are
// there.
#include <algorithm>
#include <atomic>
#include <unordered_map>

#include "autograd/accumulate.h"
#include "autograd/hooks_off.h"
#include "autograd/meta.h"
#include "autograd/stand_in.h"
#include "ops/common/unbacked.h"
#include "umbra/autograd/function.h"
#include "umbra/autograd/running.h"
#include "umbra/core/interrupt.h"
#include "umbra/dispatch/dispatcher.h"
#include "umbra/generated/functions.h"

namespace umbra::autograd {

// Gradients come out of formulas in whatever shape broadcasting gave; here they take that of the input they belong to.
Tensor fit_gradient(const Node& node, size_t index, Tensor gradient, const InputMetadata& expected) {
  SymIntArrayRef sizes = expected.sizes, have = gradient.sym_sizes();
  bool same = sizes.size() == have.size() &&
              std::equal(sizes.begin(), sizes.end(), have.begin(), [](SymInt a, SymInt b) { return a.same(b); });
  if (!same) {
    size_t leading = have.size() - std::min(have.size(), sizes.size());
    bool expandable = sizes.size() <= have.size();
    std::vector<int64_t> summed;
    for (size_t d = 0; expandable && d < have.size(); ++d) {
      if (d < leading) summed.push_back(static_cast<int64_t>(d));
      else if (ops::equal_or(sizes[d - leading], have[d], false)) continue;
      else if (ops::equal_or(sizes[d - leading], 1, false)) summed.push_back(static_cast<int64_t>(d));
      else expandable = ops::expect_equal(sizes[d - leading], have[d]);
    }
    if (!expandable)
      fail("Function ", node.name(), " returned an invalid gradient at index ", index, " - got ", to_string(have),
           " but expected shape compatible with ", to_string(sizes));
    if (sizes.empty() && !have.empty()) gradient = gradient.sum();
    else if (!summed.empty()) gradient = sum(gradient, IntArrayRef(summed), true);
    if (leading > 0 && !sizes.empty()) gradient = gradient.view(sizes);
  }
  if (gradient.dtype() == expected.dtype || expected.dtype == DType::Undefined) return gradient;
  check(is_differentiable(expected.dtype), "gradients cannot be of type ", expected.dtype);
  if (gradient.is_complex() && !is_complex(expected.dtype)) {
    // Formulas of the library leave the imaginary part to this place; a function of the user's has no business with
    // one.
    check(!dynamic_cast<const FunctionNode*>(&node), "Function ", node.name(), " returned a complex gradient at index ",
          index, " for an input of type ", expected.dtype);
    gradient = real(gradient);
  }
  if (gradient.dtype() != expected.dtype) gradient = gradient.to(expected.dtype);
  return gradient;
}

namespace {

/// The sum of gradients that meet at an input. In place where nobody else can see the difference.
Tensor accumulate(Tensor sum, const Tensor& gradient) {
  TensorImpl* impl = sum.impl();
  // A strided tensor has to be the first, and elements stand in PyTorch's order.
  if (impl->keys().has(DispatchKey::Sparse)) return gradient.add(sum);
  if (gradient.keys().has(DispatchKey::Sparse)) return sum.add(gradient);
  bool plain =
      !is_grad_enabled() && dispatch_state().include.empty() && impl->keys() == DispatchKeySet(DispatchKey::CPU);
  bool alone = impl->use_count() == 1 && sum.storage()->use_count() == 1 && !meta_of(impl);
  if (plain && alone && sum.dtype() == gradient.dtype() && sum.sym_sizes() == gradient.sym_sizes() &&
      sum.is_non_overlapping_and_dense())
    return sum.add_(gradient);
  return sum.add(gradient);
}

std::atomic<AnomalyDetection> g_anomaly_detection{};
NodeWatch g_node_watch;
void note_failed(Node& node) {
  if (g_node_watch.failed) g_node_watch.failed(node);
}

void check_no_nan(const Node& node, const Gradients& gradients) {
  NoGrad guard;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Tensor& g = gradients[i];
    bool readable =
        g.defined() && !g.keys().has(DispatchKey::Sparse) && (g.is_floating_point() || g.is_complex()) && !g.is_fake();
    if (!readable) continue;
    // A batch has no data of its own; its values have.
    Tensor found = _is_any_true(isnan(g));
    if (!found.is_fake() && found.storage()->has_data() && found.item().to_bool())
      fail("Function '", node.name(), "' returned nan values in its ", i, "th output.");
  }
}

/// One backward pass.
class Pass {
 public:
  /// `inputs`: where gradients are wanted, all leaves if null. They are the results of the pass, unless it
  /// `runs_inputs`.
  Pass(BackwardOptions options, const std::vector<Edge>* inputs, bool runs_inputs = false)
      : options_(options), inputs_(inputs), runs_inputs_(runs_inputs) {
    options_.retain_graph |= options_.create_graph;
    static std::atomic<uint64_t> next{1};
    number_ = next.fetch_add(1, std::memory_order_relaxed);
  }

  Gradients run(const std::vector<Edge>& roots, Gradients root_gradients);
  /// Calls what waits for the end. Such a function may bring others.
  void finish();
  void call_at_the_end(std::function<void()> function) { waiting_.push_back(std::move(function)); }

  /// Whether anything is wanted from this node.
  bool wants(Node* node) const {
    auto found = states_.find(node);
    return found != states_.end() && found->second.needed;
  }
  const Node* node() const { return node_; }
  uint64_t number() const { return number_; }
  bool has_inputs() const { return inputs_ != nullptr; }

 private:
  struct Capture {
    uint32_t input;
    size_t result;
  };
  struct State {
    int dependencies = 0;   // nodes that have still to run before this one
    bool needed = true;     // on a way to an input
    bool runs = true;       // leads further than to a capture here
    bool is_input = false;  // runs for its own sake
    Gradients incoming;
    std::vector<Capture> captures;
  };
  struct Later {
    bool operator()(const IntrusivePtr<Node>& a, const IntrusivePtr<Node>& b) const {
      return a->sequence_number() < b->sequence_number();
    }
  };

  void discover(const std::vector<Edge>& roots);
  void find_needed(const std::vector<Node*>& finished);
  void deliver(const Edge& edge, Tensor gradient);
  void run_node(const IntrusivePtr<Node>& node);
  void enqueue(const IntrusivePtr<Node>& node) {
    ready_.push_back(node);
    std::push_heap(ready_.begin(), ready_.end(), Later());
  }

  uint64_t number_;
  BackwardOptions options_;
  const std::vector<Edge>* inputs_;
  bool runs_inputs_;
  std::unordered_map<Node*, State> states_;
  std::vector<IntrusivePtr<Node>> ready_;
  const Node* node_ = nullptr;  // that runs
  Gradients results_;
  std::vector<std::function<void()>> waiting_;
};

thread_local Pass* g_pass = nullptr;

/// Makes a pass the running one for a scope; passes may nest.
class Running {
 public:
  explicit Running(Pass* pass) : before_(std::exchange(g_pass, pass)) {}
  ~Running() { g_pass = before_; }

 private:
  Pass* before_;
};

void Pass::finish() {
  Running running(this);
  for (size_t i = 0; i < waiting_.size(); ++i) {
    std::function<void()> next = std::move(waiting_[i]);
    next();
  }
}

// Counts, for every node that can be reached, on how many others it has to wait.
void Pass::discover(const std::vector<Edge>& roots) {
  struct Visit {
    Node* node;
    size_t next = 0;
  };
  std::vector<Visit> path;
  std::vector<Node*> finished;
  auto visit = [&](Node* node) {
    if (states_.try_emplace(node).second) path.push_back({node});
  };
  for (const Edge& root : roots) {
    visit(root.node.get());
    while (!path.empty()) {
      Visit& top = path.back();
      const std::vector<Edge>& edges = top.node->next_edges();
      if (top.next == edges.size()) {
        if (inputs_) finished.push_back(top.node);
        path.pop_back();
        continue;
      }
      Node* next = edges[top.next++].node.get();
      if (!next) continue;
      visit(next);
      ++states_[next].dependencies;
    }
  }
  if (inputs_) find_needed(finished);
}

// `finished` has every node after all those it leads to.
void Pass::find_needed(const std::vector<Node*>& finished) {
  for (size_t i = 0; i < inputs_->size(); ++i) {
    auto found = states_.find((*inputs_)[i].node.get());
    if (found == states_.end()) continue;
    if (runs_inputs_) found->second.is_input = true;
    else found->second.captures.push_back({(*inputs_)[i].input, i});
  }
  for (Node* node : finished) {
    State& state = states_[node];
    state.runs = state.is_input;
    for (const Edge& e : node->next_edges()) state.runs |= e && states_[e.node.get()].needed;
    state.needed = state.runs || !state.captures.empty();
  }
}

void Pass::deliver(const Edge& edge, Tensor gradient) {
  State& state = states_[edge.node.get()];
  if (state.incoming.empty()) state.incoming.resize(std::max<size_t>(edge.node->inputs().size(), edge.input + 1));
  Tensor& place = state.incoming[edge.input];
  if (!gradient.defined()) return;
  place = place.defined() ? accumulate(std::move(place), gradient) : std::move(gradient);
}

Gradients apply(Node& node, Gradients incoming) {
  AnomalyDetection detection = g_anomaly_detection;
  if (!detection.enabled) return node.apply(std::move(incoming));
  try {
    Gradients given = node.apply(std::move(incoming));
    if (detection.check_nan) check_no_nan(node, given);
    return given;
  } catch (...) {
    note_failed(node);
    throw;
  }
}

void Pass::run_node(const IntrusivePtr<Node>& node) {
  node_ = node.get();
  State& state = states_[node.get()];
  Gradients incoming = std::move(state.incoming);
  incoming.resize(std::max(incoming.size(), node->inputs().size()));
  node->run_tensor_hooks(incoming);
  for (const Capture& c : state.captures) results_[c.result] = incoming[c.input];
  if (!state.runs) return;

  node->run_pre_hooks(incoming);
  Gradients seen;
  if (node->has_post_hooks()) seen = incoming;
  Gradients given = apply(*node, std::move(incoming));
  node->run_post_hooks(given, seen);
  if (!options_.retain_graph) node->release_saved();

  const std::vector<Edge>& edges = node->next_edges();
  if (given.size() < edges.size()) given.resize(edges.size());
  for (size_t i = 0; i < edges.size(); ++i) {
    const Edge& edge = edges[i];
    if (!edge) continue;
    State& next = states_[edge.node.get()];
    --next.dependencies;
    if (!next.needed) continue;
    Tensor gradient = std::move(given[i]);
    if (gradient.defined()) {
      const InputMetadata& expected = edge.node->inputs().at(edge.input);
      if (expected.defined) gradient = fit_gradient(*node, i, std::move(gradient), expected);
    }
    deliver(edge, std::move(gradient));
    if (next.dependencies == 0) enqueue(edge.node);
  }
}

Gradients Pass::run(const std::vector<Edge>& roots, Gradients root_gradients) {
  if (inputs_) results_.resize(inputs_->size());
  discover(roots);
  Running running(this);
  KeepSavedTensorHooks hooks;
  SetGradEnabled grad_mode(options_.create_graph);
  for (size_t i = 0; i < roots.size(); ++i) deliver(roots[i], std::move(root_gradients[i]));
  for (size_t i = 0; i < roots.size(); ++i) {
    Node* node = roots[i].node.get();
    bool first = std::none_of(roots.begin(), roots.begin() + i, [&](const Edge& e) { return e.node.get() == node; });
    const State& state = states_[node];
    if (first && state.dependencies == 0 && state.needed) enqueue(roots[i].node);
  }
  while (!ready_.empty()) {
    check_interrupt();
    std::pop_heap(ready_.begin(), ready_.end(), Later());
    IntrusivePtr<Node> node = std::move(ready_.back());
    ready_.pop_back();
    run_node(node);
    release_iteratively(std::move(node));
  }
  return std::move(results_);
}

// ---- arguments in users' terms ----

Gradients make_root_gradients(TensorList outputs, TensorList given) {
  Gradients gradients;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& output = outputs[i];
    Tensor gradient = i < given.size() ? given[i] : Tensor();
    if (gradient.defined()) {
      check(gradient.sym_sizes() == output.sym_sizes(), "Mismatch in shape: grad_output[", i,
            "] has a shape of torch.Size(", gradient.sym_sizes(), ") and output[", i, "] has a shape of torch.Size(",
            output.sym_sizes(), ").");
      check(gradient.is_complex() == output.is_complex(),
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            "grad_output[",
            i, "] has a dtype of ", gradient.dtype(), " and output[", i, "] has a dtype of ", output.dtype(), ".");
      if (gradient.dtype() != output.dtype()) gradient = gradient.to(output.dtype());
    } else if (output.requires_grad()) {
      check(output.sym_numel() == 1, "grad can be implicitly created only for scalar outputs");
      check(!output.is_complex(), "grad can be implicitly created only for real scalar outputs but got ",
            output.dtype());
      gradient = ones_like(output, {.pin_memory = false}, MemoryFormat::Preserve);
      check(gradient.defined(), "element ", i,
            " of gradients tuple is None, but the corresponding Tensor requires grad");
    }
    gradients.push_back(std::move(gradient));
  }
  return gradients;
}

std::vector<Edge> root_edges(TensorList outputs) {
  std::vector<Edge> roots;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Edge edge = gradient_edge(outputs[i]);
    check(static_cast<bool>(edge), "element ", i, " of tensors does not require grad and does not have a grad_fn");
    roots.push_back(std::move(edge));
  }
  return roots;
}

void check_counts(TensorList outputs, TensorList gradients) {
  check(!outputs.empty(), "grad requires non-empty outputs.");
  check(gradients.empty() || gradients.size() == outputs.size(), "got ", outputs.size(), " tensors and ",
        gradients.size(), " gradients");
}

}  // namespace

void set_node_watch(NodeWatch watch) { g_node_watch = watch; }
void note_recorded(Node& node) {
  if (g_node_watch.recorded && g_anomaly_detection.load(std::memory_order_relaxed).enabled) g_node_watch.recorded(node);
}

void set_detect_anomaly(AnomalyDetection detection) { g_anomaly_detection = detection; }
AnomalyDetection anomaly_detection() { return g_anomaly_detection; }

SuspendPass::SuspendPass() : before_(std::exchange(g_pass, nullptr)) {}
SuspendPass::~SuspendPass() { g_pass = static_cast<Pass*>(before_); }

bool Node::needs(size_t edge) const {
  const Edge& e = next_edges_[edge];
  return e && (!g_pass || g_pass->wants(e.node.get()));
}

const Node* running_node() { return g_pass ? g_pass->node() : nullptr; }
uint64_t backward_pass() { return g_pass ? g_pass->number() : 0; }
bool backward_to_inputs() { return g_pass && g_pass->has_inputs(); }
bool will_run(const Node* node) { return g_pass && g_pass->wants(const_cast<Node*>(node)); }
void after_backward(std::function<void()> function) {
  check(g_pass != nullptr, "Final callbacks can only be installed during backward pass.");
  g_pass->call_at_the_end(std::move(function));
}

std::vector<Tensor> grad_of_edges(const std::vector<Edge>& roots, Gradients root_gradients,
                                  const std::vector<Edge>& inputs, BackwardOptions options) {
  Pass pass(options, &inputs);
  Gradients results = pass.run(roots, std::move(root_gradients));
  pass.finish();
  return results;
}

/// Where the gradients of the inputs are found; `prepare` is called for each before its edge is made.
template <class Prepare>
static std::vector<Edge> wanted_edges(TensorList inputs, const std::vector<Edge>& roots, Prepare prepare) {
  std::vector<Tensor> wanted = inputs.vec();
  see_wanted(wanted, roots);
  std::vector<Edge> edges;
  for (const Tensor& input : wanted) {
    check(input.requires_grad(), "One of the differentiated Tensors does not require grad");
    prepare(input);
    edges.push_back(gradient_edge(input));
  }
  return edges;
}

std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList grad_outputs, BackwardOptions options,
                         bool allow_unused) {
  check_counts(outputs, grad_outputs);
  Gradients gradients = make_root_gradients(outputs, grad_outputs);
  std::vector<Edge> roots = root_edges(outputs);
  std::vector<Edge> edges = wanted_edges(inputs, roots, [](const Tensor&) {});
  std::vector<Tensor> results = grad_of_edges(roots, std::move(gradients), edges, options);
  for (size_t i = 0; i < results.size(); ++i)
    check(allow_unused || results[i].defined(), "The differentiated Tensor at index ", i,
          " appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior.");
  return results;
}

void backward(TensorList outputs, TensorList grad_outputs, BackwardOptions options, TensorList inputs) {
  check_counts(outputs, grad_outputs);
  Gradients gradients = make_root_gradients(outputs, grad_outputs);
  std::vector<Edge> roots = root_edges(outputs);
  std::vector<Edge> edges = wanted_edges(inputs, roots, [](const Tensor& input) { input.retain_grad(); });
  backward_to_edges(roots, std::move(gradients), edges, options);
}

void backward_to_edges(const std::vector<Edge>& roots, Gradients root_gradients, const std::vector<Edge>& inputs,
                       BackwardOptions options) {
  Pass pass(options, inputs.empty() ? nullptr : &inputs, true);
  pass.run(roots, std::move(root_gradients));
  pass.finish();
}

}  // namespace umbra::autograd
