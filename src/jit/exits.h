// return, break and continue as ordinary control flow: what follows them moves into the branches where it runs.
#pragma once

#include "umbra/jit/ast.h"

namespace umbra::jit {

/// Names that only the compiler makes begin with `$`: `$ret` is the result, `$done` and `$brk<n>` say that the function
/// or a loop is left, `$cont<n>` that a turn is.
struct Rewritten {
  std::vector<TreePtr> body;
  bool always_returns = false;
  bool returns_value = false;  // some return has a value
};
Rewritten rewrite_exits(const Tree& def);

}  // namespace umbra::jit
