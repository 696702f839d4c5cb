// The lower and upper parts of matrices.
#include "kernels/concatenate.h"
#include "ops/common/batching.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

TensorSpec triangle_spec(const char* name, const Tensor& self) {
  check(self.dim() >= 2, name, ": input tensor must have at least 2 dimensions");
  return TensorSpec(self.sym_sizes(), self.dtype(), self.device());
}

UMBRA_OPERATOR("tril(Tensor self, SymInt diagonal=0) -> Tensor")
    .inplace("tril_")
    .out("tril.out")
    .meta([](const Tensor& self, SymInt) { return triangle_spec("tril", self); })
    .cpu([](const Tensor& out, const Tensor& self, SymInt diagonal) { kernels::tril(out, self, diagonal.guard_int()); })
    .elementwise()
    .gradient("self", {"grad", "diagonal"}, [](const Tensor& grad, SymInt diagonal) { return grad.tril(diagonal); })
    .linear()
    .tags({Tag::ExactOut})
    .use(BatchInFront{});

UMBRA_OPERATOR("triu(Tensor self, SymInt diagonal=0) -> Tensor")
    .inplace("triu_")
    .out("triu.out")
    .meta([](const Tensor& self, SymInt) { return triangle_spec("triu", self); })
    .cpu([](const Tensor& out, const Tensor& self, SymInt diagonal) { kernels::triu(out, self, diagonal.guard_int()); })
    .elementwise()
    .gradient("self", {"grad", "diagonal"}, [](const Tensor& grad, SymInt diagonal) { return grad.triu(diagonal); })
    .linear()
    .tags({Tag::ExactOut})
    .use(BatchInFront{});

}  // namespace
}  // namespace umbra::ops
