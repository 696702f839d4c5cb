// Functionalisation: mutation and views taken out of a program.
//
// Under FunctionalMode a tensor is a wrapper around a value. A write makes a new value; what is a view of a base knows
// the chain of views from it, so that a write to a view is carried back into the base (by each view's inverse) and
// other views of it are made anew when they are next read. What lies below sees neither writes nor aliases.
#pragma once

#include <vector>

#include "umbra/capture/make_fx.h"
#include "umbra/dispatch/dispatcher.h"

namespace UMBRA_API umbra {

/// One view operator on the way from a base to a view of it.
struct ViewStep {
  const Operator* op;
  std::vector<Value> arguments;  // the schema's, the first (the tensor) left empty
  int64_t output = -1;           // which element, where the operator returns a list
};

/// What all views of one base share.
class FunctionalBase final : public RefCounted {
 public:
  explicit FunctionalBase(Tensor v) : value(std::move(v)) {}
  /// Notes the wrapper's place in memory, which stays what it is however later values lie.
  void show(const Tensor& wrapper, const Tensor& first_value);

  Tensor value;             // the base's contents now
  uint64_t generation = 0;  // counts writes
  Tensor origin;            // the first value: the memory around it is what lies around the base
  TensorSpec shown;         // the wrapper's look and place
  SymInt offset = 0;
  bool conj = false, neg = false;
  uint64_t resizes = 0;         // counts changes of the base's size: views from before do not fit any more
  bool frozen = false;          // a tensor has left it (set_): what is written to it now would be lost
  bool is_sparse_part = false;  // of a tensor whose contents do not follow what is written to its parts
};

/// What a functional wrapper stands for: its layer state.
class FunctionalState final : public RefCounted {
 public:
  IntrusivePtr<FunctionalBase> base;
  std::vector<ViewStep> views;  // from the base to this tensor
  Tensor value;                 // this tensor's contents as of `generation`
  uint64_t generation = 0, resizes = 0;
  uint64_t history = 0;            // the version that autograd's history of this tensor knows of
  IntrusivePtr<RefCounted> level;  // the transform whose wrapper it is; null for FunctionalMode's
};

class FunctionalMode final : public Mode {
 public:
  FunctionalMode() : Mode(DispatchKey::Functionalize) {}
};

bool is_functional(const Tensor& tensor);
/// A wrapper around a value; a base of its own.
Tensor to_functional(const Tensor& value);
/// The value behind a wrapper now, after all writes.
Tensor from_functional(const Tensor& wrapper);
/// The same with the strides that the wrapper has.
Tensor from_functional_as_shown(const Tensor& wrapper);
/// Gives a wrapper, and what it is a view of, other contents without counting that as a write.
void set_contents(const Tensor& wrapper, const Tensor& value);
/// Whether the wrapper's contents were written since it was made.
bool was_written(const Tensor& wrapper);
const FunctionalState& functional_state(const Tensor& wrapper);

/// The view of `base` that the steps make.
Tensor replay_views(const Tensor& base, const std::vector<ViewStep>& steps);

/// Puts the new contents of a written tensor, whose wrapper looks like `shown`, into the tensor itself. It gets another
/// size where it was resized; elements that share memory have one value.
void write_contents(const Tensor& to, const TensorSpec& shown, const Tensor& contents);

/// For the transform functionalize: the same with wrappers of a level of its own, which only calls at that level reach.
namespace functional_level {
Tensor wrap(const Tensor& value, const IntrusivePtr<RefCounted>& level);
bool owns(const TensorImpl* tensor, const RefCounted* level);
/// The value now, after all writes; other tensors come back as they are.
Tensor unwrap(const Tensor& tensor, const IntrusivePtr<RefCounted>& level);
/// Carries out a call on the values, with what it writes and which views it takes kept in the wrappers.
void call(const Operator& op, Value* frame, const IntrusivePtr<RefCounted>& level);
bool was_written(const Tensor& wrapper);
/// Whether a wrapper that was a value of its own is a view since: its metadata changed in place (t_).
bool became_view(const Tensor& wrapper);
}  // namespace functional_level

}  // namespace umbra
