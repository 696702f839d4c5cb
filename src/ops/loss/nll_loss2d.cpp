// The negative log likelihood over images: scores [batch, classes, height, width], targets [batch, height, width].
#include "dispatch/layers.h"
#include "kernels/loss.h"
#include "ops/common/kernel_type.h"
#include "ops/common/out_variant.h"
#include "ops/common/shape.h"
#include "ops/loss/nll_loss.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using LossSpecs = std::tuple<TensorSpec, TensorSpec>;

void check_images(const Tensor& self, const Tensor& target, const Tensor& weight) {
  check(target.dtype() == DType::Int64 || target.dtype() == DType::UInt8 || only_metadata_is_asked(),
        "expected target dtype to be Long or Byte, but got ", kernel_name(target.dtype()));
  if (only_metadata_is_asked() && self.dim() > 1) {  // made of other operators, which have classes in dimension 1
    if (weight.defined()) weight.sym_size(0);
    if (target.dim() == 0) wrap_dim(1, 0);  // an IndexError
  }
  check(target.dim() == 3,
        "only batches of spatial targets supported (3D tensors) but got targets of dimension: ", target.dim());
  check(self.dim() == 4,
        "only batches of spatial inputs supported (4D tensors), but got input of dimension: ", self.dim());
  SymIntArrayRef scores = self.sym_sizes(), classes = target.sym_sizes();
  check(!weight.defined() || weight.sym_numel() == scores[1],
        "weight tensor should be defined either for all or no classes");
  check(scores[0] == classes[0] && scores[2] == classes[1] && scores[3] == classes[2],
        "size mismatch (got input: ", scores, " , target: ", classes);
}

UMBRA_OPERATOR(
    "nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor "
    "output, Tensor total_weight)")
    .out("nll_loss2d_forward.output", {"output", "total_weight"})
    .meta([](const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction, SymInt) -> LossSpecs {
      check_images(self, target, weight);
      common_device({&self, &target, &weight});
      if (weight.defined()) check_read_as(self.dtype(), weight);
      TensorSpec total({}, self.dtype(), self.device());
      return {reduction == 0 ? TensorSpec(target.sym_sizes(), self.dtype(), self.device()) : total, total};
    })
    .cpu<2>([](const Tensor& out, const Tensor& total, const Tensor& self, const Tensor& target, const Tensor& weight,
               int64_t reduction, SymInt ignore) {
      check<NotImplementedError>(is_floating(self.dtype()), "\"nll_loss2d_forward_out_frame\" not implemented for '",
                                 kernel_name(self.dtype()), "'");
      kernels::nll_loss(out, total, self, target, weight, static_cast<kernels::Reduction>(reduction),
                        ignore.guard_int());
    })
    .gradient("self", {"grad", "self", "target", "weight", "reduction", "ignore_index", "total_weight"},
              nll_loss2d_backward)
    .differentiable_outputs({true, false})
    .node("NllLoss2DBackward0");

// For forward mode, by operators that have tangents: the weight of each pixel's class, put in the class's place.
Tensor backward_by_parts(const Tensor& grad, const Tensor& self, const Tensor& target, const Tensor& weight,
                         int64_t reduction, SymInt ignore, const Tensor& total) {
  Tensor ignored = target.eq(Scalar(ignore)), index = target.masked_fill(ignored, 0).to(DType::Int64);
  Tensor scale = reduction == 1 ? grad.div(total) : grad;
  if (weight.defined()) scale = scale.mul(weight.index_select(0, index.reshape({-1})).view(target.sym_sizes()));
  Tensor pixels = scale.neg().expand(target.sym_sizes()).masked_fill(ignored, 0).unsqueeze(1);
  return zeros_like(self).scatter(1, index.unsqueeze(1), pixels);
}

UMBRA_OPERATOR(
    "nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
    "ignore_index, Tensor total_weight) -> Tensor")
    .out("nll_loss2d_backward.grad_input", {"grad_input"})
    .meta([](const Tensor& grad, const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
             SymInt, const Tensor& total) {
      if (only_metadata_is_asked()) {  // what PyTorch has for the meta device is written in Python
        check<AssertionError>(self.dim() == 4, "only batches of spatial inputs supported (4D tensors), but got input ",
                              "of dimension: ", self.dim());
        check<AssertionError>(target.dim() == 3, "only batches of spatial targets supported (3D tensors) but got ",
                              "targets of dimension: ", target.dim());
      }
      check_images(self, target, weight);
      common_device({&self, &target, &weight});
      check(total.sym_numel() == 1, "expected total_weight to be a single element tensor, got: ", total.sym_sizes(),
            " (", total.sym_numel(), " elements)");
      if (reduction == 0)
        check(grad.sym_sizes() == target.sym_sizes(),
              "grad_output must have same dimension as target (3) but got dimension: ", grad.sym_sizes());
      else
        check(grad.dim() <= 1 && grad.sym_numel() == 1,
              "Expected a single element grad_output tensor, but got: ", grad.sym_sizes());
      return TensorSpec(self.sym_sizes(), self.dtype(), self.device());
    })
    .use(NllBackward{nll_loss2d})
    .tangents_through(backward_by_parts);

UMBRA_OPERATOR(
    "nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt ignore_index=-100) -> "
    "Tensor")
    .out("nll_loss2d.out")
    .composite([](const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction, SymInt ignore) {
      return std::get<0>(nll_loss2d_forward(self, target, weight, reduction, ignore));
    })
    .use(out_parts([](const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction, SymInt ignore,
                      const Tensor& out) {
      Tensor total = unwanted_out(self, self.dtype());
      return std::get<0>(nll_loss2d_forward_out(out, total, self, target, weight, reduction, ignore));
    }));

}  // namespace
}  // namespace umbra::ops
