// Answers about a whole tensor that are internal to PyTorch, and the gradient of reductions that choose an element.
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

UMBRA_OPERATOR("_is_all_true(Tensor self) -> Tensor").all_backends([](const Tensor& self) {
  check(self.dtype() == DType::Bool, "Expected self.scalar_type() == at::kBool to be true, but got false.");
  return self.all();
});
UMBRA_OPERATOR("_is_any_true(Tensor self) -> Tensor").all_backends([](const Tensor& self) {
  check(self.dtype() == DType::Bool, "Expected self.scalar_type() == at::kBool to be true, but got false.");
  return self.any();
});
// Tensors of zeros without memory are not built.
UMBRA_OPERATOR("_is_zerotensor(Tensor self) -> bool").composite([](const Tensor&) { return false; });

UMBRA_OPERATOR(
    "value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, SymInt[] sizes, bool keepdim) -> Tensor")
    .composite([](const Tensor& grad, int64_t dim, const Tensor& indices, SymIntArrayRef sizes, bool keepdim) {
      bool restore = !keepdim && !sizes.empty();
      Tensor values = restore ? grad.unsqueeze(dim) : grad, places = restore ? indices.unsqueeze(dim) : indices;
      return values.new_zeros(sizes).scatter(dim, places, values);
    });

}  // namespace
}  // namespace umbra::ops
