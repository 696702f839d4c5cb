// Levels that differentiate. A tensor of such a level wraps its value, shares its memory, and has a tape of its own
// (history, tangent): autograd records on the wrapper, and the layer below it goes on with the value, one level out.
#pragma once

#include <functional>

#include "umbra/transform/level.h"

namespace UMBRA_API umbra {
namespace transform {

/// What a tracked wrapper keeps.
class TrackedState final : public Wrapped {
 public:
  TrackedState(Tensor value, IntrusivePtr<Level> level, bool captured)
      : Wrapped(std::move(value), std::move(level)), captured(captured) {}
  bool captured;       // made of a tensor from outside, or a view of such a one: not to be written
  bool alias = false;  // by aten::alias, or a view of that: it may get contents without a derivative
};

/// The level of grad, vjp and jvp.
class TrackedLevel final : public Level {
 public:
  enum class Kind : uint8_t { Reverse, Forward };
  explicit TrackedLevel(Kind kind) : kind_(kind) {}

  void call(const Operator& op, Value* frame) override;
  bool call_functions(const Operator& op, Value* frame) override;
  Tensor unwrap(const Tensor& tensor) const override;
  /// A new wrapper without history.
  Tensor wrap(const Tensor& value, bool captured = false) const;
  /// Whether the tensor is a wrapper of this level.
  bool owns(const TensorImpl* tensor) const;
  /// Whether the level follows derivatives through a wrapper of its own.
  bool differentiates(const TensorImpl* wrapper) const;
  Kind kind() const { return kind_; }
  /// Where this level's tangents are kept.
  int dual_level() const { return dual_level_; }

  /// The thread outside of the call that this level works on.
  struct Outside {
    DispatchState state;
    bool grad;
    int visible_level;
  };
  const Outside& outside() const { return outside_; }
  /// Whether the function that is transformed has entered inference mode: nothing is tracked then.
  bool in_inference() const;
  /// As a call would find it now.
  Outside outside_now() const;

 private:
  void on_begin() override;
  void on_end() override;
  Kind kind_;
  bool grad_before_ = true;  // whether gradients were on where the transform was called
  int dual_level_ = 0;       // counted from 1; 0: none
  int visible_before_ = 0;
  bool inference_before_ = false;
  Outside outside_{};
};

/// Calls `function` with the innermost level off the stack and the thread as it is outside of it.
void run_outside(const TrackedLevel::Outside& outside, const std::function<void()>& function);

bool is_tracked(const TensorImpl* tensor);
/// What a wrapper of vmap's or of a gradient's level stands for; undefined for any other tensor.
Tensor value_behind(const Tensor& tensor);
/// Whether the tensor is a wrapper whose transform has come to its end.
bool is_ended(const TensorImpl* tensor);
/// The value behind such wrappers, however many; other tensors come back as they are.
Tensor value_if_ended(const Tensor& tensor);

}  // namespace transform
}  // namespace umbra
