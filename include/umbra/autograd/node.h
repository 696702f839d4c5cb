// A step of the backward pass. What an operator records, a custom function and the accumulation into a leaf are all
// nodes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "umbra/core/tensor.h"

namespace UMBRA_API umbra {
namespace autograd {

class Node;

/// Gradients by position; an undefined one means none.
using Gradients = std::vector<Tensor>;

/// Where a gradient goes: a node, and which of its inputs.
struct Edge {
  IntrusivePtr<Node> node;
  uint32_t input = 0;
  explicit operator bool() const { return static_cast<bool>(node); }
};

/// What the gradient that flows into a node must look like: the metadata of the forward output it belongs to.
struct InputMetadata {
  SymShape sizes;
  DType dtype = DType::Undefined;  // Undefined: gradients keep the type they come in
  Device device;
  bool defined = false;

  InputMetadata() = default;
  explicit InputMetadata(const Tensor& output);
};

/// Sees a tensor's gradient, undefined where none flows; what it returns takes its place, unless undefined.
using TensorHook = std::function<Tensor(const Tensor& gradient)>;
/// Puts what the hook returns in the gradient's place; an error where its size differs.
void run_hook(const TensorHook& hook, Tensor& gradient);
/// Sees what flows into a node before it runs; a result that is not empty takes its place.
using NodePreHook = std::function<Gradients(const Gradients& incoming)>;
/// Sees what a node gave for what flowed in; a result that is not empty takes the place of what it gave.
using NodePostHook = std::function<Gradients(const Gradients& given, const Gradients& incoming)>;
using HookId = uint64_t;

HookId next_hook_id();

class Node : public RefCounted {
 public:
  /// Later nodes run first in a backward pass.
  explicit Node(uint64_t sequence_number = next_sequence_number());
  ~Node() override;

  /// "MulBackward0".
  virtual std::string name() const = 0;
  /// Gradients of the forward outputs to gradients of the forward inputs, one for each edge.
  virtual Gradients apply(Gradients incoming) = 0;
  /// Lets go of what was saved for the backward pass.
  virtual void release_saved() {}

  const std::vector<Edge>& next_edges() const { return next_edges_; }
  void add_edge(Edge edge);
  void reserve_edges(size_t count);
  void set_next_edges(std::vector<Edge> edges);
  /// Whether the gradient along an edge is wanted in the backward pass that is running.
  bool needs(size_t edge) const;

  const std::vector<InputMetadata>& inputs() const { return inputs_; }
  uint32_t add_input(InputMetadata metadata);
  void expect_dtype(uint32_t input, DType dtype) { inputs_.at(input).dtype = dtype; }
  uint64_t sequence_number() const { return sequence_number_; }

  /// A hook on the gradient that flows into one input: what Tensor hooks are. They run before those of the node.
  HookId add_tensor_hook(uint32_t input, TensorHook hook);
  HookId add_pre_hook(NodePreHook hook);
  HookId add_post_hook(NodePostHook hook);
  bool remove_hook(HookId id);
  /// Shows each hook, as the one of the three kinds that it is, to whoever looks for what refers to itself.
  using AnyHook = std::variant<const TensorHook*, const NodePreHook*, const NodePostHook*>;
  void each_hook(const std::function<void(AnyHook)>& visit) const;
  /// Lets go of all hooks of these kinds.
  void drop_hooks();
  /// The tensor keeps the gradient that flows into this input in its `grad`.
  void retain_grad(uint32_t input, WeakPtr<TensorImpl> tensor);
  void stop_retaining(const TensorImpl* tensor);

  // What the engine calls around apply().
  virtual void run_tensor_hooks(Gradients& incoming);
  void run_pre_hooks(Gradients& incoming) const;
  void run_post_hooks(Gradients& given, const Gradients& incoming) const;
  bool has_post_hooks() const;

  /// What its user keeps with the node, until the node goes; null unless set.
  IntrusivePtr<RefCounted> user_data() const;
  void set_user_data(IntrusivePtr<RefCounted> data);

  static uint64_t next_sequence_number();

 protected:
  void release_resources() override;

 private:
  struct Hooks;
  Hooks& hooks();

  uint64_t sequence_number_;
  std::vector<Edge> next_edges_;
  std::vector<InputMetadata> inputs_;
  IntrusivePtr<Hooks> hooks_;  // null where there are none
};

}  // namespace autograd
}  // namespace umbra
