// Losses that compare two tensors element by element: squared, absolute, huber, smooth, soft margin.
#include <cmath>
#include <limits>

#include "kernels/copy.h"
#include "kernels/functors/losses.h"
#include "kernels/loss.h"
#include "kernels/run_functor.h"
#include "ops/common/kernel_type.h"
#include "ops/common/may_read.h"
#include "ops/common/out_asks.h"
#include "ops/common/promotion.h"
#include "ops/common/shape.h"
#include "ops/loss/reduction.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

/// The difference in the common type; kernels have no use for bools, and some none for integers.
Tensor difference_of(const char* kernel, const Tensor& self, const Tensor& target, bool integers) {
  // Bools have no difference of their own, but take part in one with other types.
  broadcast_shapes(self.sym_sizes(), target.sym_sizes());
  DType common = ResultType().add(self).add(target).get();
  bool fits = is_floating(common) || (integers && !is_complex(common) && common != DType::Bool);
  bool no_data = self.is_fake() || self.is_meta();
  check<NotImplementedError>(fits || (no_data && common != DType::Bool), "\"", kernel, "\" not implemented for '",
                             kernel_name(common), "'");
  return self.to(common).sub(target.to(common));
}

/// The gradient is computed in the common type of all, and has to fit the input's.
void check_gradient_type(const Tensor& grad, const Tensor& self, const Tensor& target) {
  broadcast_shapes(broadcast_shapes(self.sym_sizes(), target.sym_sizes()), grad.sym_sizes());
  DType common = ResultType().add(self).add(target).add(grad).get();
  check(can_cast(common, self.dtype()), "result type ", kernel_name(common),
        " can't be cast to the desired output type ", kernel_name(self.dtype()));
}

/// Whether a loss of these may be summed up as it is computed, without a tensor of its terms.
bool in_one_pass(const Tensor& self, const Tensor& target, int64_t reduction) {
  bool same = self.dtype() == target.dtype() && self.sym_sizes() == target.sym_sizes();
  bool full_width = self.dtype() == DType::Float32 || self.dtype() == DType::Float64;
  return reduction != kReduceNone && full_width && may_read(self) && may_read(target) && same && self.is_contiguous() &&
         target.is_contiguous();
}

/// Whether one kernel makes all of a result from these: plain values of one full type, in order. Sizes may
/// differ.
bool by_one_kernel(std::initializer_list<const Tensor*> inputs) {
  DType dtype = (*inputs.begin())->dtype();
  bool fits = dtype == DType::Float32 || dtype == DType::Float64;
  for (const Tensor* t : inputs)
    fits = fits && t->dtype() == dtype && may_read(*t) && t->is_contiguous() && !t->is_neg();
  return fits;
}

/// The gradient times self - target, which goes no further than `limit`, times `scale`.
Tensor clipped_gradient(const Tensor& grad, const Tensor& self, const Tensor& target, double limit, double scale) {
  SymShape sizes = broadcast_shapes(broadcast_shapes(self.sym_sizes(), target.sym_sizes()), grad.sym_sizes());
  Tensor out = kernels::scratch(guard_ints(sizes), self.dtype());
  functors::ClippedSlope slope;
  slope.limit = limit;
  slope.scale = scale;
  kernels::pointwise(slope, out, {&grad, &self, &target});
  return out;
}
/// What a mean divides by.
double count_of(const Tensor& self, int64_t reduction) {
  return reduction == kReduceMean ? static_cast<double>(self.numel()) : 1;
}

/// A gradient is written in the output's type, without a step through the input's.
Tensor in_common_type(const Tensor& grad, const Tensor& self, const Tensor& target, const Tensor& out) {
  broadcast_shapes(broadcast_shapes(self.sym_sizes(), target.sym_sizes()), grad.sym_sizes());
  DType common = ResultType().add(self).add(target).add(grad).get();
  check(can_cast(common, out.dtype()), "result type ", kernel_name(common),
        " can't be cast to the desired output type ", kernel_name(out.dtype()));
  return self.to(common);
}

/// One of three; other losses take any other number for none.
void check_known(int64_t reduction) {
  check(reduction >= 0 && reduction <= kReduceSum, "reduction == Reduction::Mean || reduction == Reduction::Sum ",
        "INTERNAL ASSERT FAILED: there is no reduction ", reduction);
}

/// What the terms are written to has to fit their type, before anything is said about the type itself.
void check_terms_fit(const Tensor& self, const Tensor& target, const Tensor& out) {
  broadcast_shapes(self.sym_sizes(), target.sym_sizes());
  DType common = ResultType().add(self).add(target).get();
  check(can_cast(common, out.dtype()), "result type ", kernel_name(common),
        " can't be cast to the desired output type ", kernel_name(out.dtype()));
}

UMBRA_OPERATOR("mse_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor")
    .out("mse_loss.out")
    .use(out_asks("mse_loss.out", [](const Tensor& self, const Tensor& target, int64_t,
                                     const Tensor& out) { check_terms_fit(self, target, out); }))
    .all_backends([](const Tensor& self, const Tensor& target, int64_t reduction) {
      check_known(reduction);
      if (in_one_pass(self, target, reduction)) {
        Tensor out = kernels::scratch({}, self.dtype());
        kernels::squared_distance(out, self, target, reduction == kReduceMean);
        return out;
      }
      Tensor difference = difference_of("mse_cpu", self, target, false);
      return reduce_loss(difference.mul(difference), reduction);
    })
    .gradient("self", {"grad", "self", "target", "reduction"},
              [](const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction) {
                return mse_loss_backward(grad, self, target, reduction);
              })
    .gradient("target", {"grad", "self", "target", "reduction"},
              [](const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction) {
                return mse_loss_backward(grad, target, self, reduction);
              });

UMBRA_OPERATOR("mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor")
    .out("mse_loss_backward.grad_input", {"grad_input"})
    .use(out_reads("mse_loss_backward.grad_input", "self",
                   [](const Tensor& grad, const Tensor& self, const Tensor& target, int64_t, const Tensor& out) {
                     return in_common_type(grad, self, target, out);
                   }))
    .all_backends([](const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction) {
      check_gradient_type(grad, self, target);
      if (by_one_kernel({&grad, &self, &target}))
        return clipped_gradient(grad, self, target, std::numeric_limits<double>::infinity(),
                                2 / count_of(self, reduction));
      Tensor difference = difference_of("mse_backward_cpu_out", self, target, true);
      if (is_integral(difference.dtype(), false) && is_integral(grad.dtype(), true) && may_read(self)) {
        double factor = 2 / count_of(self, reduction);  // among integers it is one, too
        return difference.mul(Scalar(factor).to<int64_t>()).mul(grad).to(self.dtype());
      }
      Tensor slope = reduction == 1 ? difference.mul(2.0).div(Scalar(self.sym_numel())) : difference.mul(2.0);
      return in_type_of(self, slope.mul(grad));
    })
    .gradient("grad_output", {"grad", "self", "target", "reduction"},
              [](const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction) {
                Tensor difference = self.sub(target);
                Tensor slope =
                    reduction == 1 ? difference.mul(2.0).div(Scalar(difference.sym_numel())) : difference.mul(2.0);
                return slope.mul(grad);
              })
    .gradient("self", {"grad", "grad_output", "reduction"},
              [](const Tensor& grad, const Tensor& grad_output, int64_t reduction) {
                Tensor out = grad.mul(grad_output).mul(2.0);
                return reduction == 1 ? out.div(Scalar(grad.sym_numel())) : out;
              })
    .gradient("target", {"grad", "grad_output", "reduction"},
              [](const Tensor& grad, const Tensor& grad_output, int64_t reduction) {
                Tensor out = grad.mul(grad_output).mul(-2.0);
                return reduction == 1 ? out.div(Scalar(grad.sym_numel())) : out;
              });

UMBRA_OPERATOR("l1_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor")
    .composite([](const Tensor& self, const Tensor& target, int64_t reduction) {
      return reduce_loss(self.sub(target).abs(), reduction);
    });

// ---- huber and smooth: squares near zero, lines farther away ----

/// Slope of 0 at 0, 1 and -1 from `width` on: the derivative of both, up to a factor.
Tensor clipped_slope(const Tensor& difference, double width) { return difference.clamp(-width, width); }

Tensor smooth_loss(const Tensor& self, const Tensor& target, int64_t reduction, double limit, double scale) {
  Tensor out = kernels::scratch({}, self.dtype());
  kernels::smooth_distance(out, self, target, limit, scale, reduction == kReduceMean);
  return out;
}

Tensor smooth_terms(const Tensor& self, const Tensor& target, double limit, double scale) {
  Tensor out = kernels::scratch(guard_ints(broadcast_shapes(self.sym_sizes(), target.sym_sizes())), self.dtype());
  functors::SmoothDistance distance;
  distance.limit = limit;
  distance.scale = scale;
  kernels::pointwise(distance, out, {&self, &target});
  return out;
}

UMBRA_OPERATOR("huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.) -> Tensor")
    .out("huber_loss.out")
    .all_backends([](const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
      bool meta = self.is_meta() || target.is_meta();
      check<ValueError>(!meta || (reduction >= kReduceNone && reduction <= kReduceSum), reduction,
                        " is not a valid value for reduction");
      check(delta > 0, "huber_loss does not support non-positive values for delta.");
      if (in_one_pass(self, target, reduction)) return smooth_loss(self, target, reduction, delta, 1);
      if (by_one_kernel({&self, &target})) return reduce_loss(smooth_terms(self, target, delta, 1), reduction);
      broadcast_shapes(self.sym_sizes(), target.sym_sizes());
      DType common = ResultType().add(self).add(target).get();
      bool described = self.is_fake() || meta;
      bool fits = described && reduction == kReduceNone ? self.dtype() == common
                                                        : self.is_fake() || can_cast(common, self.dtype());
      check(fits, "result type ", kernel_name(common), " can't be cast to the desired output type ",
            kernel_name(self.dtype()));
      Tensor distance = difference_of("huber_cpu", self, target, false).abs();
      Tensor loss = where(distance.le(delta), distance.mul(distance).mul(0.5), distance.sub(0.5 * delta).mul(delta));
      if (!self.is_fake()) loss = in_type_of(self, loss);
      return reduce_loss(loss, reduction);
    })
    .gradient("self", {"grad", "self", "target", "reduction", "delta"},
              [](const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
                return huber_loss_backward(grad, self, target, reduction, delta);
              })
    .gradient("target", {"grad", "self", "target", "reduction", "delta"},
              [](const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
                return huber_loss_backward(grad, target, self, reduction, delta);
              });

UMBRA_OPERATOR(
    "huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> Tensor")
    .out("huber_loss_backward.out", {"grad_input"})
    .use(out_asks("huber_loss_backward.out", [](const Tensor&, const Tensor& self, const Tensor&, int64_t, double,
                                                const Tensor& out) { check_written_type(self, out); }))
    .all_backends([](const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
      broadcast_shapes(broadcast_shapes(self.sym_sizes(), target.sym_sizes()), grad.sym_sizes());
      for (const Tensor* t : {&target, &grad})
        check(t->dtype() == self.dtype(), "Found dtype ", kernel_name(t->dtype()), " but expected ",
              kernel_name(self.dtype()));
      if (by_one_kernel({&grad, &self, &target}))
        return clipped_gradient(grad, self, target, delta, 1 / count_of(self, reduction));
      Tensor slope = clipped_slope(difference_of("huber_backward_cpu_out", self, target, false), delta);
      return share_of_mean(slope.mul(grad), self, reduction);
    })
    .gradient("grad_output", {"grad", "self", "target", "reduction", "delta"},
              [](const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
                return share_of_mean(grad.mul(clipped_slope(self.sub(target), delta)), grad, reduction);
              })
    .gradient("self", {"grad", "grad_output", "self", "target", "reduction", "delta"},
              [](const Tensor& grad, const Tensor& grad_output, const Tensor& self, const Tensor& target,
                 int64_t reduction, double delta) {
                Tensor near = self.sub(target).abs().lt(delta);
                return share_of_mean(grad.mul(grad_output).mul(near), grad, reduction);
              })
    .gradient("target", {"grad", "grad_output", "self", "target", "reduction", "delta"},
              [](const Tensor& grad, const Tensor& grad_output, const Tensor& self, const Tensor& target,
                 int64_t reduction, double delta) {
                Tensor near = self.sub(target).abs().lt(delta);
                return share_of_mean(grad.mul(grad_output).mul(near), grad, reduction).neg();
              });

// A width of zero leaves lines alone, and where they meet the one that falls counts. The gradient takes a width below
// zero, too, where PyTorch's kernel asks for the falling line first.
Tensor smooth_slope(const Tensor& difference, double beta) {
  if (!(beta <= 0)) return clipped_slope(difference.div(beta), 1);  // of NaN, too
  Tensor rises = difference.gt(-beta).to(difference.dtype());
  return where(difference.isnan(), difference, rises.mul(2).sub(1));
}

/// Among integers the share of a mean and the width are integers, too.
Tensor whole_slope(const Tensor& difference, const Tensor& grad, double share, double beta) {
  check(std::abs(beta) < 0x1p63, "smooth_l1_loss_backward: beta = ", beta, " is no integer");
  auto factor = static_cast<int64_t>(share), width = static_cast<int64_t>(beta);
  Tensor line = grad.mul(Scalar(factor)), rises = difference.ge(Scalar(width));
  Tensor between = width == 0 ? line : line.mul(difference).div(Scalar(width), std::string("trunc"));
  return where(difference.le(Scalar(-width)), line.neg(), where(rises, line, between));
}

UMBRA_OPERATOR("smooth_l1_loss(Tensor self, Tensor target, int reduction=Mean, float beta=1.) -> Tensor")
    .out("smooth_l1_loss.out")
    .use(out_asks("smooth_l1_loss.out", [](const Tensor& self, const Tensor& target, int64_t, double,
                                           const Tensor& out) { check_terms_fit(self, target, out); }))
    .all_backends([](const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
      check(beta >= 0, "smooth_l1_loss does not support negative values for beta.");
      check_known(reduction);
      if (beta > 0 && in_one_pass(self, target, reduction)) return smooth_loss(self, target, reduction, beta, 1 / beta);
      if (beta > 0 && by_one_kernel({&self, &target}))
        return reduce_loss(smooth_terms(self, target, beta, 1 / beta), reduction);
      Tensor distance = difference_of("smooth_l1_cpu", self, target, false).abs();
      if (beta == 0) return reduce_loss(distance, reduction);
      Tensor loss = where(distance.lt(beta), distance.mul(0.5).mul(distance).div(beta), distance.sub(0.5 * beta));
      return reduce_loss(loss, reduction);
    })
    .gradient("self", {"grad", "self", "target", "reduction", "beta"},
              [](const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
                return smooth_l1_loss_backward(grad, self, target, reduction, beta);
              })
    .gradient("target", {"grad", "self", "target", "reduction", "beta"},
              [](const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
                return smooth_l1_loss_backward(grad, target, self, reduction, beta);
              });

UMBRA_OPERATOR(
    "smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> Tensor")
    .out("smooth_l1_loss_backward.grad_input", {"grad_input"})
    .use(out_reads("smooth_l1_loss_backward.grad_input", "self",
                   [](const Tensor& grad, const Tensor& self, const Tensor& target, int64_t, double,
                      const Tensor& out) { return in_common_type(grad, self, target, out); }))
    .all_backends([](const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
      bool meta = (self.is_meta() || target.is_meta() || grad.is_meta()) && !self.is_fake();
      check<ZeroDivisionError>(!meta || reduction != kReduceMean || !self.sym_numel().same(0),
                               "float division by zero");
      check_gradient_type(grad, self, target);
      if (beta > 0 && by_one_kernel({&grad, &self, &target}))
        return clipped_gradient(grad, self, target, beta, 1 / (beta * count_of(self, reduction)));
      Tensor difference = difference_of("smooth_l1_backward_cpu_out", self, target, true);
      if (is_integral(difference.dtype(), false) && is_integral(grad.dtype(), true) && may_read(self))
        return whole_slope(difference, grad, 1 / count_of(self, reduction), beta).to(self.dtype());
      Tensor slope = smooth_slope(difference, beta);
      return in_type_of(self, share_of_mean(slope.mul(grad), self, reduction));
    })
    .gradient("grad_output", {"grad", "self", "target", "reduction", "beta"},
              [](const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
                return share_of_mean(grad.mul(smooth_slope(self.sub(target), beta)), grad, reduction);
              })
    .gradient("self", {"grad", "grad_output", "self", "target", "reduction", "beta"},
              [](const Tensor& grad, const Tensor& grad_output, const Tensor& self, const Tensor& target,
                 int64_t reduction, double beta) {
                Tensor near = self.sub(target).abs().lt(beta);
                return share_of_mean(grad.mul(grad_output).mul(near).div(beta), grad, reduction);
              })
    .gradient("target", {"grad", "grad_output", "self", "target", "reduction", "beta"},
              [](const Tensor& grad, const Tensor& grad_output, const Tensor& self, const Tensor& target,
                 int64_t reduction, double beta) {
                Tensor near = self.sub(target).abs().lt(beta);
                return share_of_mean(grad.mul(grad_output).mul(near).div(beta), grad, reduction).neg();
              });

// ---- soft margin ----

UMBRA_OPERATOR("soft_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor")
    .out("soft_margin_loss.out")
    .use(out_asks("soft_margin_loss.out",
                  [](const Tensor& self, const Tensor&, int64_t, const Tensor& out) {
                    bool asked = has_elements(self) && is_floating(self.dtype());
                    check(!asked || self.dtype() == out.dtype(), "Found dtype ", kernel_name(out.dtype()),
                          " but expected ", kernel_name(self.dtype()));
                  }))
    .all_backends([](const Tensor& self, const Tensor& target, int64_t reduction) {
      Tensor loss = self.neg().mul(target).exp().log1p();
      bool meta = self.is_meta() && !self.is_fake();
      if (meta) loss = loss.to(result_type(self, target));
      if (!self.is_fake() && !meta) {  // the kernel computes in the input's memory
        check(self.sym_sizes() == loss.sym_sizes(), "output with shape ", self.sym_sizes(),
              " doesn't match the broadcast shape ", loss.sym_sizes());
        check(can_cast(loss.dtype(), self.dtype()), "result type ", kernel_name(loss.dtype()),
              " can't be cast to the desired output type ", kernel_name(self.dtype()));
        loss = in_type_of(self, loss);
      }
      // By any other number than those three the result is the first element in memory.
      bool known = reduction >= kReduceNone && reduction <= kReduceSum;
      if (!known && !self.is_fake() && !meta && has_elements(loss)) return loss.as_strided({}, {}).clone();
      return reduce_loss(loss, reduction);
    })
    .gradient("self", {"grad", "self", "target", "reduction"},
              [](const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction) {
                return soft_margin_loss_backward(grad, self, target, reduction);
              });

UMBRA_OPERATOR("soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor")
    .out("soft_margin_loss_backward.grad_input", {"grad_input"})
    .all_backends([](const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction) {
      // The target is negated for the exponent alone: bytes have no sign.
      Tensor z = target.neg().mul(self).exp();
      Tensor slope = target.mul(z).neg().div(z.add(1));
      SymShape sizes = broadcast_shapes(slope.sym_sizes(), grad.sym_sizes());
      check(SymIntArrayRef(sizes) == slope.sym_sizes(), "output with shape ", slope.sym_sizes(),
            " doesn't match the broadcast shape ", to_string(SymIntArrayRef(sizes)));
      return in_type_of(self, share_of_mean(slope, self, reduction).mul(grad));
    })
    .gradient("grad_output", {"grad", "self", "target", "reduction"},
              [](const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction) {
                Tensor z = target.neg().mul(self).exp();
                return share_of_mean(grad.mul(target.mul(z).neg().div(z.add(1))), grad, reduction);
              })
    .gradient("self", {"grad", "grad_output", "self", "target", "reduction"},
              [](const Tensor& grad, const Tensor& grad_output, const Tensor& self, const Tensor& target,
                 int64_t reduction) {
                Tensor z = target.neg().mul(self).exp(), bend = target.mul(target).mul(z).div(z.add(1).pow(2));
                return share_of_mean(grad.mul(grad_output).mul(bend), grad, reduction);
              });

}  // namespace
}  // namespace umbra::ops
