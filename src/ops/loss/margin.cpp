// Margin losses over classes: one target a sample, and several.
#include "kernels/loss.h"
#include "ops/common/kernel_type.h"
#include "ops/common/needs_data.h"
#include "ops/common/out_variant.h"
#include "ops/common/shape.h"
#include "ops/loss/reduction.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

// Scores of one sample or of several, and none of them empty.
void check_scores(const Tensor& self) {
  bool fits = self.dim() == 0;
  if (self.dim() == 1 || self.dim() == 2) {
    SymInt classes = self.sym_sizes().back();
    fits = classes.is_symbolic() || classes.value() != 0;
  }
  check(fits, "Expected non-empty vector or matrix with optional 0-dim batch size, but got: ", self.sym_sizes());
}

// ---- one target ----

void check_multi_margin(const Tensor& self, const Tensor& target, const Scalar& p, const Tensor& weight) {
  check(p.equals(1) || p.equals(2), "only p == 1 and p == 2 supported");
  check_scores(self);
  SymInt samples = self.dim() == 2 ? self.sym_sizes()[0] : SymInt(1);
  SymInt classes = self.dim() == 0 ? SymInt(1) : self.sym_sizes().back();
  check(target.dim() <= 1 && target.sym_numel() == samples,
        "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). "
        "Expected target size [",
        samples, "], but got ", target.sym_sizes(), ". Input has shape ", self.sym_sizes(), ".");
  check(!weight.defined() || (weight.dim() <= 1 && weight.sym_numel() == classes),
        "inconsistent weight size, expected ", classes, " but got ",
        weight.defined() ? to_string(weight.sym_sizes()) : "");
  bool made_for = self.dtype() == DType::Float32 || self.dtype() == DType::Float64;
  check_kernel_type(made_for || self.sym_numel() == 0, "multi_margin_loss_cpu_kernel", self);
  check(target.dtype() == DType::Int64, "expected scalar type Long but found ", kernel_name(target.dtype()));
  if (weight.defined()) check_read_as(self.dtype(), weight);
}

kernels::MarginOptions margin_options(const Scalar& p, const Scalar& margin, const Tensor& weight, int64_t reduction) {
  return {p.to_int(), margin.to_double(), weight, static_cast<kernels::Reduction>(reduction)};
}

UMBRA_OPERATOR(
    "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int "
    "reduction=Mean) -> Tensor")
    .out("multi_margin_loss.out")
    .meta([](const Tensor& self, const Tensor& target, const Scalar& p, const Scalar&, const Tensor& weight,
             int64_t reduction) {
      check_multi_margin(self, target, p, weight);
      bool each = reduction == kReduceNone && target.dim() > 0;
      return TensorSpec(each ? target.sym_sizes() : SymIntArrayRef(), self.dtype(), self.device());
    })
    .cpu([](const Tensor& out, const Tensor& self, const Tensor& target, const Scalar& p, const Scalar& margin,
            const Tensor& weight, int64_t reduction) {
      kernels::multi_margin_loss(out, self, target, margin_options(p, margin, weight, reduction));
    })
    .gradient("self", {"grad", "self", "target", "p", "margin", "weight", "reduction"},
              [](const Tensor& grad, const Tensor& self, const Tensor& target, const Scalar& p, const Scalar& margin,
                 const Tensor& weight, int64_t reduction) {
                return multi_margin_loss_backward(grad, self, target, p, margin, weight, reduction);
              });

UMBRA_OPERATOR(
    "multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, Tensor? "
    "weight=None, int reduction=Mean) -> Tensor")
    .out("multi_margin_loss_backward.grad_input", {"grad_input"})
    .meta([](const Tensor& grad, const Tensor& self, const Tensor& target, const Scalar& p, const Scalar&,
             const Tensor& weight, int64_t reduction) {
      check_multi_margin(self, target, p, weight);
      bool each = reduction == kReduceNone && target.dim() > 0;
      check(each ? grad.sym_sizes() == target.sym_sizes() : grad.sym_numel() == 1,
            "multi_margin_loss_backward: a gradient of ", grad.sym_sizes(), " does not fit targets of ",
            target.sym_sizes());
      return TensorSpec(self.sym_sizes(), self.dtype(), self.device());
    })
    .cpu([](const Tensor& out, const Tensor& grad, const Tensor& self, const Tensor& target, const Scalar& p,
            const Scalar& margin, const Tensor& weight, int64_t reduction) {
      kernels::multi_margin_loss_backward(out, grad, self, target, margin_options(p, margin, weight, reduction));
    })
    .use(NeedsData{});

// ---- several targets ----

/// Targets are looked at before types are.
void check_multilabel(const Tensor& self, const Tensor& target, int argument = 2) {
  check_scores(self);
  check(target.sym_sizes() == self.sym_sizes() ||
            (self.dim() <= 1 && target.dim() <= 1 && target.sym_numel() == self.sym_numel()),
        "inconsistent target size: ", target.sym_sizes(), " for input of size: ", self.sym_sizes());
  check(has_elements(target) || target.dtype() == DType::Int64, "expected scalar type Long but found ",
        kernel_name(target.dtype()));
}
/// Targets are looked at, as numbers of whatever type, before types are; of none nothing is asked.
void check_labels(const Tensor& self, const Tensor& target, const char* argument, const char* kernel) {
  if (target.numel() == 0) return;
  int64_t classes = self.dim() > 0 ? self.sizes().back() : 1;
  check(target.min().item().to<int64_t>() >= -1 && target.max().item().to<int64_t>() < classes, "argument #", argument,
        " 'target' is out of range");
  check_kernel_type(self.dtype() == DType::Float32 || self.dtype() == DType::Float64, kernel, self);
  check(target.dtype() == DType::Int64, "expected scalar type Long but found ", kernel_name(target.dtype()));
}

UMBRA_OPERATOR(
    "multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor is_target)")
    .out("multilabel_margin_loss_forward.output", {"output", "is_target"})
    .meta([](const Tensor& self, const Tensor& target, int64_t reduction) {
      check_multilabel(self, target);
      SymShape sizes;
      if (reduction == kReduceNone && self.dim() == 2) sizes.push_back(self.sym_sizes()[0]);
      return std::tuple(TensorSpec(sizes, self.dtype(), self.device()),
                        TensorSpec(target.sym_sizes(), self.dtype(), self.device()));
    })
    .cpu<2>([](const Tensor& out, const Tensor& is_target, const Tensor& self, const Tensor& target,
               int64_t reduction) {
      check_labels(self, target, "2", "multilabel_margin_loss_forward_out_frame");
      kernels::multilabel_margin_loss(out, is_target, self, target, static_cast<kernels::Reduction>(reduction));
    })
    .gradient("self", {"grad", "self", "target", "reduction", "is_target"},
              [](const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction,
                 const Tensor& is_target) {
                return multilabel_margin_loss_backward(grad, self, target, reduction, is_target);
              })
    .differentiable_outputs({true, false})
    .node("MultilabelMarginLossBackward0");

UMBRA_OPERATOR(
    "multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, Tensor is_target) "
    "-> Tensor")
    .out("multilabel_margin_loss_backward.grad_input", {"grad_input"})
    .meta([](const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction, const Tensor& is_target) {
      check(!has_elements(self) || is_target.sym_sizes() == target.sym_sizes(),
            "Expected tensor for argument #3 'target' to have same size as tensor for argument #5 'is_target'; but ",
            target.sym_sizes(), " does not equal ", is_target.sym_sizes(),
            " (while checking arguments for multilabel_margin_loss_backward_cpu)");
      check_multilabel(self, target);
      bool each = reduction == kReduceNone && self.dim() == 2;
      check(each ? grad.dim() == 1 && grad.sym_sizes()[0] == self.sym_sizes()[0] : grad.sym_numel() == 1,
            "multilabel_margin_loss_backward: a gradient of ", grad.sym_sizes(), " does not fit an input of ",
            self.sym_sizes());
      check(is_target.sym_sizes() == target.sym_sizes() && is_target.dtype() == self.dtype(),
            "inconsistent is_target size");
      return TensorSpec(self.sym_sizes(), self.dtype(), self.device());
    })
    .cpu([](const Tensor& out, const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction,
            const Tensor& is_target) {
      check_labels(self, target, "3", "multilabel_margin_loss_backward_out_frame");
      kernels::multilabel_margin_loss_backward(out, grad, self, target, is_target,
                                               static_cast<kernels::Reduction>(reduction));
    })
    .use(NeedsData{});

UMBRA_OPERATOR("multilabel_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor")
    .out("multilabel_margin_loss.out")
    .composite([](const Tensor& self, const Tensor& target, int64_t reduction) {
      return std::get<0>(multilabel_margin_loss_forward(self, target, reduction));
    })
    .use(out_parts([](const Tensor& self, const Tensor& target, int64_t reduction, const Tensor& out) {
      Tensor is_target = unwanted_out(self, self.dtype());
      return std::get<0>(multilabel_margin_loss_forward_out(out, is_target, self, target, reduction));
    }));

}  // namespace
}  // namespace umbra::ops
