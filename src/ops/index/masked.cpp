// Elements where a mask holds: read, and written in order.
#include "dispatch/data_dependent.h"
#include "kernels/copy.h"
#include "kernels/masks.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/needs_data.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

UMBRA_OPERATOR("masked_select(Tensor self, Tensor mask) -> Tensor")
    .out("masked_select.out")
    .real([](const Tensor& self, const Tensor& mask) {
      check(mask.dtype() == DType::Bool, "masked_select: expected BoolTensor for mask");
      check_kernel_type(!is_wide_unsigned(self.dtype()), "masked_select", self);
      Tensor wide = mask.expand(broadcast_shapes(mask.sym_sizes(), self.sym_sizes()));
      Tensor out = empty({kernels::count_nonzero(wide)}, {.dtype = self.dtype()});
      kernels::masked_select(out, self, mask);
      return out;
    })
    .fake([](const Tensor& self, const Tensor& mask) {
      SymInt most = product(broadcast_shapes(self.sym_sizes(), mask.sym_sizes()));
      return empty({unknown_size("aten::masked_select", most, MostIs::ItsLargest)},
                   {.dtype = self.dtype(), .device = self.device()});
    })
    .gradient("self", {"grad", "self", "mask"},
              [](const Tensor& grad, const Tensor& self, const Tensor& mask) {
                return masked_select_backward(grad, self, mask);
              })
    .tags({Tag::DynamicOutputShape})
    .use(NeedsData{});

UMBRA_OPERATOR("masked_select_backward(Tensor grad, Tensor input, Tensor mask) -> Tensor")
    .composite([](const Tensor& grad, const Tensor& input, const Tensor& mask) {
      SymShape shape = broadcast_shapes(input.sym_sizes(), mask.sym_sizes());
      Tensor out = zeros_like(input.expand(shape), {.dtype = grad.dtype()}, MemoryFormat::Contiguous);
      return ops::sum_to_size(out.masked_scatter(mask, grad), input.sym_sizes());
    });

UMBRA_OPERATOR("masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor")
    .generated_out("masked_scatter.out")
    .inplace("masked_scatter_")
    .meta([](const Tensor& self, const Tensor& mask, const Tensor& source) {
      check(self.dtype() == source.dtype(), "masked_scatter: expected self and source to have same dtypes but got",
            kernel_name(self.dtype()), " and ", kernel_name(source.dtype()));
      check(mask.dtype() == DType::Bool, "masked_scatter_ only supports boolean masks, but got mask with dtype ",
            kernel_name(mask.dtype()));
      SymShape shape = broadcast_shapes(self.sym_sizes(), mask.sym_sizes());
      return TensorSpec(shape, self.dtype(), common_device({&self, &mask, &source}));
    })
    .cpu([](const Tensor& out, const Tensor& self, const Tensor& mask, const Tensor& source) {
      if (!out.is_same(self)) kernels::copy(out, self);
      kernels::masked_scatter(out, mask, source);
    })
    .elementwise()
    .gradient("self", {"grad", "mask"},
              [](const Tensor& grad, const Tensor& mask) { return grad.masked_fill(mask, 0); })
    .gradient("source", {"grad", "mask", "source.sym_sizes"},
              [](const Tensor& grad, const Tensor& mask, SymIntArrayRef sizes) {
                return masked_scatter_backward(grad, mask, sizes);
              })
    .tags({Tag::Core})
    .use(BatchOneByOne{});

// What was picked, in front of zeros.
UMBRA_OPERATOR("masked_scatter_backward(Tensor grad_output, Tensor mask, SymInt[] sizes) -> Tensor")
    .meta([](const Tensor& grad, const Tensor& mask, SymIntArrayRef sizes) {
      check(mask.dtype() == DType::Bool, "masked_select: expected BoolTensor for mask");
      return TensorSpec(sizes, grad.dtype(), grad.device());
    })
    .cpu([](const Tensor& out, const Tensor& grad, const Tensor& mask, SymIntArrayRef) {
      Tensor wide = mask.expand(grad.sym_sizes());
      Tensor picked = kernels::scratch(std::vector<int64_t>{kernels::count_nonzero(wide)}, grad.dtype());
      kernels::masked_select(picked, grad, mask);
      int64_t kept = std::min(picked.numel(), out.numel());
      auto head = [kept](const Tensor& t) {
        return alias_tensor(t, {SymInt(kept)}, {SymInt(1)}, t.sym_storage_offset());
      };
      kernels::fill(out, 0);
      if (kept > 0) kernels::copy(head(out), head(picked));
    })
    .gradient("grad_output", {"grad", "grad_output", "mask"},
              [](const Tensor& grad, const Tensor& grad_output, const Tensor& mask) {
                return zeros_like(grad_output, {.dtype = grad.dtype()}).masked_scatter(mask, grad);
              })
    .linear()
    .use(BatchOneByOne{});

}  // namespace
}  // namespace umbra::ops
