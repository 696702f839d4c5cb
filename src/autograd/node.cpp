#include "umbra/autograd/node.h"

#include <atomic>

#include "autograd/hook_list.h"
#include "autograd/meta.h"
#include "autograd/user_code.h"
#include "umbra/autograd/running.h"

namespace umbra::autograd {

InputMetadata::InputMetadata(const Tensor& output)
    : sizes(output.sym_sizes()), dtype(output.dtype()), device(output.device()), defined(true) {}

HookId next_hook_id() {
  static std::atomic<HookId> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

// ---- letting go of long chains ----

namespace {
// The references that the destruction now running on this thread has still to drop; null when none is running.
constinit thread_local std::vector<IntrusivePtr<Node>>* g_released = nullptr;
}  // namespace

void release_iteratively(IntrusivePtr<Node> node) {
  if (!node) return;
  if (g_released) {
    g_released->push_back(std::move(node));
    return;
  }
  if (node->use_count() > 1) return;  // others hold it: nothing is destroyed here
  std::vector<IntrusivePtr<Node>> pending;
  pending.push_back(std::move(node));
  g_released = &pending;
  while (!pending.empty()) {
    IntrusivePtr<Node> last = std::move(pending.back());
    pending.pop_back();
    last = nullptr;  // its destructor adds what it held to the list
  }
  g_released = nullptr;
}

// ---- Node ----

// One count for all threads, so that a graph recorded by several of them is ordered too.
namespace {
constinit std::atomic<uint64_t> g_next_sequence_number{0};
}
uint64_t Node::next_sequence_number() { return g_next_sequence_number.fetch_add(1, std::memory_order_relaxed); }
uint64_t upcoming_sequence_number() { return g_next_sequence_number.load(std::memory_order_relaxed); }

struct Node::Hooks final : RefCounted {
  struct OnTensor {
    uint32_t input;
    TensorHook hook;
  };
  HookList<OnTensor> tensor;
  HookList<NodePreHook> pre;
  HookList<NodePostHook> post;
  std::vector<std::pair<uint32_t, WeakPtr<TensorImpl>>> retained;
  IntrusivePtr<RefCounted> user_data;
};

Node::Node(uint64_t sequence_number) : sequence_number_(sequence_number) {}

Node::~Node() { Node::release_resources(); }

void Node::release_resources() {
  for (Edge& edge : next_edges_) release_iteratively(std::move(edge.node));
  next_edges_.clear();
  hooks_ = nullptr;
}

void Node::add_edge(Edge edge) { next_edges_.push_back(std::move(edge)); }
void Node::reserve_edges(size_t count) { next_edges_.reserve(count); }
void Node::set_next_edges(std::vector<Edge> edges) { next_edges_ = std::move(edges); }

uint32_t Node::add_input(InputMetadata metadata) {
  inputs_.push_back(std::move(metadata));
  return static_cast<uint32_t>(inputs_.size() - 1);
}

Node::Hooks& Node::hooks() {
  if (!hooks_) hooks_ = make_counted<Hooks>();
  return *hooks_;
}

HookId Node::add_tensor_hook(uint32_t input, TensorHook hook) {
  HookId id = next_hook_id();
  hooks().tensor.add(id, {input, std::move(hook)});
  return id;
}

HookId Node::add_pre_hook(NodePreHook hook) {
  note_user_code();
  HookId id = next_hook_id();
  hooks().pre.add(id, std::move(hook));
  return id;
}

HookId Node::add_post_hook(NodePostHook hook) {
  note_user_code();
  HookId id = next_hook_id();
  hooks().post.add(id, std::move(hook));
  return id;
}

bool Node::remove_hook(HookId id) {
  return hooks_ && (hooks_->tensor.remove(id) || hooks_->pre.remove(id) || hooks_->post.remove(id));
}

void Node::each_hook(const std::function<void(AnyHook)>& visit) const {
  if (!hooks_) return;
  hooks_->tensor.each([&](const Hooks::OnTensor& h) { visit(&h.hook); });
  hooks_->pre.each([&](const NodePreHook& hook) { visit(&hook); });
  hooks_->post.each([&](const NodePostHook& hook) { visit(&hook); });
}

void Node::drop_hooks() {
  if (!hooks_) return;
  // What the functions held may come back here: they go after the lists are empty.
  auto tensor = std::exchange(hooks_->tensor, {});
  auto pre = std::exchange(hooks_->pre, {});
  auto post = std::exchange(hooks_->post, {});
}

void Node::retain_grad(uint32_t input, WeakPtr<TensorImpl> tensor) {
  hooks().retained.emplace_back(input, std::move(tensor));
}

void Node::stop_retaining(const TensorImpl* tensor) {
  if (hooks_) std::erase_if(hooks_->retained, [&](const auto& r) { return r.second.identity() == tensor; });
}

bool Node::has_post_hooks() const { return hooks_ && !hooks_->post.empty(); }
IntrusivePtr<RefCounted> Node::user_data() const { return hooks_ ? hooks_->user_data : nullptr; }
void Node::set_user_data(IntrusivePtr<RefCounted> data) { hooks().user_data = std::move(data); }

void run_hook(const TensorHook& hook, Tensor& gradient) {
  Tensor changed = hook(gradient);
  if (!changed.defined()) return;
  check(!gradient.defined() || changed.sym_sizes() == gradient.sym_sizes(),
        "a hook has changed the size of value: it was ", gradient.sym_sizes(), " and is ", changed.sym_sizes());
  gradient = std::move(changed);
}

void Node::run_tensor_hooks(Gradients& incoming) {
  if (!hooks_) return;
  hooks_->tensor.each([&](const Hooks::OnTensor& h) { run_hook(h.hook, incoming[h.input]); });
  for (auto& [input, weak] : hooks_->retained) {
    IntrusivePtr<TensorImpl> tensor = weak.lock();
    const Tensor& gradient = incoming[input];
    if (!tensor || !gradient.defined()) continue;
    Tensor& kept = ensure_meta(tensor.get()).grad;
    kept = kept.defined() ? kept.add(gradient) : gradient.clone();
  }
}

void Node::run_pre_hooks(Gradients& incoming) const {
  if (!hooks_) return;
  hooks_->pre.each([&](const NodePreHook& hook) {
    Gradients changed = hook(incoming);
    if (!changed.empty()) incoming = std::move(changed);
  });
}

void Node::run_post_hooks(Gradients& given, const Gradients& incoming) const {
  if (!hooks_) return;
  hooks_->post.each([&](const NodePostHook& hook) {
    Gradients changed = hook(given, incoming);
    if (!changed.empty()) given = std::move(changed);
  });
}

}  // namespace umbra::autograd
