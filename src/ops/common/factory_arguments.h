// The arguments that all factories have, as definitions spell them.
#pragma once

#include <optional>

#include "umbra/core/tensor.h"

namespace umbra::ops {

using OptionalDType = std::optional<DType>;
using OptionalLayout = std::optional<Layout>;
using OptionalDevice = std::optional<Device>;
using OptionalBool = std::optional<bool>;
using OptionalFormat = std::optional<MemoryFormat>;

}  // namespace umbra::ops
