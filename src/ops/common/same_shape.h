// Shapes that have to be equal, where some of their sizes may be told by the run alone.
#pragma once

#include "ops/common/unbacked.h"
#include "umbra/core/array_ref.h"

namespace umbra::ops {

/// Whether two shapes are equal; what only the run can tell is checked then, and taken for granted from here on.
inline bool expect_same_shape(SymIntArrayRef a, SymIntArrayRef b) {
  if (a.size() != b.size()) return false;
  for (size_t d = 0; d < a.size(); ++d)
    if (!expect_equal(a[d], b[d])) return false;
  return true;
}

}  // namespace umbra::ops
