// What a function sees of a history while it is recorded for its values: where a call is differentiated as a whole, its
// functions run below autograd, but a user's may ask what needs gradients, and take some of its own.
#include <algorithm>
#include <unordered_set>

#include "autograd/hooks_off.h"
#include "autograd/meta.h"
#include "capture/higher_order/layers.h"
#include "capture/higher_order/metadata.h"
#include "core/per_thread.h"
#include "umbra/autograd/function.h"
#include "umbra/autograd/grad_mode.h"

namespace umbra {

namespace {

struct Scope {
  const InputHistory* history;
  const std::vector<Value>* inputs;
};
std::vector<Scope>& scopes() {
  static PerThread<std::vector<Scope>> all;
  return *all;
}

bool depends(const std::vector<autograd::Edge>& edges, const autograd::Edge& on) {
  std::vector<const autograd::Node*> open;
  for (const autograd::Edge& edge : edges) open.push_back(edge.node.get());
  std::unordered_set<const autograd::Node*> seen;
  while (!open.empty()) {
    const autograd::Node* node = open.back();
    open.pop_back();
    if (node == on.node.get()) return true;
    if (!node || !seen.insert(node).second) continue;
    for (const autograd::Edge& edge : node->next_edges()) open.push_back(edge.node.get());
  }
  return false;
}

/// A graph knows nothing of how its inputs came about: a derivative by one of them would leave out what another owes to
/// it.
void check_wanted(const Tensor& wanted, const std::vector<autograd::Edge>& roots) {
  Tensor outside = wanted;
  for (auto scope = scopes().rbegin(); scope != scopes().rend(); ++scope) {
    const std::vector<Tensor>& given = scope->history->given;
    size_t self = SIZE_MAX;
    for (size_t i = 0; i < std::min(given.size(), scope->inputs->size()); ++i)
      if (const Value& v = (*scope->inputs)[i]; v.is_tensor() && v.tensor_ref().is_same(outside)) self = i;
    if (self != SIZE_MAX) outside = given[self];
    if (!outside.defined() || !outside.requires_grad()) return;
    autograd::Edge edge = autograd::gradient_edge(outside);
    for (size_t i = 0; i < given.size(); ++i) {
      if (i == self || !given[i].defined() || !scope->history->tracked[i] || given[i].is_same(outside)) continue;
      bool innermost = scope == scopes().rbegin();
      if (innermost && !depends(roots, autograd::gradient_edge((*scope->inputs)[i].tensor()))) continue;
      check<NotImplementedError>(!depends({autograd::gradient_edge(given[i])}, edge),
                                 "a function of cond, while_loop, map or scan takes a derivative by a tensor on which "
                                 "another one of its inputs depends; compute that one inside, or take the derivative "
                                 "outside");
    }
  }
}
[[maybe_unused]] const bool kChecked = (autograd::set_wanted_check(check_wanted), true);

NodeLike g_node_like = nullptr;

/// A node for what was computed outside: `given` itself, or a row of it.
IntrusivePtr<autograd::Node> node_for(const Tensor& input, const Tensor& given) {
  bool is_itself = given.defined() && given.dim() == input.dim();
  if (IntrusivePtr<autograd::Node> like = g_node_like && is_itself ? g_node_like(given) : nullptr) return like;
  auto none = [](autograd::FunctionContext&, const autograd::Gradients&) { return autograd::Gradients(); };
  return make_counted<autograd::FunctionNode>("OutsideBackward", none);
}

Value without_history(const Value& result, const std::vector<Value>& inputs) {
  if (!result.is_tensor() || !result.tensor_ref().requires_grad()) return result;
  const Tensor& t = result.tensor_ref();
  for (const Value& v : inputs)
    if (v.is_tensor() && v.tensor_ref().is_same(t)) return Value(t.detach());
  t.impl()->set_view_base(nullptr);
  autograd::cut_history(t);
  return result;
}

/// Whether two runs made the same calls.
bool same_graphs(const fx::GraphModule& a, const fx::GraphModule& b) {
  if (to_string(a.graph()) != to_string(b.graph())) return false;
  for (const fx::Node* node : a.graph().nodes()) {
    if (node->op() != fx::Op::GetAttr) continue;
    auto graph_of = [&](const fx::GraphModule& module) {
      const Value* value = module.find(node->target().name());
      return value && value->is_object() ? dynamic_cast<const fx::GraphModule*>(value->object()) : nullptr;
    };
    const fx::GraphModule *inner = graph_of(a), *other = graph_of(b);
    if (!inner != !other || (inner && !same_graphs(*inner, *other))) return false;
  }
  return true;
}

/// Marks what is carried and needs gradients once a step was made; whether there was any.
bool track_carried(const Rehearsed& rehearsed, const std::vector<Value>& carried, std::vector<bool>& tracked) {
  bool more = false;
  const std::vector<Value>& next = rehearsed.results.back();
  for (size_t i = 0; i < std::min(carried.size(), next.size()); ++i) {
    if (tracked[i] || !next[i].is_tensor() || !next[i].tensor_ref().requires_grad()) continue;
    tracked[i] = more = true;
  }
  return more;
}

/// The tensors that the inputs of functions are or are rows of: the lists, one after the other.
std::vector<Tensor> given_tensors(const FunctionCall& call, size_t count) {
  std::vector<Tensor> out;
  for (size_t i = 0; i < call.op().argument_count(); ++i) {
    if (!call.op().schema().arguments[i].type.list) continue;
    for (const Value& v : call.list(i)) out.push_back(v.is_tensor() ? v.tensor() : Tensor());
  }
  out.resize(count);
  return out;
}

}  // namespace

void set_node_like(NodeLike like) { g_node_like = like; }

bool shows_history() { return !scopes().empty(); }

HistoryScope::HistoryScope(const InputHistory& history, const std::vector<Value>& inputs) {
  for (size_t i = 0; i < std::min(inputs.size(), history.tracked.size()); ++i) {
    if (!history.tracked[i] || inputs[i].tensor_ref().requires_grad()) continue;
    Tensor t = inputs[i].tensor();
    if (history.computed[i] && !t.impl()->view_base()) autograd::set_history(t, node_for(t, history.given[i]));
    else t.requires_grad_();
    marked_.push_back(std::move(t));
  }
  scopes().push_back({&history, &inputs});
}

void HistoryScope::leave() {
  if (std::exchange(inside_, false)) scopes().pop_back();
}

HistoryScope::~HistoryScope() {
  leave();
  // The first step of a loop is given the caller's own.
  for (const Tensor& t : marked_) autograd::cut_history(t);
}

void note_history(FunctionCall& call) {
  InputHistory history;
  history.grad_mode = is_grad_enabled();
  std::vector<Value> inputs = call.inputs(call.functions().size() - 1);
  // A loop's way back has functions of different inputs; they are graphs, which ask for nothing.
  if (call.inputs(0).size() != inputs.size()) return;
  std::vector<bool>& tracked = history.tracked;
  history.given = given_tensors(call, inputs.size());
  std::vector<Value> carried;
  if (call.rule().carried < call.op().argument_count()) carried = call.list(call.rule().carried);
  for (size_t i = 0; i < inputs.size(); ++i) {
    tracked.push_back(inputs[i].is_tensor() && inputs[i].tensor_ref().requires_grad());
    const Tensor& given = history.given[i];
    bool is_row = tracked[i] && i >= carried.size() && !inputs[i].tensor_ref().is_same(given);
    history.computed.push_back(tracked[i] && (is_row || !given.is_leaf()));
  }
  bool any = needs_gradients(call);
  if (any && std::ranges::any_of(differentiable(carried), [&](size_t i) { return !tracked[i]; })) {
    Rehearsed first = rehearse_functions(call, {}), later = first;
    while (track_carried(later, carried, tracked)) later = rehearse_functions(call, tracked);
    for (size_t which = 0; which < first.graphs.size(); ++which)
      check<NotImplementedError>(same_graphs(*first.graphs[which], *later.graphs[which]), public_name(call),
                                 ": a function does something else once what is carried needs gradients than in its "
                                 "first step, where it does not, which cannot be captured; start with a tensor that "
                                 "needs gradients");
  }
  call.set_history(std::move(history));
}

ValueFunction plain_function(const FunctionCall& call, size_t which) {
  return [function = call.argument(call.functions()[which])](const std::vector<Value>& inputs) {
    return call_function(function, inputs);
  };
}

ValueFunction with_history(const FunctionCall& call, size_t which) {
  if (!call.history()) return plain_function(call, which);
  return [function = plain_function(call, which), history = *call.history()](const std::vector<Value>& inputs) {
    SaveDispatchState state;
    dispatch_state().exclude = dispatch_state().exclude - DispatchKeySet(DispatchKey::Autograd);
    SetGradEnabled grad_mode(history.grad_mode);
    autograd::WithoutSavedTensorHooks of_the_run_alone;
    HistoryScope scope(history, inputs);
    std::vector<Value> results = function(inputs);
    for (Value& v : results) v = without_history(v, inputs);
    return results;
  };
}

}  // namespace umbra
