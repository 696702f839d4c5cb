// Functionalisation: mutation and views taken out of a program.
//
// Under FunctionalMode a tensor is a wrapper around a value. A write makes a new value; what is a view of a base knows
// the chain of views from it, so that a write to a view is carried back into the base (by each view's inverse) and
// other views of it are made anew when they are next read. What lies below sees neither writes nor aliases.
#pragma once

#include <vector>

#include "umbra/capture/make_fx.h"
#include "umbra/dispatch/dispatcher.h"

namespace umbra {

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
  Tensor value;             // the base's contents now
  uint64_t generation = 0;  // counts writes
};

/// What a functional wrapper stands for: its layer state.
class FunctionalState final : public RefCounted {
 public:
  IntrusivePtr<FunctionalBase> base;
  std::vector<ViewStep> views;  // from the base to this tensor
  Tensor value;                 // this tensor's contents as of `generation`
  uint64_t generation = 0;
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
/// Whether the wrapper's contents were written since it was made.
bool was_written(const Tensor& wrapper);
const FunctionalState& functional_state(const Tensor& wrapper);

/// The view of `base` that the steps make.
Tensor replay_views(const Tensor& base, const std::vector<ViewStep>& steps);

/// For the transform functionalize: the same with wrappers of a level of its own, which only calls at that level reach.
namespace functional_level {
Tensor wrap(const Tensor& value, const IntrusivePtr<RefCounted>& level);
bool owns(const TensorImpl* tensor, const RefCounted* level);
/// The value now, after all writes; other tensors come back as they are.
Tensor unwrap(const Tensor& tensor, const IntrusivePtr<RefCounted>& level);
/// Carries out a call on the values, with what it writes and which views it takes kept in the wrappers.
void call(const Operator& op, Value* frame, const IntrusivePtr<RefCounted>& level);
bool was_written(const Tensor& wrapper);
}  // namespace functional_level

}  // namespace umbra
