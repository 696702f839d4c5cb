// Reverse-mode differentiation: gradients of outputs with respect to inputs, and what tensors know about their history.
//
//     Tensor x = randn({3}).requires_grad_();
//     Tensor y = (x * x).sum();
//     y.backward();                                  // x.grad() is 2x
//     Tensor g = autograd::grad({y2}, {x})[0];       // the same without touching x.grad()
#pragma once

#include "umbra/autograd/grad_mode.h"
#include "umbra/autograd/node.h"
#include "umbra/autograd/saved_tensor.h"

namespace UMBRA_API umbra {
namespace autograd {

struct BackwardOptions {
  bool retain_graph = false;  // keep what was saved, for another pass over the same graph
  bool create_graph = false;  // the gradients can be differentiated again
};

/// Gradients of the outputs, weighted by `grad_outputs` (left out: 1 for scalars), with respect to the inputs. An input
/// that took no part is an error, or with `allow_unused` gives an undefined tensor.
std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList grad_outputs = {},
                         BackwardOptions options = {}, bool allow_unused = false);
/// Adds the gradients to `grad()` of the leaves below, or of `inputs` alone where they are given.
void backward(TensorList outputs, TensorList grad_outputs = {}, BackwardOptions options = {}, TensorList inputs = {});
/// The same from edges, where the outputs themselves are gone.
std::vector<Tensor> grad_of_edges(const std::vector<Edge>& roots, Gradients root_gradients,
                                  const std::vector<Edge>& inputs, BackwardOptions options);
void backward_to_edges(const std::vector<Edge>& roots, Gradients root_gradients, const std::vector<Edge>& inputs,
                       BackwardOptions options);

/// Whether backward passes look at every gradient, and stop at the first operator that makes a nan.
struct AnomalyDetection {
  bool enabled = false;
  bool check_nan = true;
};
void set_detect_anomaly(AnomalyDetection detection);
AnomalyDetection anomaly_detection();

// ---- what a tensor knows ----

/// The node that made the tensor; null for leaves.
IntrusivePtr<Node> grad_fn(const Tensor& tensor);
uint32_t output_number(const Tensor& tensor);
/// Where the tensor's gradient flows to: its grad_fn, or for a leaf what accumulates into its `grad`. Null where none
/// is needed.
Edge gradient_edge(const Tensor& tensor);
/// Makes `node` the tensor's history, as a new output of it.
void set_history(const Tensor& tensor, const IntrusivePtr<Node>& node);
/// The same after an in-place change: where the tensor is a view, the history of its base changes too.
void rebase_history(const Tensor& tensor, const IntrusivePtr<Node>& node);
/// Python's `.data`: same memory, no history, and a version of its own.
Tensor data_of(const Tensor& tensor);
/// Lets `tensor` become `data` in place: memory and metadata, not history.
void set_data(const Tensor& tensor, const Tensor& data);
/// The type that gradients of a leaf come in, and that its `grad` has: the tensor's own unless another one was set.
/// None where any will do.
std::optional<DType> grad_dtype(const Tensor& tensor);
void set_grad_dtype(const Tensor& leaf, std::optional<DType> dtype);

// ---- hooks ----

/// A registered hook; `remove()` takes it off again, and may be called at any time.
struct HookHandle {
  HookId id = 0;
  WeakPtr<Node> node;        // where the hook is kept for a tensor with a history
  WeakPtr<TensorImpl> leaf;  // where it is kept for a leaf
  void remove() const;
};
/// Called with the tensor's gradient whenever one is computed.
HookHandle register_hook(const Tensor& tensor, TensorHook hook);
/// Called after a leaf's `grad` has been updated.
HookHandle register_post_accumulate_grad_hook(const Tensor& leaf, std::function<void(const Tensor& leaf)> hook);
bool retains_grad(const Tensor& tensor);

}  // namespace autograd
}  // namespace umbra
