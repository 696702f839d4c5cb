// Autocast: while it is on, operators that gain by it compute in a short floating type, and those that would lose
// digits they need compute in float. The casts are recorded by autograd, so gradients come back in the types of the
// leaves.
//
//     AutocastScope scope(DType::BFloat16);
//     Tensor y = linear(x, w);            // bfloat16; w is cast once
//     Tensor loss = mse_loss(y, target);  // float
#pragma once

#include "umbra/core/device.h"
#include "umbra/core/dtype.h"
#include "umbra/core/export.h"

namespace UMBRA_API umbra {

class Operator;
class Value;

/// What autocast does on this thread with tensors of one type of device.
struct AutocastState {
  bool enabled = false;
  DType dtype = DType::BFloat16;
};

/// The state for a type of device. Nothing casts on devices other than the CPU, which is refused to be enabled.
AutocastState autocast_state(DeviceType device = DeviceType::CPU);
void set_autocast_enabled(DeviceType device, bool enabled);
void set_autocast_dtype(DeviceType device, DType dtype);

/// Whether leaves that require gradients are cast once for all the calls of a region.
bool is_autocast_cache_enabled();
void set_autocast_cache_enabled(bool enabled);
void clear_autocast_cache();

/// Regions inside each other share the cache. Each gives the new depth; whoever leaves the last one clears the cache.
int autocast_increment_nesting();
int autocast_decrement_nesting();

/// Autocast on the CPU, or (`enabled` false) none, for a scope.
class AutocastScope {
 public:
  explicit AutocastScope(DType dtype = DType::BFloat16, bool enabled = true, bool cache = is_autocast_cache_enabled());
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;

 private:
  AutocastState before_;
  bool cache_before_;
};

/// Told of regions that begin and end on this thread, so that a recorded program can have them. `begins` says whether
/// the region was recorded.
struct AutocastObserver {
  bool (*begins)(DeviceType device, AutocastState state, bool cache);
  void (*ends)();
};
void set_autocast_observer(AutocastObserver observer);
/// For callers that keep regions of their own (Python); AutocastScope does both by itself.
void autocast_region_begins(DeviceType device, AutocastState state, bool cache);
void autocast_region_ends();

/// For a scope in which calls are recorded for a look at them alone: nobody asks whether their regions are recorded.
class AutocastAside {
 public:
  AutocastAside();
  ~AutocastAside();
  AutocastAside(const AutocastAside&) = delete;
};

/// What autocast does with the arguments of an operator. The others are left alone, and so are those of the operators
/// that they are made of, unless they are composite.
enum class CastPolicy : uint8_t {
  Short,   // the region's type
  Full,    // float
  Widest,  // float if one argument is, else the region's type
};
/// Casts the arguments of a call before it comes to the layer, for what records calls further out. False where the
/// layer has to see the call all the same: autocast is off, or the operator is none that it casts for.
bool autocast_ahead(const Operator& op, Value* frame);
/// For an operator of the user's: its floating arguments become `dtype` while autocast is on.
void set_autocast_inputs(const Operator& op, DType dtype);

}  // namespace umbra
