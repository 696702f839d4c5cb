// Switches of the grad mode, as graphs call them.
#include "umbra/autograd/grad_mode.h"
#include "umbra/graph/graph_module.h"

namespace umbra {

namespace {

/// A part of a program that ran with gradients switched on or off: (enabled, part, operands...).
Value evaluate_with_grad_mode(ArrayRef<Value> arguments) {
  check<TypeError>(arguments.size() >= 2, "wrap_with_set_grad_enabled takes a bool, a graph and its operands");
  SetGradEnabled mode(arguments[0].to_bool());
  return to_callable(arguments[1]).call(std::vector<Value>(arguments.begin() + 2, arguments.end()));
}
[[maybe_unused]] const fx::Function& kWithGradMode =
    fx::define_function({.name = "torch.ops.higher_order.wrap_with_set_grad_enabled",
                         .format = {},
                         .evaluate = evaluate_with_grad_mode,
                         .has_side_effects = true});

/// A switch of the grad mode between the calls of a graph.
Value evaluate_set_grad_enabled(ArrayRef<Value> arguments) {
  check<TypeError>(arguments.size() == 1, "_set_grad_enabled takes a bool");
  set_grad_enabled(arguments[0].to_bool());
  return {};
}
[[maybe_unused]] const fx::Function& kSetGradEnabled = fx::define_function({.name = "torch._C._set_grad_enabled",
                                                                            .format = {},
                                                                            .evaluate = evaluate_set_grad_enabled,
                                                                            .has_side_effects = true});

}  // namespace

}  // namespace umbra
