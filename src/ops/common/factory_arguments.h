// The arguments that all factories have, as definitions spell them.
#pragma once

#include <optional>

#include "umbra/core/error.h"
#include "umbra/core/tensor.h"

namespace umbra::ops {

using OptionalDType = std::optional<DType>;
using OptionalLayout = std::optional<Layout>;
using OptionalDevice = std::optional<Device>;
using OptionalBool = std::optional<bool>;
using OptionalFormat = std::optional<MemoryFormat>;

/// Tensors are strided here; another layout is refused by name.
inline void check_strided(OptionalLayout layout) {
  check<NotImplementedError>(!layout || *layout == Layout::Strided, "tensors of layout ",
                             to_string(layout.value_or(Layout::Strided)), " are not in Umbra yet");
}

}  // namespace umbra::ops
