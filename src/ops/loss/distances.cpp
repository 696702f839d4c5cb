// Losses made of other operators: of distances and angles between vectors, of margins, of distributions.
#include "ops/common/promotion.h"
#include "ops/common/shape.h"
#include "ops/loss/reduction.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

UMBRA_OPERATOR("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor")
    .composite([](const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
      DType common = promote_types(x1.dtype(), x2.dtype());  // of both as they are when they are expanded
      check(eps >= 0, "eps must be non-negative, got: ", eps);
      check(is_floating(common), "expected common dtype to be floating point, yet common dtype is ",
            kernel_name(common));
      SymShape shape = broadcast_shapes(x1.sym_sizes(), x2.sym_sizes());
      auto side = [&](const Tensor& x) {
        Tensor same = x.to(common);
        return same.sym_sizes() == SymIntArrayRef(shape) ? same : same.expand(shape);
      };
      Tensor a = side(x1), b = side(x2);
      // Norms have a gradient of their own; what is clamped in place must not change what they keep for it.
      auto norm = [&](const Tensor& x) { return linalg_vector_norm(x, 2, IntArrayRef{dim}, true).clone(); };
      Tensor a_norm = norm(a), b_norm = norm(b);
      Tensor least = scalar_tensor(eps, {.dtype = a_norm.dtype(), .device = a_norm.device()});
      bool recording = std::exchange(detail::grad_mode_state.grad, false);  // the bound is no part of the gradient
      a_norm.clamp_min_(least);
      b_norm.clamp_min_(least);
      detail::grad_mode_state.grad = recording;
      return a.div(a_norm).mul(b.div(b_norm)).sum(IntArrayRef{dim});
    });

UMBRA_OPERATOR(
    "pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=9.9999999999999995e-07, bool keepdim=False) -> "
    "Tensor")
    .composite([](const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
      int64_t rank = std::max(x1.dim(), x2.dim());
      return norm(x1.sub(x2).add(eps), p, IntArrayRef{rank - 1}, keepdim);
    });

UMBRA_OPERATOR(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float p=2., float "
    "eps=9.9999999999999995e-07, bool swap=False, int reduction=Mean) -> Tensor")
    .composite([](const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin, double p,
                  double eps, bool swap, int64_t reduction) {
      check(anchor.dim() == positive.dim() && positive.dim() == negative.dim(),
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            "anchor ",
            anchor.dim(), "D, positive ", positive.dim(), "D, and negative ", negative.dim(), "D inputs");
      check(margin > 0, "margin must be greater than 0, got ", margin);
      Tensor near = pairwise_distance(anchor, positive, p, eps), far = pairwise_distance(anchor, negative, p, eps);
      if (swap) far = far.minimum(pairwise_distance(positive, negative, p, eps));
      return reduce_loss(near.add(margin).sub(far).clamp_min(0), reduction);
    });

UMBRA_OPERATOR(
    "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=Mean) -> Tensor")
    .composite([](const Tensor& a, const Tensor& b, const Tensor& target, double margin, int64_t reduction) {
      Tensor gap = a.sub(b);
      return reduce_loss(target.neg().mul(gap).add(margin).clamp_min_(0), reduction);
    });

// A tensor like this one, filled with the margin, less what is taken off, and not below zero.
Tensor below_margin(const Tensor& like, double margin, const Tensor& taken) {
  return empty_like(like).fill_(margin).sub_(taken).clamp_min_(0);
}

UMBRA_OPERATOR("hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=Mean) -> Tensor")
    .composite([](const Tensor& self, const Tensor& target, double margin, int64_t reduction) {
      Tensor none = zeros_like(self), short_of = below_margin(self, margin, self);
      Tensor far = where(target.ne(1), short_of, none), near = where(target.ne(-1), self, none);
      return reduce_loss(far.add(near), reduction);
    });

UMBRA_OPERATOR(
    "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=Mean) -> Tensor")
    .composite([](const Tensor& a, const Tensor& b, const Tensor& target, double margin, int64_t reduction) {
      constexpr double kEpsilon = 1e-12;
      check(target.dim() <= 1, "0D or 1D target tensor expected, multi-target not supported");
      if (target.dim() == 1) {
        check(a.dim() == 2 && b.dim() == 2, "1D target tensor expects 2D input tensors, but found inputs with sizes ",
              a.sym_sizes(), " and ", b.sym_sizes(), ".");
      } else {
        check(a.dim() == 1 && b.dim() == 1, "0D target tensor expects 1D input tensors, but found inputs with sizes ",
              a.sym_sizes(), " and ", b.sym_sizes(), ".");
      }
      std::vector<int64_t> last{target.dim()};
      Tensor product = a.mul(b).sum(last);
      Tensor a_square = a.mul(a).sum(last).add(kEpsilon), b_square = b.mul(b).sum(last).add(kEpsilon);
      Tensor cosine = product.div(a_square.mul(b_square).sqrt_()), none = zeros_like(cosine);
      Tensor apart = empty_like(cosine).fill_(1).sub_(cosine), close = cosine.sub(margin).clamp_min_(0);
      Tensor same = where(target.eq(1), apart, none), different = where(target.eq(-1), close, none);
      return reduce_loss(same.add(different), reduction);
    });

UMBRA_OPERATOR("kl_div(Tensor self, Tensor target, int reduction=Mean, *, bool log_target=False) -> Tensor")
    .composite([](const Tensor& self, const Tensor& target, int64_t reduction, bool log_target) {
      check(!self.is_complex() && !target.is_complex(), "kl_div: Complex inputs not supported.");
      check(self.is_floating_point() && target.is_floating_point(), "kl_div: Integral inputs not supported.");
      Tensor loss;
      if (log_target) {
        Tensor difference = target.sub(self);
        loss = target.exp().mul(difference);
      } else {
        Tensor product = target.mul(self);
        loss = xlogy(target, target).sub(product);
      }
      return reduce_loss(loss, reduction);
    });

UMBRA_OPERATOR(
    "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor")
    .composite([](const Tensor& input, const Tensor& target, bool log_input, bool full, double eps, int64_t reduction) {
      Tensor loss;
      if (log_input) {
        Tensor product = target.mul(input);
        loss = input.exp().sub(product);
      } else {
        Tensor logarithm = input.add(eps).log();
        loss = input.sub(target.mul(logarithm));
      }
      if (full) {  // Stirling's approximation
        constexpr double kPi = 3.14159265358979323846;
        Tensor half = target.mul(2 * kPi).log().mul(0.5);
        Tensor stirling = target.log().mul(target).sub(target).add(half);
        loss = loss.add_(stirling.masked_fill(target.le(1), 0));
      }
      return reduce_loss(loss, reduction);
    });

}  // namespace
}  // namespace umbra::ops
