// That a tensor can be expanded to given sizes.
#pragma once

#include "core/type_text.h"
#include "umbra/core/tensor.h"

namespace umbra::ops {

/// That it has no more dimensions than there are sizes. `rank`: the dimensions that count, where a batch has one more.
inline void check_expand_rank(const Tensor& self, int64_t rank, SymIntArrayRef sizes) {
  if (rank <= static_cast<int64_t>(sizes.size())) return;
  fail("expand(", type_text(self), "{", self.sym_sizes(), "}, size=", to_string(sizes),
       "): the number of sizes provided (", sizes.size(),
       ") must be greater or equal to the number of dimensions in the tensor (", rank, ")");
}

/// That it is as large as `sizes`, or can be expanded to them.
inline void check_expands(const Tensor& self, SymIntArrayRef sizes) {
  auto rank = static_cast<int64_t>(sizes.size());
  check_expand_rank(self, self.dim(), sizes);
  for (int64_t d = rank - 1; d >= rank - self.dim(); --d) {
    SymInt have = self.sym_sizes()[d - rank + self.dim()];
    if (!have.same(sizes[d]) && have != 1 && have != sizes[d])
      fail("The expanded size of the tensor (", sizes[d], ") must match the existing size (", have,
           ") at non-singleton dimension ", d, ".  Target sizes: ", to_string(sizes),
           ".  Tensor sizes: ", self.sym_sizes());
  }
}

}  // namespace umbra::ops
