// Sequences that fill a cube evenly.
#include "kernels/sobol.h"
#include "umbra/dispatch/define.h"

namespace umbra::ops {
namespace {

UMBRA_OPERATOR("_sobol_engine_initialize_state_(Tensor(a!) self, int dimension) -> Tensor(a!)")
    .meta([](const Tensor& self, int64_t dimension) {
      check(self.dtype() == DType::Int64, "sobolstate needs to be of type Long");
      check<ValueError>(dimension >= 1 && dimension <= kernels::kSobolDimensions, "dimension must be between 1 and ",
                        kernels::kSobolDimensions, ", but got ", dimension);
      bool fits = self.dim() == 2 && self.sym_size(0) == dimension && self.sym_size(1) >= kernels::kSobolBits;
      check<ValueError>(fits, "sobolstate must have shape [", dimension, ", at least ", kernels::kSobolBits,
                        "], but got ", to_string(self.sym_sizes()));
      return TensorSpec(self.sym_sizes(), self.dtype(), self.device());
    })
    .mutate([](const Tensor& self, int64_t) { kernels::sobol_directions(self); })
    .not_differentiable();

}  // namespace
}  // namespace umbra::ops
