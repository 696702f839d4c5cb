// Distances between rows: cdist and pdist.
#include "kernels/distance.h"

#include "kernels/copy.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/linalg/linalg.h"

namespace umbra::ops {
namespace {

void check_norm_order(const char* name, double p) { check(p >= 0, name, " only supports non-negative p values"); }

/// The order as a number of the type that is computed in: one too large for it is infinite.
double order_in(const Tensor& x, double p) {
  return x.dtype() == DType::Float64 ? p : static_cast<double>(static_cast<float>(p));
}

/// Whether Euclidean distances go by a matrix product: faster, less exact.
bool by_product(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> mode) {
  int64_t chosen = mode.value_or(0);
  check(chosen >= 0 && chosen <= 2, "possible modes: 0, 1, 2, but was: ", chosen);
  if (p != 2 || chosen == 2) return false;
  return chosen == 1 || x1.size(-2) > 25 || x2.size(-2) > 25;
}

/// The rows as one batch of contiguous matrices.
Tensor as_batches(const Tensor& x, SymIntArrayRef batch) {
  Tensor wide = x.expand(matrix_sizes(batch, x.sym_size(-2), x.sym_size(-1)));
  return kernels::contiguous(wide.reshape({product(SymShape(batch)), x.sym_size(-2), x.sym_size(-1)}));
}

UMBRA_OPERATOR("_euclidean_dist(Tensor x1, Tensor x2) -> Tensor")
    .generated_out("_euclidean_dist.out")
    .all_backends([](const Tensor& x1, const Tensor& x2) {
      for (const Tensor* t : {&x1, &x2}) {  // rows are joined one after the other, each on its device
        check<IndexError>(t->dim() > 0 || !t->is_meta(), "list assignment index out of range");
        check(t->dim() > 0, "zero-dimensional tensor (at position 0) cannot be concatenated");
      }
      // |a - b|^2 = |a|^2 + |b|^2 - 2 a b, as one product of longer rows.
      Tensor n1 = x1.pow(2).sum(IntArrayRef{-1}, true), n2 = x2.pow(2).sum(IntArrayRef{-1}, true);
      Tensor left = cat({x1.mul(-2), n1, ones_like(n1)}, -1), right = cat({x2, ones_like(n2), n2}, -1);
      check(right.dim() != 1, "tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor.");
      return left.matmul(right.transpose(-2, -1)).clamp_min(0).sqrt();
    })
    .gradient("x1, x2", {"grad", "x1", "x2", "result"},
              [](const Tensor& grad, const Tensor& x1, const Tensor& x2, const Tensor& result) {
                Tensor ratio = grad.div(result).masked_fill(result.eq(0), 0);
                return std::tuple{
                    x1.mul(ratio.sum(IntArrayRef{-1}, true)).sub(ratio.matmul(x2)),
                    x2.mul(ratio.sum(IntArrayRef{-2}).unsqueeze(-1)).sub(ratio.transpose(-2, -1).matmul(x1))};
              });

UMBRA_OPERATOR("_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor")
    .generated_out("_cdist_forward.out")
    .meta([](const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t>) {
      check(x1.dim() >= 2, "cdist only supports at least 2D tensors, X1 got: ", x1.dim(), "D");
      check(x2.dim() >= 2, "cdist only supports at least 2D tensors, X2 got: ", x2.dim(), "D");
      check(x1.sym_size(-1) == x2.sym_size(-1), "X1 and X2 must have the same number of columns. X1: ", x1.sym_size(-1),
            " X2: ", x2.sym_size(-1));
      check(x1.is_floating_point(), "cdist only supports floating-point dtypes, X1 got: ", kernel_name(x1.dtype()));
      check(x2.is_floating_point(), "cdist only supports floating-point dtypes, X2 got: ", kernel_name(x2.dtype()));
      check_norm_order("cdist", p);
      return TensorSpec(matrix_sizes(common_batch(x1, x2), x1.sym_size(-2), x2.sym_size(-2)), x1.dtype(),
                        common_device({&x1, &x2}));
    })
    .cpu([](const Tensor& out, const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> mode) {
      if (out.numel() == 0) return;
      if (x1.size(-1) == 0) return kernels::fill(out, 0);
      SymShape batch = batch_part(out);
      Tensor a = as_batches(x1, batch), b = as_batches(x2, batch);
      if (by_product(x1, x2, p, mode)) kernels::copy(out, _euclidean_dist(a, b).reshape(out.sym_sizes()));
      else kernels::cdist(out, a, b, order_in(x1, p));
    })
    .gradient("x1", {"grad", "x1", "x2", "p", "result"},
              [](const Tensor& grad, const Tensor& x1, const Tensor& x2, double p, const Tensor& result) {
                return ops::sum_to_size(_cdist_backward(grad.contiguous(), x1, x2, p, result), x1.sym_sizes());
              })
    .gradient("x2", {"grad", "x1", "x2", "p", "result"},
              [](const Tensor& grad, const Tensor& x1, const Tensor& x2, double p, const Tensor& result) {
                Tensor g = grad.transpose(-2, -1).contiguous(), d = result.transpose(-2, -1).contiguous();
                return ops::sum_to_size(_cdist_backward(g, x2, x1, p, d), x2.sym_sizes());
              })
    .tags({Tag::Core})
    .batch([](const Batched& x1, const Batched& x2, double p, std::optional<int64_t> mode) {
      int64_t rank = std::max(x1.rank(), x2.rank());
      return Batched(
          _cdist_forward(batch_first({batch_all(x1), 0}, rank), batch_first({batch_all(x2), 0}, rank), p, mode), 0);
    });

/// What a distance's derivative s = sign(gap) |gap|^(p-1) / d^(p-1) is, and its derivatives by the gap and by d.
struct Slopes {
  Tensor slope, by_gap, by_distance;
  Slopes(const Tensor& gap, const Tensor& d, double p) {
    Tensor flat = d.eq(0), safe = d.masked_fill(flat, 1), size = gap.abs(), sign = gap.sgn();
    Tensor zero = zeros_like(gap);
    if (p == 0) {
      slope = by_gap = by_distance = zero;
    } else if (p == 1) {
      slope = sign;
      by_gap = by_distance = zero;
    } else if (p == 2) {
      slope = gap.div(safe).masked_fill(flat, 0);
      by_gap = ones_like(gap).div(safe).masked_fill(flat, 0);
      by_distance = slope.div(safe).neg();
    } else if (std::isinf(p)) {
      slope = sign.mul(size.eq(d));
      by_gap = by_distance = zero;
    } else {
      Tensor none = flat.logical_or(size.eq(0)), base = size.masked_fill(none, 1), power = safe.pow(1 - p);
      slope = sign.mul(base.pow(p - 1)).mul(power).masked_fill(none, 0);
      by_gap = base.pow(p - 2).mul(p - 1).mul(power).masked_fill(none, 0);
      by_distance = slope.div(safe).mul(1 - p);
    }
  }
};

bool has_distances(DType dtype) { return dtype == DType::Float32 || dtype == DType::Float64; }

UMBRA_OPERATOR("_cdist_backward(Tensor grad_output, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor")
    .generated_out("_cdist_backward.out")
    .meta([](const Tensor& grad, const Tensor& x1, const Tensor& x2, double, const Tensor& distances) {
      for (const Tensor* t : {&x1, &x2}) t->sym_size(-1), t->sym_size(-2);  // too few dimensions are an IndexError
      SymShape batch = common_batch(x1, x2), wanted = matrix_sizes(batch, x1.sym_size(-2), x2.sym_size(-2));
      // Without pairs there is nothing to gather, nor to broadcast, nor to ask of the others.
      if (product(SymShape(wanted)) == 0 || x1.sym_size(-1) == 0) return spec_like(x1);
      check_kernel_type(has_distances(x1.dtype()), "cdist_backward", x1);
      check(x1.sym_size(-1) == x2.sym_size(-1), "X1 and X2 must have the same number of columns. X1: ", x1.sym_size(-1),
            " X2: ", x2.sym_size(-1));
      for (const Tensor* t : {&grad, &x2, &distances}) check_read_as(x1.dtype(), *t);
      for (const Tensor* t : {&grad, &distances})
        check(t->sym_sizes() == SymIntArrayRef(wanted), "_cdist_backward: expected distances of sizes ", wanted,
              ", but got ", t->sym_sizes());
      return TensorSpec(matrix_sizes(batch, x1.sym_size(-2), x1.sym_size(-1)), x1.dtype(), x1.device());
    })
    .cpu([](const Tensor& out, const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
            const Tensor& distances) {
      if (out.numel() == 0) return;
      SymShape batch = common_batch(x1, x2);
      if (product(batch) == 0 || x2.size(-2) == 0 || x1.size(-1) == 0) return kernels::fill(out, 0);
      kernels::cdist_backward(out, as_batches(grad, batch), as_batches(x1, batch), as_batches(x2, batch), p,
                              as_batches(distances, batch));
    })
    .gradient("grad_output, x1, x2, cdist", {"grad", "grad_output", "x1", "x2", "p", "cdist"},
              [](const Tensor& grad, const Tensor& weights, const Tensor& x1, const Tensor& x2, double p,
                 const Tensor& distances) {
                Tensor gap = x1.unsqueeze(-2).sub(x2.unsqueeze(-3));
                Slopes s(gap, distances.unsqueeze(-1), p);
                Tensor along = grad.unsqueeze(-2), spread = weights.unsqueeze(-1).mul(along);
                auto fit = [](const Tensor& t, const Tensor& like) { return ops::sum_to_size(t, like.sym_sizes()); };
                Tensor turned = spread.mul(s.by_gap);
                return std::tuple{fit(along.mul(s.slope).sum(IntArrayRef{-1}), weights),
                                  fit(turned.sum(IntArrayRef{-2}), x1), fit(turned.sum(IntArrayRef{-3}).neg(), x2),
                                  fit(spread.mul(s.by_distance).sum(IntArrayRef{-1}), distances)};
              });

UMBRA_OPERATOR("cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor")
    .composite([](const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> mode) {
      return _cdist_forward(x1, x2, p, mode);
    });

// ---- one matrix ----

UMBRA_OPERATOR("_pdist_forward(Tensor self, float p=2) -> Tensor")
    .generated_out("_pdist_forward.out")
    .meta([](const Tensor& self, double p) {
      // Any layout will do; where more is amiss, PyTorch speaks of the layout first.
      bool fits = !has_elements(self) || (self.dim() == 2 && has_distances(self.dtype()));
      check(fits || self.is_contiguous(), "_pdist_forward requires contiguous input");
      SymInt n = self.sym_size(0);  // a number has no rows: an IndexError
      // Of one row nothing more is asked, whatever it is.
      if (!n.has_hint() || n > 1) {
        SymInt columns = self.sym_size(1);
        if (!columns.has_hint() || columns != 0) check_kernel_type(has_distances(self.dtype()), "pdist", self);
        else if (has_elements(self)) return TensorSpec({n * (n - 1) / 2}, self.dtype(), self.device());
        check(self.dim() == 2, "pdist only supports 2D tensors, got: ", self.dim(), "D");
        check_norm_order("pdist", p);
      }
      return TensorSpec({n * (n - 1) / 2}, self.dtype(), self.device());
    })
    .cpu([](const Tensor& out, const Tensor& self, double p) {
      if (out.numel() == 0) return;
      if (self.size(1) == 0) return kernels::fill(out, 0);
      kernels::pdist(out, kernels::contiguous(self), order_in(self, p));
    })
    .gradient("self", {"grad", "self", "p", "result"},
              [](const Tensor& grad, const Tensor& self, double p, const Tensor& result) {
                return _pdist_backward(grad, self, p, result);
              })
    .tags({Tag::Core});

UMBRA_OPERATOR("_pdist_backward(Tensor grad_output, Tensor self, float p, Tensor pdist) -> Tensor")
    .generated_out("_pdist_backward.out")
    .meta([](const Tensor& grad, const Tensor& self, double p, const Tensor& distances) {
      TensorSpec result(self.sym_sizes(), self.dtype(), self.device());
      if (!has_elements(self)) return result;
      bool fits = self.dim() == 2 && distances.dim() == 1 && grad.dim() == 1 && has_distances(self.dtype()) &&
                  distances.dtype() == self.dtype();
      check(fits || self.is_contiguous(), "_pdist_backward requires self to be contiguous");
      check(fits || distances.is_contiguous(), "_pdist_backward requires pdist to be contiguous");
      check_kernel_type(has_distances(self.dtype()), "pdist_backward", self);
      if (p == 0) return result;  // which takes no distances
      SymInt n = self.sym_size(0), pairs = n * (n - 1) / 2;
      self.sym_size(1), grad.sym_size(0);  // too few dimensions are an IndexError
      for (const Tensor* t : {&grad, &distances}) check_read_as(self.dtype(), *t);
      check(self.dim() == 2, "_pdist_backward: expected a matrix, but got ", self.dim(), "D");
      for (const Tensor* t : {&grad, &distances})
        check(t->dim() == 1 && t->sym_size(0) == pairs, "_pdist_backward: expected ", pairs, " distances, but got ",
              t->sym_sizes());
      return result;
    })
    .cpu([](const Tensor& out, const Tensor& grad, const Tensor& self, double p, const Tensor& distances) {
      if (p == 0) return kernels::fill(out, 0);
      kernels::pdist_backward(out, kernels::contiguous(grad), kernels::contiguous(self), p,
                              kernels::contiguous(distances));
    })
    .gradient("grad_output, self, pdist", {"grad", "grad_output", "self", "p", "pdist"},
              [](const Tensor& grad, const Tensor& weights, const Tensor& self, double p, const Tensor& distances) {
                SymInt n = self.sym_size(0);
                Tensor pairs =
                    triu_indices(n.guard_int(), n.guard_int(), 1, {.dtype = DType::Int64, .device = self.device()});
                Tensor i = pairs.select(0, 0), j = pairs.select(0, 1);
                auto gap = [&](const Tensor& t) { return t.index_select(0, i).sub(t.index_select(0, j)); };
                Tensor apart = gap(self);
                Slopes s(apart, distances.unsqueeze(-1), p);
                Tensor along = gap(grad), spread = weights.unsqueeze(-1).mul(along), turned = spread.mul(s.by_gap);
                Tensor to_rows = zeros_like(self).index_add(0, i, turned).index_add(0, j, turned.neg());
                return std::tuple{along.mul(s.slope).sum(IntArrayRef{-1}), to_rows,
                                  spread.mul(s.by_distance).sum(IntArrayRef{-1})};
              });

UMBRA_OPERATOR("pdist(Tensor self, float p=2) -> Tensor").composite([](const Tensor& self, double p) {
  check(self.dim() == 2, "pdist only supports 2D tensors, got: ", self.dim(), "D");
  check(self.is_floating_point(), "pdist only supports floating-point dtypes");
  check_norm_order("pdist", p);
  return _pdist_forward(self.contiguous(), p);
});

}  // namespace
}  // namespace umbra::ops
