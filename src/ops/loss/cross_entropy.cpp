// Losses over classes: nll_loss and cross_entropy_loss.
#include "dispatch/layers.h"
#include "kernels/loss.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/number_text.h"
#include "ops/common/out_variant.h"
#include "ops/common/shape.h"
#include "ops/common/sizes_only.h"
#include "ops/common/unbacked.h"
#include "ops/loss/nll_loss.h"
#include "ops/loss/reduction.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {

void NllBackward::operator()(OperatorBuilder& builder) const {
  builder
      .cpu([](const Tensor& out, const Tensor& grad, const Tensor&, const Tensor& target, const Tensor& weight,
              int64_t reduction, SymInt ignore, const Tensor& total) {
        kernels::nll_loss_backward(out, grad, target, weight, static_cast<kernels::Reduction>(reduction),
                                   ignore.guard_int(), total);
      })
      .use(SizesOnly{})
      .gradient("grad_output", {"grad", "target", "weight", "reduction", "ignore_index"}, loss);
}

namespace {

using LossSpecs = std::tuple<TensorSpec, TensorSpec>;

void check_target(const Tensor& self, const Tensor& target, const Tensor& weight) {
  if (self.is_meta() || only_metadata_is_asked()) {  // what PyTorch has for that device is written in Python
    check<AssertionError>(self.dim() > 0 && self.dim() <= 2, "input tensor should be 1D or 2D, got ", self.dim(), "D");
    check<AssertionError>(target.dim() <= 1, "0D or 1D target tensor expected, multi-target not supported, got ",
                          target.dim(), "D");
    bool single = self.dim() == 1 && target.dim() == 0;
    check<IndexError>(single || target.dim() > 0, "tuple index out of range");
    check(single || expect_equal(self.sym_sizes()[0], target.sym_sizes()[0]),
          "size mismatch (got input: ", self.sym_sizes(), ", target: ", target.sym_sizes(), ")");
  }
  check(target.dtype() == DType::Int64 || target.dtype() == DType::UInt8,
        "expected target dtype to be Long or Byte, but got ", kernel_name(target.dtype()));
  check(self.dim() > 0 && self.dim() <= 2, "input tensor should be 1D or 2D");
  check(target.dim() <= 1, "0D or 1D target tensor expected, multi-target not supported");
  if (self.dim() == 1)
    check<ValueError>(target.dim() == 0 || target.sym_sizes()[0] == 1,
                      "For 1D input, 1D target must have size 1, but got target size: ",
                      target.dim() ? target.sym_sizes()[0] : SymInt(1));
  check(self.dim() == 1 || expect_equal(self.sym_sizes()[0], target.sym_size(0)),
        "size mismatch (got input: ", self.sym_sizes(), ", target: ", target.sym_sizes(), ")");
  SymInt classes = self.sym_sizes().back();
  check(
      !weight.defined() || (weight.dim() == 1 && weight.sym_numel() == classes),
      "weight tensor should be defined either for all ", classes,
      " classes or no classes but got weight tensor of shape: ", weight.defined() ? to_string(weight.sym_sizes()) : "");
}

/// What the gradient's kernel for the meta device asserts, which is written in Python.
void check_backward_on_meta(const Tensor& self, const Tensor& target, const Tensor& weight, const Tensor& total) {
  check<AssertionError>(self.dim() <= 2, "input tensor should be 1D or 2D, got ", self.dim(), "D");
  check<AssertionError>(target.dim() <= 1, "0D or 1D target tensor expected, multi-target not supported, got ",
                        target.dim(), "D");
  if (self.dim() != 1 || target.dim() != 0) {
    check<IndexError>(self.dim() > 0 && target.dim() > 0, "tuple index out of range");
    check<AssertionError>(self.sym_size(0) == target.sym_size(0), "size mismatch (got input: ", self.sym_sizes(),
                          ", target: ", target.sym_sizes(), ")");
  }
  check<AssertionError>(total.sym_numel() == 1,
                        "expected total_weight to be a single element tensor, got: ", total.sym_sizes());
  check<AssertionError>(!weight.defined() || weight.sym_numel() == self.sym_size(-1),
                        "weight tensor should be defined either for all or no classes");
}

// Under vmap: the weight of each row's class, times what was predicted for it.
std::tuple<Tensor, Tensor> nll_loss_by_parts(const Tensor& self, const Tensor& target, const Tensor& weight,
                                             int64_t reduction, SymInt ignore) {
  check_target(self, target, weight);
  int64_t classes = self.dim() - 1;
  Tensor place = self.dim() == 1 ? target.reshape({}) : target;
  Tensor ignored = place.eq(Scalar(ignore)), index = place.masked_fill(ignored, 0).to(DType::Int64);
  Tensor picked = self.gather(classes, index.unsqueeze(classes)).squeeze(classes).neg();
  Tensor scale =
      weight.defined() ? weight.index_select(0, index.reshape({-1})).view(index.sym_sizes()) : ones_like(picked);
  scale = scale.masked_fill(ignored, 0);
  Tensor terms = picked.masked_fill(ignored, 0).mul(scale), total = scale.sum();
  if (reduction == 0) return {terms, self.dim() == 1 ? total : zeros_like(total)};
  Tensor sum = terms.sum();
  return {reduction == 1 ? sum.div(total) : sum, total};
}

UMBRA_OPERATOR(
    "nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor "
    "output, Tensor total_weight)")
    .out("nll_loss_forward.output", {"output", "total_weight"})
    .meta([](const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction, SymInt) -> LossSpecs {
      check_target(self, target, weight);
      common_device({&self, &target, &weight});
      if (weight.defined()) check_read_as(self.dtype(), weight);
      TensorSpec total({}, self.dtype(), self.device());
      if (reduction == 0 && self.dim() == 2)
        return {TensorSpec({self.sym_sizes()[0]}, self.dtype(), self.device()), total};
      return {total, total};
    })
    .cpu<2>([](const Tensor& out, const Tensor& total, const Tensor& self, const Tensor& target, const Tensor& weight,
               int64_t reduction, SymInt ignore) {
      kernels::nll_loss(out, total, self, target, weight, static_cast<kernels::Reduction>(reduction),
                        ignore.guard_int());
    })
    .gradient("self", {"grad", "self", "target", "weight", "reduction", "ignore_index", "total_weight"},
              nll_loss_backward)
    .differentiable_outputs({true, false})
    .node("NllLossBackward0")
    .use(batch_through(nll_loss_by_parts));

// For forward mode: the weight of each row's class, put in the class's place. Differs from the kernel in that the
// weights count too.
Tensor nll_loss_backward_by_parts(const Tensor& grad, const Tensor& self, const Tensor& target, const Tensor& weight,
                                  int64_t reduction, SymInt ignore, const Tensor& total) {
  int64_t classes = self.dim() - 1;
  Tensor ignored = target.eq(Scalar(ignore)), index = target.masked_fill(ignored, 0).to(DType::Int64).reshape({-1});
  Tensor scale = reduction == 1 ? grad.div(total) : grad;
  if (weight.defined()) scale = scale.mul(weight.index_select(0, index).view(target.sym_sizes()));
  Tensor rows = scale.neg().masked_fill(ignored, 0).expand(target.sym_sizes()).unsqueeze(classes);
  return zeros_like(self).scatter(classes, index.view(target.sym_sizes()).unsqueeze(classes), rows);
}

UMBRA_OPERATOR(
    "nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
    "ignore_index, Tensor total_weight) -> Tensor")
    .out("nll_loss_backward.grad_input", {"grad_input"})
    .meta([](const Tensor& grad, const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
             SymInt, const Tensor& total) {
      if (has_elements(self) && has_elements(target)) {
        if (self.dim() == 2) target.sym_size(0);  // a number is an IndexError
        check(self.dim() != 1 || target.dim() != 1 || target.sym_size(0) == 1,
              "size mismatch (got input: ", self.sym_sizes(), ", target: ", target.sym_sizes(), ")");
      }
      if (only_metadata_is_asked()) check_backward_on_meta(self, target, weight, total);
      check_target(self, target, weight);
      common_device({&self, &target, &weight});
      check(total.sym_numel() == 1, "expected total_weight to be a single element tensor, got: ", total.sym_sizes());
      bool by_row = reduction == 0 && self.dim() == 2;
      bool fits = by_row ? grad.dim() == 1 && grad.sym_sizes()[0] == self.sym_sizes()[0]
                         : grad.dim() <= 1 && grad.sym_numel() == 1;
      std::string wanted =
          by_row ? concat("Expected a tensor of dimension 1 and tensor.size[0] == ", self.sym_sizes()[0], " but got: ")
                 : "Expected a single element grad_output tensor, but got: ";
      check<AssertionError>(fits || !only_metadata_is_asked(), wanted, grad.sym_sizes());
      check(fits, wanted, grad.sym_sizes());
      return TensorSpec(self.sym_sizes(), self.dtype(), self.device());
    })
    .use(NllBackward{nll_loss})
    .tangents_through(nll_loss_backward_by_parts);

UMBRA_OPERATOR(
    "nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt ignore_index=-100) -> Tensor")
    .out("nll_loss.out")
    .composite([](const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction, SymInt ignore) {
      return std::get<0>(nll_loss_forward(self, target, weight, reduction, ignore));
    })
    .use(out_parts([](const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction, SymInt ignore,
                      const Tensor& out) {
      Tensor total = unwanted_out(self, self.dtype());
      return std::get<0>(nll_loss_forward_out(out, total, self, target, weight, reduction, ignore));
    }));

// Any number of spatial dimensions counts as an image.
UMBRA_OPERATOR(
    "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt ignore_index=-100) -> "
    "Tensor")
    .composite([](const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction, SymInt ignore) {
      check<ValueError>(self.dim() >= 1, "Expected 1 or more dimensions (got ", self.dim(), ")");
      SymInt targets = target.dim() ? target.sym_sizes()[0] : SymInt(0);
      check<ValueError>(self.dim() == 1 || expect_equal(self.sym_sizes()[0], targets), "Expected input batch_size (",
                        self.sym_sizes()[0], ") to match target batch_size (", targets, ").");
      if (self.dim() <= 2) return nll_loss(self, target, weight, reduction, ignore);
      SymShape wanted(self.sym_sizes());
      wanted.erase(1);
      if (!(SymIntArrayRef(wanted) == target.sym_sizes()))
        fail("Expected target size ", to_string(SymIntArrayRef(wanted)), ", got ", target.sym_sizes());
      if (self.dim() == 4) return nll_loss2d(self, target, weight, reduction, ignore);
      SymInt samples = self.sym_sizes()[0], classes = self.sym_sizes()[1];
      SymInt pixels = self.sym_numel() == 0 ? SymInt(0) : SymInt(-1),
             rows = self.sym_numel() == 0 ? SymInt(0) : SymInt(1);
      Tensor image = self.contiguous().view({samples, classes, rows, pixels}),
             labels = target.contiguous().view({samples, rows, pixels});
      Tensor loss = nll_loss2d(image, labels, weight, reduction, ignore);
      return reduction == 0 ? loss.view(target.sym_sizes()) : loss;
    });

void check_smoothing(double smoothing) {
  check(smoothing <= 1, "label_smoothing must be between 0.0 and 1.0. Got: ", number_text(smoothing));
}
void check_reduction(int64_t reduction) {
  check(reduction >= kReduceNone && reduction <= kReduceSum,
        "Invalid reduction type encountered in cross_entropy: ", reduction);
}

// Targets that are probabilities, one for each class.
Tensor soft_cross_entropy(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                          double smoothing) {
  int64_t dim = self.dim() == 1 ? 0 : 1;
  SymInt classes = self.sym_size(dim);
  check(!weight.defined() || (weight.dim() == 1 && weight.sym_numel() == classes),
        "cross_entropy: weight tensor should be defined either for all ", classes,
        " classes or no classes but got weight tensor of shape: ",
        weight.defined() ? weight.sym_sizes() : SymIntArrayRef());
  Tensor probabilities = target;
  if (smoothing > 0) check_smoothing(smoothing);
  check_reduction(reduction);
  if (smoothing > 0)
    probabilities = target.mul(1 - smoothing).add(smoothing / static_cast<double>(classes.guard_int()));
  SymShape shape(self.dim(), 1);
  shape[dim] = classes;
  Tensor scores = log_softmax(self, dim), importance = weight.defined() ? weight.view(shape) : weight;
  scores = scores.mul(probabilities);
  if (importance.defined()) scores = scores.mul(importance);
  if (reduction == 1) {
    bool none = !classes.is_symbolic() && classes.value() == 0;  // the mean of nothing is nan
    return scores.sum().neg().div(Scalar(none ? SymInt(0) : self.sym_numel() / classes));
  }
  return reduction == 2 ? scores.sum().neg() : scores.sum(IntArrayRef{dim}).neg();
}

UMBRA_OPERATOR(
    "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt ignore_index=-100, "
    "float label_smoothing=0.0) -> Tensor")
    .composite([](const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction, SymInt ignore,
                  double smoothing) {
      if (self.sym_sizes() == target.sym_sizes()) {
        check(target.is_floating_point(), "Expected floating point type for target with class probabilities, got ",
              kernel_name(target.dtype()));
        check(ignore.is_symbolic() || ignore.value() < 0, "ignore_index is not supported for floating point target");
        return soft_cross_entropy(self, target, weight, reduction, smoothing);
      }
      bool smooth = smoothing > 0;  // what is less is none
      if (smooth) check_smoothing(smoothing);
      int64_t dim = self.dim() == 1 ? 0 : 1;
      Tensor scores = log_softmax(self, dim);
      Tensor loss = nll_loss_nd(scores, target, weight, reduction, ignore);
      if (!smooth) return loss;
      // The rest of the weight is spread over all classes.
      SymInt classes = self.sym_sizes()[dim];
      SymShape shape(self.dim(), 1);
      shape[dim] = classes;
      Tensor spread = (weight.defined() ? scores.mul(weight.view(shape)) : scores).sum(IntArrayRef{dim}).neg();
      Tensor ignored = target.eq(Scalar(ignore));
      spread = spread.masked_fill(ignored, 0);
      if (reduction == 1) {
        Tensor counted = weight.defined() ? weight.index_select(0, target.masked_fill(ignored, 0).reshape({-1}))
                                                .masked_fill(ignored.reshape({-1}), 0)
                                                .sum()
                                          : ignored.bitwise_not().sum();
        spread = spread.sum().div(counted);
      } else {
        check_reduction(reduction);
        spread = reduce_loss(spread, reduction);
      }
      return loss.mul(1 - smoothing).add(spread.mul(smoothing / static_cast<double>(classes.guard_int())));
    });

}  // namespace
}  // namespace umbra::ops
