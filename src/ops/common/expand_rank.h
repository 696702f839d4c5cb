// That a tensor has no more dimensions than the sizes that it is expanded to.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::ops {

/// `rank`: the dimensions that count, where a batch has one more.
inline void check_expand_rank(const Tensor& self, int64_t rank, SymIntArrayRef sizes) {
  if (rank <= static_cast<int64_t>(sizes.size())) return;
  bool data = self.device().type == DeviceType::CPU && !self.is_fake();
  std::string type =
      data ? concat("torch.", kernel_name(self.dtype()), "Tensor") : concat("Meta", kernel_name(self.dtype()), "Type");
  fail("expand(", type, "{", self.sym_sizes(), "}, size=", to_string(sizes), "): the number of sizes provided (",
       sizes.size(), ") must be greater or equal to the number of dimensions in the tensor (", rank, ")");
}

}  // namespace umbra::ops
