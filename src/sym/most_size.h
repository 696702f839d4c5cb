// The bound of sizes of which nothing is known.
#pragma once

#include "umbra/sym/range.h"

namespace umbra::sym {

/// No size is larger; PyTorch declares it of sizes that follow from symbolic ones, and checks nothing for it.
inline constexpr Integer kMostSize = INT64_MAX - 1;

}  // namespace umbra::sym
