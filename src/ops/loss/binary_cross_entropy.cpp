// Cross entropy of yes and no: of probabilities, and of their logits.
#include "kernels/loss.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/out_asks.h"
#include "ops/common/shape.h"
#include "ops/loss/reduction.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

// Weights are written into what they weigh: they may be of another type, and have no more dimensions than it.
Tensor weighted(const Tensor& loss, const Tensor& weight) {
  if (!weight.defined()) return loss;
  Tensor out = loss.mul(weight);
  if (out.dtype() == loss.dtype()) return out;
  check(!is_complex(out.dtype()), "result type ", kernel_name(out.dtype()),
        " can't be cast to the desired output type ", kernel_name(loss.dtype()));
  return out.to(loss.dtype());
}
void check_weight(const Tensor& weight, const SymShape& loss) {
  if (!weight.defined()) return;
  SymShape all = broadcast_shapes(loss, weight.sym_sizes());
  check(all == loss, "output with shape ", loss, " doesn't match the broadcast shape ", all);
}

// Logarithms are cut off at -100, so that no loss is infinite.
Tensor entropy_by_parts(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction) {
  Tensor no = self.neg().log1p().clamp_min(-100), yes = self.log().clamp_min(-100);
  return reduce_loss(weighted(target.sub(1).mul(no).sub(target.mul(yes)), weight), reduction);
}

Tensor entropy_slope(const Tensor& self, const Tensor& target) {
  return self.sub(target).div(self.rsub(1).mul(self).clamp_min(1e-12));
}
// How fast that slope changes.
Tensor entropy_bend(const Tensor& self, const Tensor& target) {
  Tensor top = self.mul(self).sub(self.mul(target).mul(2)).add(target);
  return top.div(self.add(1e-12).pow(2).mul(self.rsub(1).add(1e-12).pow(2)));
}

UMBRA_OPERATOR("binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean) -> Tensor")
    .out("binary_cross_entropy.out")
    .use(out_asks("binary_cross_entropy.out", [](const Tensor& self, const Tensor&, const Tensor&, int64_t,
                                                 const Tensor& out) { check_written_type(self, out); }))
    .all_backends([](const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction) {
      if (!self.is_fake() && !self.is_meta()) {
        SymShape shape = broadcast_shapes(self.sym_sizes(), target.sym_sizes());
        check(target.dtype() == self.dtype(), "Found dtype ", kernel_name(target.dtype()), " but expected ",
              kernel_name(self.dtype()));
        kernels::check_probabilities(self, "input");
        kernels::check_probabilities(target, "target");
        check_weight(weight, shape);
      }
      return entropy_by_parts(self, target, weight, reduction);
    })
    .gradient("self", {"grad", "self", "target", "weight", "reduction"},
              [](const Tensor& grad, const Tensor& self, const Tensor& target, const Tensor& weight,
                 int64_t reduction) { return binary_cross_entropy_backward(grad, self, target, weight, reduction); })
    .gradient("target", {"grad", "self", "target", "weight", "reduction"},
              [](const Tensor& grad, const Tensor& self, const Tensor& target, const Tensor& weight,
                 int64_t reduction) {
                Tensor slope = self.rsub(1).log().sub(self.log()).mul(grad);
                return share_of_mean(weighted(slope, weight), target, reduction);
              })
    .use(batch_through(entropy_by_parts));

UMBRA_OPERATOR(
    "binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int "
    "reduction=Mean) -> Tensor")
    .out("binary_cross_entropy_backward.grad_input", {"grad_input"})
    .use(out_asks("binary_cross_entropy_backward.grad_input",
                  [](const Tensor&, const Tensor& self, const Tensor&, const Tensor&, int64_t, const Tensor& out) {
                    check_written_type(self, out);
                  }))
    .all_backends([](const Tensor& grad, const Tensor& self, const Tensor& target, const Tensor& weight,
                     int64_t reduction) {
      SymShape shape = broadcast_shapes(broadcast_shapes(self.sym_sizes(), target.sym_sizes()), grad.sym_sizes());
      if (!self.is_fake() && !self.is_meta()) check_weight(weight, shape);
      for (const Tensor* t : {&target, &grad})
        check(!has_elements(self) || !has_elements(*t) || t->dtype() == self.dtype(), "Found dtype ",
              kernel_name(t->dtype()), " but expected ", kernel_name(self.dtype()));
      return share_of_mean(weighted(grad.mul(entropy_slope(self, target)), weight), self, reduction);
    })
    .gradient("grad_output", {"grad", "self", "target", "weight", "reduction"},
              [](const Tensor& grad, const Tensor& self, const Tensor& target, const Tensor& weight,
                 int64_t reduction) {
                return share_of_mean(weighted(grad.mul(entropy_slope(self, target)), weight), self, reduction);
              })
    .gradient("self", {"grad", "grad_output", "self", "target", "weight", "reduction"},
              [](const Tensor& grad, const Tensor& grad_output, const Tensor& self, const Tensor& target,
                 const Tensor& weight, int64_t reduction) {
                Tensor out = entropy_bend(self, target).mul(grad.mul(grad_output));
                return share_of_mean(weighted(out, weight), self, reduction);
              })
    .gradient("target", {"grad", "grad_output", "self", "target", "weight", "reduction"},
              [](const Tensor& grad, const Tensor& grad_output, const Tensor& self, const Tensor& target,
                 const Tensor& weight, int64_t reduction) {
                Tensor out = grad.mul(grad_output).neg().div(self.rsub(1).mul(self).clamp_min(1e-12));
                return share_of_mean(weighted(out, weight), target, reduction);
              });

UMBRA_OPERATOR(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int "
    "reduction=Mean) -> Tensor")
    .generated_out("binary_cross_entropy_with_logits.out")
    .all_backends([](const Tensor& self, const Tensor& target, const Tensor& weight, const Tensor& pos_weight,
                     int64_t reduction) {
      if (self.is_meta() || target.is_meta()) common_device({&self, &target});  // before anything about types
      Tensor yes = log_sigmoid(self);
      if (pos_weight.defined()) yes.mul_(pos_weight.sub(1).mul(target).add_(1));
      Tensor loss = target.rsub(1).mul_(self).sub_(yes);
      if (weight.defined()) loss.mul_(weight);
      return reduce_loss(loss, reduction);
    })
    .gradient("self", {"grad", "self", "target", "weight", "pos_weight", "reduction"},
              [](const Tensor& grad, const Tensor& self, const Tensor& target, const Tensor& weight,
                 const Tensor& pos_weight, int64_t reduction) {
                Tensor slope = self.sigmoid().sub(target);
                if (pos_weight.defined()) {
                  Tensor yes = pos_weight.mul(target);
                  slope = yes.add(1).sub(target).mul(self.sigmoid()).sub(yes);
                }
                return share_of_mean(weighted(slope.mul(grad), weight), self, reduction);
              })
    .gradient("target", {"grad", "self", "target", "weight", "pos_weight", "reduction"},
              [](const Tensor& grad, const Tensor& self, const Tensor& target, const Tensor& weight,
                 const Tensor& pos_weight, int64_t reduction) {
                Tensor slope = self.neg();
                if (pos_weight.defined()) slope = log_sigmoid(self.neg()).sub(pos_weight.mul(log_sigmoid(self)));
                return share_of_mean(weighted(slope.mul(grad), weight), target, reduction);
              })
    .use(batch_through([](const Tensor& self, const Tensor& target, const Tensor& weight, const Tensor& pos_weight,
                          int64_t reduction) {
      Tensor yes = log_sigmoid(self);
      if (pos_weight.defined()) yes = yes.mul(pos_weight.sub(1).mul(target).add(1));
      return reduce_loss(weighted(target.rsub(1).mul(self).sub(yes), weight), reduction);
    }));

}  // namespace
}  // namespace umbra::ops
