// What factories share: checks of sizes, metadata and options.
#pragma once

#include "ops/common/factory_arguments.h"
#include "ops/common/shape.h"
#include "ops/common/unbacked.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {

inline void check_factory_sizes(SymIntArrayRef sizes) {
  for (SymInt s : sizes) {
    if (!expect_size(s)) fail("Trying to create tensor with negative dimension ", s, ": ", to_string(sizes));
  }
}

inline TensorSpec factory_spec(SymIntArrayRef sizes, OptionalDType dtype, OptionalDevice device,
                               OptionalFormat format = MemoryFormat::Contiguous) {
  check_factory_sizes(sizes);
  MemoryFormat chosen = format.value_or(MemoryFormat::Contiguous);
  check(chosen != MemoryFormat::Preserve, "Unsupported memory format Preserve");
  return TensorSpec(sizes, strides_for(sizes, chosen), dtype.value_or(default_dtype()), device.value_or(Device()));
}

/// Contents of a tensor that were never written show as such, where deterministic algorithms are asked for.
void fill_new_memory(const Tensor& out);

inline TensorOptions options_of(OptionalDType dtype, OptionalLayout layout, OptionalDevice device, OptionalBool pin) {
  return {.dtype = dtype, .layout = layout, .device = device, .pin_memory = pin};
}

}  // namespace umbra::ops
