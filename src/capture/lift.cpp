#include "umbra/capture/lift.h"

#include "capture/functional_wrappers.h"
#include "umbra/autograd/function.h"
#include "umbra/capture/functionalize.h"

namespace umbra {

bool LiftMode::is_outside(const Tensor& tensor) const {
  if (tensor.impl()->is_wrapped_number()) return false;
  if (outside_ == Outside::Any) return true;
  if (outside_ == Outside::HasData) return tensor.storage()->has_data();
  // A user's tensor class and a wrapper of a transform are taken apart elsewhere; what is inside is met then.
  bool holds_others = tensor.keys().has(DispatchKey::Subclass) || tensor.keys().has(DispatchKey::Level);
  return !is_functional(tensor) && !holds_others;
}

Tensor LiftMode::replace(const Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  auto found = stand_ins_.find(tensor.impl());
  if (found != stand_ins_.end()) return found->second.stand_in;
  if (!is_outside(tensor)) return tensor;
  functional::OfLevel none(nullptr);  // of the transform functionalize, whose calls come here too
  Tensor stand_in = make_ ? make_(tensor) : Tensor();
  if (!stand_in.defined()) stand_in = tensor;
  set(tensor, stand_in);
  return stand_in;
}

namespace {

void lift_layer(const Operator& op, DispatchKeySet, Value* frame) {
  auto* mode = static_cast<LiftMode*>(active_mode(DispatchKey::Lift));
  check<AssertionError>(mode, "a call reached the lifting layer outside its mode");
  bool literal = op.has_tag(Tag::LiftsData);  // a tensor that the program itself makes from numbers
  for (size_t i = 0; i < op.argument_count() && !literal; ++i) {
    if (frame[i].is_tensor()) {
      Tensor t = mode->replace(frame[i].tensor_ref());
      if (!t.is_same(frame[i].tensor_ref())) frame[i] = Value(std::move(t));
    } else if (frame[i].is_tensor_list()) {
      std::vector<Tensor> list = frame[i].tensor_list().vec();
      for (Tensor& t : list) t = mode->replace(t);
      frame[i] = Value(std::move(list));
    }
  }
  ExcludeKeys off(DispatchKey::Lift);
  op.call(frame);
}

const RegisterLayer kLift(DispatchKey::Lift, lift_layer);

Tensor stand_in_of(const Tensor& tensor) {
  auto* mode = dispatch_state().exclude.has(DispatchKey::Lift) ? nullptr : active_mode(DispatchKey::Lift);
  return mode ? static_cast<LiftMode*>(mode)->replace(tensor) : tensor;
}

[[maybe_unused]] const bool kSeenByFunctions = (autograd::set_stand_in(stand_in_of), true);

}  // namespace
}  // namespace umbra
