// What autograd keeps about a tensor.
#pragma once

#include "autograd/hook_list.h"
#include "umbra/autograd/autograd.h"

namespace umbra::autograd {

/// The tensor's derivative along a direction, at one level of forward mode.
struct Tangent {
  int level;
  Tensor value;
};

/// Makes of another base the view that was made of the first.
using ViewReplay = std::function<Tensor(const Tensor& base)>;

struct AutogradMeta final : AutogradMetaBase {
  bool requires_grad = false;  // of a leaf; a tensor with a grad_fn requires gradients by that
  bool retains_grad = false;
  uint32_t output_number = 0;
  IntrusivePtr<Node> grad_fn;
  Tensor grad;

  /// What few tensors have.
  struct Rare {
    WeakPtr<Node> accumulator;
    HookList<TensorHook> hooks;  // of a leaf; those of other tensors are kept by their grad_fn
    HookList<std::function<void(const Tensor&)>> post_accumulate;
    std::vector<Tangent> tangents;
    ViewReplay replay;                // of a view whose strides do not say what it is
    std::optional<DType> grad_dtype;  // where one was set; Undefined where any will do
  };
  std::unique_ptr<Rare> rare;
  Rare& rarely() {
    if (!rare) rare = std::make_unique<Rare>();
    return *rare;
  }
  ~AutogradMeta() override;
};

inline AutogradMeta* meta_of(const TensorImpl* t) { return static_cast<AutogradMeta*>(t->autograd_meta()); }
/// The tensor's, made if there is none. From here on autograd sees calls with the tensor.
AutogradMeta& ensure_meta(TensorImpl* t);

inline bool has_own_history(const TensorImpl* t) {
  const AutogradMeta* m = meta_of(t);
  return m && (m->requires_grad || m->grad_fn);
}
inline bool requires_grad(const TensorImpl* t) {
  // The base first: where it has a history, a view's own may be being made by another thread.
  if (t->view_base() && has_own_history(t->view_base().get()) && is_differentiable(t->dtype())) return true;
  return has_own_history(t);
}

/// Makes the tensor a leaf that requires nothing.
void cut_history(const Tensor& tensor);

/// Drops a reference to a node without recursion, however long the chain that ends with it.
void release_iteratively(IntrusivePtr<Node> node);

/// Whether layers that know tensors by identity are looking: a new tensor must come about before their eyes.
bool is_observed(const Tensor& tensor);
/// A tensor over the same memory that knows nothing of autograd. Layers below see it as a `detach` where they have to.
Tensor share_data(const Tensor& tensor);

/// The gradient in the shape and type of the input it belongs to; an error naming the node if it cannot be.
Tensor fit_gradient(const Node& node, size_t index, Tensor gradient, const InputMetadata& expected);
/// Until the scope ends, nodes run as if no backward pass were running: all their edges are wanted.
class SuspendPass {
 public:
  SuspendPass();
  ~SuspendPass();
  SuspendPass(const SuspendPass&) = delete;

 private:
  void* before_;
};

/// A node's name with the namespace that it has in PyTorch: "torch::autograd::CopySlices".
UMBRA_API std::string full_name(const Node& node);
/// The name by which messages call the operator behind a node: "Add" for "AddBackward0", "Pow1" for "PowBackward1".
std::string forward_name(const Node& node);

// ---- views (views.cpp) ----

/// Where the gradient of a view goes, found anew if its base was changed since. Threads that only read see one answer.
Edge view_history(const Tensor& view);
/// The node that leads from a view to its base, whose history is `base_node`: what rebase_history made.
IntrusivePtr<Node> view_node_of(const IntrusivePtr<Node>& base_node, const Tensor& view);
/// The view of a tensor that `view` is of `base`; the tensor has the base's sizes and strides.
Tensor same_view(const Tensor& on, const Tensor& base, const Tensor& view);
/// Copies to a tensor whose elements may share memory (expand): each is written once, with the first of their values.
void write_once(Tensor to, Tensor contents);
/// An error, in PyTorch's words, if the tensor may not be changed in place by something that is recorded.
void check_inplace(const Tensor& tensor);

}  // namespace umbra::autograd
