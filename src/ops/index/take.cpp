// Elements of a tensor seen as one row: take and put.
#include "kernels/take.h"

#include "dispatch/layers.h"
#include "kernels/copy.h"
#include "ops/common/batching.h"
#include "ops/common/shape.h"
#include "umbra/core/deterministic.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

bool is_empty(const Tensor& t) { return !t.sym_numel().is_symbolic() && t.sym_numel().value() == 0; }

UMBRA_OPERATOR("take(Tensor self, Tensor index) -> Tensor")
    .out("take.out")
    .meta([](const Tensor& self, const Tensor& index) {
      check(index.dtype() == DType::Int64, "take(): Expected a long tensor for index, but got ",
            kernel_name(index.dtype()));
      check<IndexError>(!is_empty(self) || is_empty(index), "take(): tried to take from an empty tensor");
      return TensorSpec(index.sym_sizes(), self.dtype(), common_device({&self, &index}));
    })
    .cpu([](const Tensor& out, const Tensor& self, const Tensor& index) { kernels::take(out, self, index); })
    .gradient("self", {"grad", "self.sym_sizes", "index"},
              [](const Tensor& grad, SymIntArrayRef sizes, const Tensor& index) {
                return grad.new_zeros(sizes).put(index, grad, true);
              })
    .batch([](const Batched& self, const Batched& index) {
      if (!self.is_batched()) return Batched(take(self.value, batch_first(index)), 0);
      Tensor rows = batch_flat(self), places = batch_all(index), flat = batch_flat({places, 0});
      Tensor wrapped = flat.remainder(Scalar(rows.sym_size(1)));
      return Batched(rows.gather(1, wrapped).reshape(places.sym_sizes()), 0);
    });

UMBRA_OPERATOR("put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor")
    .inplace("put_")
    .generated_out("put.out")
    .meta([](const Tensor& self, const Tensor& index, const Tensor& source, bool) {
      if (only_metadata_is_asked()) {
        check<NotImplementedError>(self.is_meta(), "Cannot inplace into non-meta tensor with meta tensor argument");
        return spec_like(self);
      }
      check(index.dtype() == DType::Int64, "put_(): Expected a long tensor for index, but got ",
            kernel_name(index.dtype()));
      check(self.dtype() == source.dtype(),
            "put_(): self and source expected to have the same dtype, but got self.dtype = ", kernel_name(self.dtype()),
            " and source.dtype = ", kernel_name(source.dtype()));
      check<IndexError>(
          source.sym_numel() == index.sym_numel(),
          "put_(): Expected source and index to have the same number of elements, but got source.numel() = ",
          source.sym_numel(), ", index.numel() = ", index.sym_numel());
      check<IndexError>(!is_empty(self) || is_empty(index), "put_(): Tried to put elements into an empty tensor");
      common_device({&self, &index, &source});
      return spec_like(self);
    })
    .cpu([](const Tensor& out, const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
      if (!accumulate) alert_not_deterministic("put_");
      if (!out.is_same(self)) kernels::copy(out, self);
      kernels::put(out, index, source, accumulate);
    })
    .writes_straight()
    .gradient("self", {"grad", "index", "source", "accumulate"},
              [](const Tensor& grad, const Tensor& index, const Tensor& source, bool accumulate) {
                return accumulate ? grad : grad.put(index, zeros_like(source), false);
              })
    .gradient("source", {"grad", "index", "source.sym_sizes"},
              [](const Tensor& grad, const Tensor& index, SymIntArrayRef sizes) {
                return grad.take(index).reshape(sizes);
              })
    .linear()
    .use(BatchOneByOne{});

}  // namespace
}  // namespace umbra::ops
