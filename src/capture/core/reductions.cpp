// Reductions by sum, amax, any and var.
#include <cmath>
#include <limits>

#include "capture/core/core.h"
#include "umbra/generated/functions.h"
#include "umbra/ops/operators.h"

namespace umbra::core_table {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
using Dims = std::vector<int64_t>;
using MaybeDims = std::optional<Dims>;
using MaybeScalar = std::optional<Scalar>;
using MaybeType = std::optional<DType>;

template <class F> auto over(const MaybeDims& dims, F&& f) {
  return dims ? f(argument::Optional<argument::Ints>(*dims)) : f(argument::Optional<argument::Ints>(std::nullopt));
}

Tensor sum_over(const Tensor& x, const MaybeDims& dims, bool keepdim, MaybeType dtype = {}) {
  return over(dims, [&](const auto& d) { return x.sum(d, keepdim, dtype); });
}

Tensor norm_of(const Tensor& self, const Scalar& order, const MaybeDims& dims, bool keepdim, MaybeType dtype) {
  Tensor x = dtype && *dtype != self.dtype() ? self._to_copy({.dtype = dtype}) : self;
  double p = order.to_double();
  if (p == 0) return sum_over(x.ne(0.0), dims, keepdim, real_type(x.dtype()));
  if (std::isinf(p)) {
    Tensor size = x.abs();
    Dims all = dims.value_or(Dims());
    return p > 0 ? size.amax(all, keepdim) : size.amin(all, keepdim);
  }
  bool even = std::fmod(p, 2) == 0 && !x.is_complex();
  MaybeDims counted = dims;
  if (counted)
    for (int64_t& d : *counted) d = wrap_dim(d, x.dim());
  Tensor sum = sum_over((even ? x : x.abs()).pow(order), counted, keepdim);
  return sum.pow(1 / p);
}

/// Slices along `dim` whose norm is above `most` are brought down to it.
Tensor renormed(const Tensor& self, const Scalar& p, int64_t dim, const Scalar& most) {
  Dims others;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != (dim < 0 ? dim + self.dim() : dim)) others.push_back(d);
  bool narrow = self.dtype() == DType::Float16 || self.dtype() == DType::BFloat16;
  Tensor norm = norm_of(self, p, others, true, narrow ? MaybeType(DType::Float32) : MaybeType());
  Tensor above = norm.gt(most), scaled = (norm + 1e-7).reciprocal() * most;
  Tensor factor = where(above, scaled, number_like(norm, 1.0));
  return self.mul(narrow ? factor._to_copy({.dtype = self.dtype()}) : factor).contiguous();
}

Tensor log_of_sum(const Tensor& given, const Dims& dims, bool keepdim) {
  Tensor self = as_real(given);
  if (self.sym_numel() == 0) return self.exp().sum(dims, keepdim).log();
  Tensor largest = self.amax(dims, true);
  largest = number_where(largest.abs().eq(kInfinity), 0.0, largest);
  Tensor shift = keepdim ? largest : largest.squeeze(dims);
  return self.sub(largest).exp().sum(dims, keepdim).log().add(shift);
}

}  // namespace

void add_reductions(DecompositionTable& table) {
  table.add("aten::sum", [](const Tensor& x, MaybeType dtype) { return x.sum(Dims(), false, dtype); });
  table.add("aten::linalg_vector_norm", norm_of);
  table.add("aten::norm.ScalarOpt_dim", [](const Tensor& x, MaybeScalar p, const Dims& dims, bool keepdim) {
    return norm_of(x, p.value_or(2.0), dims, keepdim, {});
  });
  table.add("aten::logsumexp", log_of_sum);
  table.add("aten::all", [](const Tensor& x) {
    return x.logical_not().any(argument::Optional<argument::IntList>(std::nullopt)).logical_not();
  });
  table.add("aten::all.dim",
            [](const Tensor& x, int64_t dim, bool keepdim) { return x.logical_not().any(dim, keepdim).logical_not(); });
  table.add("aten::all.dims", [](const Tensor& x, MaybeDims dims, bool keepdim) {
    Tensor none = over(dims, [&](const auto& d) { return x.logical_not().any(d, keepdim); }).logical_not();
    return x.dtype() == DType::UInt8 ? none._to_copy({.dtype = DType::UInt8}) : none;
  });
  table.add("aten::trace", [](const Tensor& x) { return x.diagonal().clone(MemoryFormat::Contiguous).sum(); });
  table.add("aten::renorm", renormed);
  table.add("aten::aminmax", [](const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
    Dims dims = dim ? Dims{*dim} : Dims();
    Tensor least = x.amin(dims, keepdim), most = x.amax(dims, keepdim);
    return std::make_tuple(least, most);
  });
  table.add("aten::count_nonzero.dim_IntList", [](const Tensor& x, const Dims& dims) { return x.ne(0).sum(dims); });
  table.add("aten::count_nonzero", [](const Tensor& x, std::optional<int64_t> dim) {
    return sum_over(x.ne(0), dim ? MaybeDims(Dims{*dim}) : MaybeDims(), false);
  });
  table.add("aten::nansum", [](const Tensor& x, MaybeDims dims, bool keepdim, MaybeType dtype) {
    return sum_over(number_where(x.isnan(), 0, x), dims, keepdim, dtype);
  });
  auto number = [](MaybeScalar correction) { return correction ? correction->to_double() : 1.0; };
  table.add("aten::std.correction", [=](const Tensor& x, MaybeDims dims, MaybeScalar correction, bool keepdim) {
    return over(dims, [&](const auto& d) { return x.var(d, number(correction), keepdim); }).sqrt();
  });
  table.add("aten::std_mean.correction", [=](const Tensor& x, MaybeDims dims, MaybeScalar correction, bool keepdim) {
    auto [variance, mean] = over(dims, [&](const auto& d) { return var_mean(x, d, number(correction), keepdim); });
    return std::make_tuple(variance.sqrt(), mean);
  });
}

}  // namespace umbra::core_table
