// Normalisation without a mean: of weights, of rows to their mean square, of slices to a largest norm.
#include <limits>

#include "core/cpp_name.h"
#include "kernels/copy.h"
#include "kernels/vector/rows.h"
#include "ops/common/kernel_type.h"
#include "ops/common/may_read.h"
#include "ops/common/needs_data.h"
#include "ops/common/out_asks.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

// ---- weights as a direction and a length ----

std::vector<int64_t> all_but(int64_t dim, int64_t rank) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < rank; ++d)
    if (d != dim) dims.push_back(d);
  return dims;
}

// One norm for each slice along `dim`, one for all where dim is -1.
Tensor norms_of(const Tensor& v, int64_t dim) {
  if (v.dim() <= 1 && dim != -1) return v.abs();
  return linalg_vector_norm(v, 2, all_but(dim, v.dim()), true);
}

using Pair = std::tuple<Tensor, Tensor>;

/// The same of rows of plain numbers, each read twice: by what its gradient is along it, and what is left.
template <class T>
void weight_norm_row_gradients(const Tensor& of_v, const Tensor& of_g, const Tensor& grad, const Tensor& v,
                               const Tensor& g, const Tensor& norms) {
  const auto& rows = kernels::row_functions<T>();
  int64_t count = v.size(0), n = v.numel() / std::max<int64_t>(count, 1);
  const T *from = grad.data<T>(), *x = v.data<T>(), *length = g.data<T>(), *norm = norms.data<T>();
  T *to = of_v.data<T>(), *along = of_g.data<T>();
  for (int64_t i = 0; i < count; ++i) {
    T sum, product;
    rows.two_sums(from + i * n, x + i * n, T(0), nullptr, n, &sum, &product);
    along[i] = product / norm[i];
    T scale = length[i] / norm[i];
    rows.combine(to + i * n, from + i * n, x + i * n, scale, -scale * along[i] / norm[i], T(0), n);
  }
}

/// Numbers of the slices along `dim`, laid out so that they broadcast over `v`: who gives them is free in their shape.
Tensor beside_slices(const Tensor& numbers, const Tensor& v, int64_t dim) {
  SymShape shape(static_cast<size_t>(v.dim()), SymInt(1));
  if (v.dim() > 0) shape[static_cast<size_t>(wrap_dim(dim, v.dim()))] = v.sym_size(dim);
  return numbers.reshape(shape);
}

Pair weight_norm_gradients(const Tensor& grad, const Tensor& v, const Tensor& g, const Tensor& norms, int64_t dim) {
  bool by_rows = dim == 0 && v.dim() > 1 && (v.dtype() == DType::Float32 || v.dtype() == DType::Float64);
  for (const Tensor* t : {&grad, &v, &g, &norms})
    by_rows = by_rows && values_alone(*t) && t->is_contiguous() && t->dtype() == v.dtype() && !t->is_neg();
  by_rows = by_rows && grad.sizes() == v.sizes() && g.numel() == v.size(0) && norms.numel() == v.size(0);
  if (by_rows) {
    Tensor of_v = kernels::scratch(v.sizes(), v.dtype()), of_g = kernels::scratch(g.sizes(), g.dtype());
    if (v.dtype() == DType::Float32) weight_norm_row_gradients<float>(of_v, of_g, grad, v, g, norms);
    else weight_norm_row_gradients<double>(of_v, of_g, grad, v, g, norms);
    return {of_v, of_g};
  }
  Tensor lengths = beside_slices(g, v, dim), divisors = beside_slices(norms, v, dim);
  Tensor along = grad.mul(v).sum(all_but(dim, v.dim()), true).div(divisors);
  Tensor of_v = grad.sub(v.mul(along.div(divisors))).mul(lengths.div(divisors));
  return {of_v.to(v.dtype()), along.to(g.dtype()).view(g.sym_sizes())};
}

bool is_narrow(DType type) { return type == DType::BFloat16 || type == DType::Float16; }

/// What the fused kernels ask for where there are elements.
void check_fused(const char* kernel, const Tensor& v, const Tensor& g, int64_t dim) {
  check_kernel_type(is_narrow(v.dtype()) || v.dtype() == DType::Float32 || v.dtype() == DType::Float64, kernel, v);
  wrap_dim(dim, v.dim(), false);
  check_read_as(v.dtype(), g);
  check(g.sym_numel() == v.sym_size(dim), "expected one length for each of the ", v.sym_size(dim),
        " slices, but got lengths of size ", g.sym_sizes());
}
void check_fused_dim(const Tensor& v, int64_t dim) {
  check(dim == 0 || dim == v.dim() - 1, "fused kernels can only be applied for first or last dim");
}

DType norm_type(const Tensor& g) { return is_narrow(g.dtype()) ? DType::Float32 : g.dtype(); }

UMBRA_OPERATOR("_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)")
    .generated_out("_weight_norm_interface.out", {"out0", "out1"})
    .use(NoOutputsOnMeta{"_weight_norm_interface.out"})
    .all_backends([](const Tensor& v, const Tensor& g, int64_t dim) {
      if (!has_elements(v) || !has_elements(g)) {
        Tensor norms = linalg_vector_norm(v, 2, all_but(dim, v.dim()), true, norm_type(g));
        return Pair(v.mul(g.div(norms.to(g.dtype()))), norms);
      }
      check_fused_dim(v, dim);
      if (v.sym_numel() == 0) return Pair(empty(v.sym_sizes(), v.options()), zeros_like(g, norm_type(g)));
      check_fused("weight_norm_kernel", v, g, dim);
      Tensor wide = is_narrow(v.dtype()) ? v.to(DType::Float32) : v;
      Tensor norms = norms_of(wide, dim);
      return Pair(wide.mul(beside_slices(g, v, dim).div(norms)).to(v.dtype()), norms.reshape(g.sym_sizes()));
    })
    .gradient("v, g", {"grad0", "v", "g", "result1", "dim"},
              [](const Tensor& grad, const Tensor& v, const Tensor& g, const Tensor& norms, int64_t dim) {
                if (is_grad_enabled() && (grad.requires_grad() || v.requires_grad() || g.requires_grad()))
                  return weight_norm_gradients(grad, v, g, norms_of(v, dim), dim);
                return _weight_norm_interface_backward(grad, v, g, norms, dim);
              })
    .differentiable_outputs({true, false});

UMBRA_OPERATOR(
    "_weight_norm_interface_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g, Tensor saved_norms, int dim) -> "
    "(Tensor, Tensor)")
    .generated_out("_weight_norm_interface_backward.out", {"out0", "out1"})
    .all_backends([](const Tensor& grad, const Tensor& v, const Tensor& g, const Tensor& norms, int64_t dim) {
      if (has_elements(v))
        for (const auto& [t, name] :
             {std::pair(&v, "saved_v"), std::pair(&g, "saved_g"), std::pair(&norms, "saved_norms")})
          check(t->is_contiguous(), name, " must be contiguous");
      check_fused_dim(v, dim);
      if (has_elements(v) && v.sym_numel() == 0) return Pair(empty_like(v), zeros_like(g));
      check_fused("weight_norm_backward_kernel", v, g, dim);
      check(norms.sym_numel() == g.sym_numel() && grad.sym_sizes() == v.sym_sizes(), "expected a gradient of size ",
            v.sym_sizes(), " and ", g.sym_numel(), " norms, but got ", grad.sym_sizes(), " and ", norms.sym_numel());
      return weight_norm_gradients(grad, v, g, norms, dim);
    })
    .use(LikeOnMeta{{1, 2}});

UMBRA_OPERATOR("_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor")
    .composite([](const Tensor& v, const Tensor& g, int64_t dim) {
      check(v.device() == g.device(), "weight_norm: expected v_in and g_in to be on the same device, but v_in is on ",
            v.device(), " and g_in is on ", g.device());
      Tensor direction = v.contiguous(), length = g.contiguous();
      if (dim == 0 || dim == v.dim() - 1) return std::get<0>(_weight_norm_interface(direction, length, dim));
      if (dim != -1) wrap_dim(dim, v.dim(), false);
      return direction.mul(length.div(norms_of(direction, dim)));
    });

// ---- rows to their mean square ----

void check_rms_shapes(const Tensor& input, SymIntArrayRef normalized, const Tensor& weight) {
  check(!normalized.empty(),
        "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
        "normalized_shape = ",
        normalized);
  if (weight.defined() && !(weight.sym_sizes() == normalized))
    fail("Expected weight to be of same shape as normalized_shape, but got weight of shape ", weight.sym_sizes(),
         " and normalized_shape = ", to_string(normalized));
  size_t rank = static_cast<size_t>(input.dim()), n = normalized.size();
  check<ValueError>(rank >= n, "Input tensor must have at least ", n, " dimensions, but got ", rank);
  bool fits = true;
  for (size_t i = 0; fits && i < n; ++i) fits = input.sym_sizes()[rank - n + i] == normalized[i];
  if (!fits)
    fail("Given normalized_shape=", to_string(normalized), ", expected input with shape [*",
         to_string(normalized).substr(1), ", but got input of size", input.sym_sizes());
}

Pair rms_by_parts(const Tensor& input, SymIntArrayRef normalized, const Tensor& weight, std::optional<double> eps) {
  check_kernel_type(is_differentiable(input.dtype()), "rms_norm", input);
  DType dtype = input.dtype();
  bool narrow = dtype == DType::Float16 || dtype == DType::BFloat16;
  bool wide = dtype == DType::Float64 || dtype == DType::Complex128;
  double least = eps.value_or(wide ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon());
  Tensor x = narrow ? input.to(DType::Float32) : input;
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < static_cast<int64_t>(normalized.size()); ++d) dims.push_back(input.dim() - 1 - d);
  Tensor scale = x.pow(2).mean(dims, true).add_(least).rsqrt(), out = x.mul(scale);
  if (weight.defined()) out = out.mul(weight);
  return {out.dtype() == dtype ? out : out.to(dtype), scale};
}

UMBRA_OPERATOR("rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor")
    .composite([](const Tensor& input, SymIntArrayRef normalized, const Tensor& weight, std::optional<double> eps) {
      check_rms_shapes(input, normalized, weight);
      Tensor out = std::get<0>(rms_by_parts(input, normalized, weight, eps));
      return input.suggested_format() == MemoryFormat::Contiguous ? out.contiguous() : out;
    });
// Of the normalised shape it minds the rank alone.
UMBRA_OPERATOR("_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)")
    .composite([](const Tensor& input, SymIntArrayRef normalized, const Tensor& weight, std::optional<double> eps) {
      auto [out, scale] = rms_by_parts(input, normalized, weight, eps);
      return std::tuple(out.contiguous(), scale);
    });

// ---- slices to a largest norm ----

void check_renorm(const Tensor& self, const Scalar& p, int64_t dim, const Scalar& most) {
  check(!p.is_complex(), "renorm: p must be real-valued");
  check(p.to_double() > 0, "renorm: non-positive-norm not supported");
  check(!most.is_complex(), "renorm: maxnorm must be real-valued");
  check(most.to_double() >= 0, "renorm: expected maxnorm to be >= 0 but got ", most.to_double());
  check(self.dim() > 1, "renorm: input needs at least 2 dimensions, got ", self.dim(), " dimensions");
  wrap_dim(dim, self.dim());
}

// The gradient of the norm of each slice.
Tensor norm_gradient(const Tensor& grad, const Tensor& self, double p, const Tensor& norm,
                     const std::vector<int64_t>& dims) {
  if (p == 1) return self.sgn().mul(grad);
  if (p == 2) return self.div(norm).masked_fill(norm.eq(0), 0).mul(grad);
  if (std::isinf(p)) {
    Tensor largest = self.abs().eq(norm);
    return self.sgn().mul(largest).mul(grad.div(largest.sum(dims, true)));
  }
  Tensor scale = p < 2 ? self.abs().pow(p - 2).masked_fill(self.eq(0), 0) : self.abs().pow(p - 2);
  return self.mul(scale).mul(grad.div(norm.pow(p - 1))).masked_fill(norm.eq(0), 0);
}

UMBRA_OPERATOR("renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor")
    .inplace("renorm_")
    .out("renorm.out")
    .use(out_asks("renorm.out",
                  [](const Tensor& self, const Scalar&, int64_t, const Scalar&, const Tensor& out) {
                    if (has_elements(self)) check_out_dtype(self.dtype(), out.dtype());
                  }))
    .all_backends([](const Tensor& self, const Scalar& p, int64_t dim, const Scalar& most) {
      check_renorm(self, p, dim, most);
      std::vector<int64_t> dims = all_but(wrap_dim(dim, self.dim()), self.dim());
      bool narrow = self.dtype() == DType::Float16 || self.dtype() == DType::BFloat16;
      Tensor norm = linalg_vector_norm(self, p, dims, true, narrow ? std::optional(DType::Float32) : std::nullopt);
      Tensor one = ones_like(norm), least = norm.add(1e-7).reciprocal().mul(most);
      Tensor factor = where(norm.gt(most), least, one);
      return self.mul(factor.to(self.is_complex() ? factor.dtype() : self.dtype())).contiguous();
    })
    .gradient("self", {"grad", "self", "p", "dim", "maxnorm"},
              [](const Tensor& grad, const Tensor& self, const Scalar& p, int64_t dim, const Scalar& most) {
                std::vector<int64_t> dims = all_but(wrap_dim(dim, self.dim()), self.dim());
                Tensor norm = linalg_vector_norm(self, p, dims, true);
                Tensor along = self.conj().mul(grad).sum(dims, true);
                if (along.is_complex()) along = along.real();
                Tensor inverse = norm.add(1e-7).reciprocal();
                Tensor through = norm_gradient(along, self, p.to_double(), norm, dims).mul(inverse);
                Tensor scaled = grad.sub(through).mul(inverse).mul(most);
                return where(norm.gt(most), scaled, grad);
              });

}  // namespace
}  // namespace umbra::ops
