// Answers about a whole tensor that are internal to PyTorch, and the gradient of reductions that choose an element.
#include "ops/common/batching.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

// Under vmap the answer is about the whole batch, so that a program may ask for it.
UMBRA_OPERATOR("_is_all_true(Tensor self) -> Tensor")
    .all_backends([](const Tensor& self) {
      check(self.dtype() == DType::Bool, "Expected self.scalar_type() == at::kBool to be true, but got false.");
      return self.all();
    })
    .batch([](const Batched& self) { return Batched(_is_all_true(self.value), -1); });

UMBRA_OPERATOR("_is_any_true(Tensor self) -> Tensor")
    .all_backends([](const Tensor& self) {
      check(self.dtype() == DType::Bool, "Expected self.scalar_type() == at::kBool to be true, but got false.");
      return self.any();
    })
    .batch([](const Batched& self) { return Batched(_is_any_true(self.value), -1); });

}  // namespace
}  // namespace umbra::ops
