// Lifting: operands are replaced by their stand-ins here; what functions close over, when they run.
#include "umbra/capture/lift.h"

#include "capture/higher_order/layers.h"

namespace umbra {

namespace {

void lift_functions(const Operator& op, DispatchKeySet keys, Value* frame) {
  auto* mode = static_cast<LiftMode*>(active_mode(DispatchKey::Lift));
  FunctionCall call = with_values(FunctionCall(op, frame), [&](const Value& v) {
    return v.is_tensor() ? Value(mode->replace(v.tensor_ref())) : v;
  });
  frame[0] = Value(call.redispatch(keys.below(DispatchKey::Lift) | DispatchKey::Autograd));
}

const RegisterFunctionLayer kLift(DispatchKey::Lift, lift_functions);

}  // namespace
}  // namespace umbra
