#include "umbra/ops/tensor_of.h"

#include <cstring>

#include "umbra/core/value.h"
#include "umbra/generated/functions.h"

namespace umbra::detail {

Tensor tensor_of(const void* values, size_t count, DType stored, DType wanted, IntArrayRef sizes) {
  SymShape shape(as_sym(sizes));
  if (sizes.empty()) shape.push_back(count);
  check<ValueError>(product(shape) == SymInt(count), count, " values do not make a tensor of sizes ", to_string(shape));
  // Made below all modes, then handed to them: a fake mode or a capture takes it for the constant that it is.
  Tensor made = allocate_tensor(shape, contiguous_strides(shape), stored, Device());
  if (count > 0) std::memcpy(made.raw_data(), values, count * static_cast<size_t>(item_size(stored)));
  Tensor lifted = lift_fresh(made);
  return stored == wanted ? lifted : lifted.to(wanted);
}

}  // namespace umbra::detail
