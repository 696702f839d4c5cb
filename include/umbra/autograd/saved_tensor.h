// A tensor kept for the backward pass: checked for changes in between, free of reference cycles, and open to hooks that
// keep it elsewhere.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "umbra/autograd/node.h"
#include "umbra/core/value.h"

namespace UMBRA_API umbra {
namespace autograd {

/// What to do with tensors saved for the backward pass instead of holding them: to disk, to another device, to a
/// checkpoint.
struct SavedTensorHooks {
  std::function<Value(const Tensor&)> pack;
  std::function<Tensor(const Value&)> unpack;
};

class SavedTensor {
 public:
  SavedTensor() = default;
  /// `is_output`: the tensor is a result of the node that saves it, which must not keep itself alive through it.
  SavedTensor(const Tensor& tensor, bool is_output);

  /// The tensor, as it was saved. An error where its contents have changed since, or where it was released. `owner` is
  /// the node that saved it: the history of its own outputs.
  Tensor unpack(const IntrusivePtr<Node>& owner) const;
  /// For an output of an in-place operator on a view: its history is what `base_node` makes of the base.
  void set_rebased(const IntrusivePtr<Node>& base_node);
  void release();
  /// Hands the tensor to hooks after all; an error where some have it, or where it was released.
  void register_hooks(SavedTensorHooks hooks);
  bool defined() const { return defined_; }
  /// Whether hooks have it.
  bool is_packed() const { return packed_ != nullptr; }

 private:
  struct Packed;
  Tensor with_history(Tensor data, const IntrusivePtr<Node>& owner) const;
  void check_version(const IntrusivePtr<Node>& owner) const;
  void pack(const Tensor& tensor, SavedTensorHooks hooks);

  Tensor data_;
  std::shared_ptr<Packed> packed_;  // where hooks keep it
  WeakPtr<Node> rebased_;
  uint32_t output_number_ = 0;
  uint32_t version_ = 0;
  bool is_output_ = false, defined_ = false, released_ = false, requires_grad_ = false, is_rebased_ = false;
};

/// Told of each saved tensor that a backward pass takes while a program is recorded above autograd: what stands for it
/// there is for the layer that records to say.
extern void (*saved_tensor_taken)(const Tensor& tensor);

/// Applies to every tensor that this thread saves while the scope stands.
///
///     WithSavedTensorHooks scope({[](const Tensor& t) { return Value(t.to(DType::BFloat16)); },
///                                 [](const Value& v) { return v.tensor().to(DType::Float32); }});
class WithSavedTensorHooks {
 public:
  explicit WithSavedTensorHooks(SavedTensorHooks hooks);
  ~WithSavedTensorHooks();
  WithSavedTensorHooks(const WithSavedTensorHooks&) = delete;
};
/// For callers without scopes (Python).
void push_saved_tensor_hooks(SavedTensorHooks hooks);
void pop_saved_tensor_hooks();
/// The hooks that a tensor saved now goes through; null where there are none.
const SavedTensorHooks* top_saved_tensor_hooks();
/// While set, entering saved tensor hooks is an error with this message.
void disable_saved_tensor_hooks(std::optional<std::string> message);
const std::optional<std::string>& saved_tensor_hooks_disabled();

}  // namespace autograd
}  // namespace umbra
