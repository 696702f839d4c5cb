// Parts of programs that run with another grad mode or under autocast, as graphs call them.
#include <memory>
#include <optional>
#include <vector>

#include "core/per_thread.h"
#include "umbra/autograd/autocast.h"
#include "umbra/autograd/grad_mode.h"
#include "umbra/capture/tracer.h"
#include "umbra/graph/graph_module.h"

namespace umbra {

namespace {

Value call_part(ArrayRef<Value> arguments, size_t part) {
  return to_callable(arguments[part]).call(std::vector<Value>(arguments.begin() + part + 1, arguments.end()));
}

/// A part of a program that ran with gradients switched on or off: (enabled, part, operands...).
Value evaluate_with_grad_mode(ArrayRef<Value> arguments) {
  check<TypeError>(arguments.size() >= 2, "wrap_with_set_grad_enabled takes a bool, a graph and its operands");
  SetGradEnabled mode(arguments[0].to_bool());
  return call_part(arguments, 1);
}
[[maybe_unused]] const fx::Function& kWithGradMode =
    fx::define_function({.name = "torch.ops.higher_order.wrap_with_set_grad_enabled",
                         .format = {},
                         .evaluate = evaluate_with_grad_mode,
                         .has_side_effects = true});

/// A part that ran under autocast, or without it: (device_type, dtype, enabled, cache_enabled, part, operands...).
/// Nothing casts on devices other than the CPU.
Value evaluate_with_autocast(ArrayRef<Value> arguments) {
  check<TypeError>(arguments.size() >= 5,
                   "wrap_with_autocast takes a type of device, a dtype, two bools, a graph and its operands");
  std::optional<AutocastScope> scope;
  if (Device(arguments[0].to_string()).type == DeviceType::CPU)
    scope.emplace(arguments[1].is_none() ? autocast_state().dtype : arguments[1].to_dtype(), arguments[2].to_bool(),
                  arguments[3].is_none() ? is_autocast_cache_enabled() : arguments[3].to_bool());
  return call_part(arguments, 4);
}
[[maybe_unused]] const fx::Function& kWithAutocast =
    fx::define_function({.name = "torch.ops.higher_order.wrap_with_autocast",
                         .format = {},
                         .evaluate = evaluate_with_autocast,
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

// ---- autocast between the calls of a graph ----

/// The regions that a graph which runs has entered.
std::vector<std::unique_ptr<AutocastScope>>& entered() {
  static PerThread<std::vector<std::unique_ptr<AutocastScope>>> regions;
  return *regions;
}

/// (device_type, dtype, enabled, cache_enabled). Nothing casts on devices other than the CPU.
Value evaluate_enter_autocast(ArrayRef<Value> arguments) {
  check<TypeError>(arguments.size() == 4, "_enter_autocast takes a type of device, a dtype and two bools");
  bool casts = Device(arguments[0].to_string()).type == DeviceType::CPU;
  entered().push_back(
      casts ? std::make_unique<AutocastScope>(arguments[1].to_dtype(), arguments[2].to_bool(), arguments[3].to_bool())
            : nullptr);
  return {};
}
[[maybe_unused]] const fx::Function& kEnterAutocast =
    fx::define_function({.name = "torch.amp.autocast_mode._enter_autocast",
                         .format = {},
                         .evaluate = evaluate_enter_autocast,
                         .has_side_effects = true});

Value evaluate_exit_autocast(ArrayRef<Value>) {
  check(!entered().empty(), "_exit_autocast without _enter_autocast");
  entered().pop_back();
  return {};
}
[[maybe_unused]] const fx::Function& kExitAutocast =
    fx::define_function({.name = "torch.amp.autocast_mode._exit_autocast",
                         .format = {},
                         .evaluate = evaluate_exit_autocast,
                         .has_side_effects = true});

/// The regions that are being recorded: who records them, and the call that began each.
struct RecordedRegion {
  IntrusivePtr<Tracer> tracer;
  fx::Node* entry;
};
std::vector<RecordedRegion>& recorded() {
  static PerThread<std::vector<RecordedRegion>> regions;
  return *regions;
}

bool record_autocast(DeviceType device, AutocastState state, bool cache) {
  Tracer* tracer = active_tracer(DispatchKey::PreProxy);
  if (!tracer) return false;
  fx::Node* entry =
      tracer->record_call(kEnterAutocast, {Value(concat(device)), Value(state.dtype), state.enabled, cache}, Value());
  recorded().push_back({IntrusivePtr<Tracer>(tracer), entry});
  return true;
}

void record_autocast_end() {
  RecordedRegion region = std::move(recorded().back());
  recorded().pop_back();
  region.tracer->record_call(kExitAutocast, {region.entry}, Value());
}

[[maybe_unused]] const bool kObserved = (set_autocast_observer({record_autocast, record_autocast_end}), true);

}  // namespace

}  // namespace umbra
