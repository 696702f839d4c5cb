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

}  // namespace
}  // namespace umbra::ops
