// Products of matrices, normalisation, attention.
#include "capture/core/core.h"
#include "umbra/generated/functions.h"
#include "umbra/ops/operators.h"

namespace umbra::core_table {
namespace {

using MaybeNumber = std::optional<double>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

/// A factor of a sum of whole numbers is one.
Scalar factor_of(const Tensor& self, const Scalar& number) {
  return is_integral(self.dtype(), true) && number.is_floating() ? Scalar(static_cast<int64_t>(number.to_double()))
                                                                 : number;
}

Tensor scaled_sum(const Tensor& self, const Tensor& product, const Scalar& scale, const Scalar& factor) {
  Scalar beta = factor_of(self, scale), alpha = factor_of(product, factor);
  Tensor out = alpha.equals(1) ? product : product * alpha;
  if (beta.equals(0)) return out;
  return (beta.equals(1) ? self : self * beta) + out;
}

Tensor outer_sum(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  SymInt n = a.sym_size(0), m = b.sym_size(0);
  if (self.dtype() == DType::Bool && a.dtype() == DType::Bool && b.dtype() == DType::Bool) {
    Tensor both = a.view({n, SymInt(1)}).logical_and(b);
    if (!alpha.to_bool()) both = both.logical_and(number_like(both, false));
    return beta.to_bool() ? self.expand({n, m}).logical_or(both) : both;
  }
  Tensor scaled = beta.equals(0) ? Tensor() : self.expand({n, m}) * beta;
  Tensor product = a.view({n, SymInt(1)}).mul(b) * alpha;
  return scaled.defined() ? scaled + product : product;
}

/// The result lies in memory as the kernel's does: by positions, then by batches and heads.
std::tuple<Tensor, Tensor> attention_by_parts(const Tensor& query, const Tensor& key, const Tensor& value,
                                              double dropout, bool causal, const Tensor& mask, MaybeNumber scale) {
  bool shared_keys = query.sym_size(1) != key.sym_size(1);  // by groups of heads
  auto [out, weights] =
      _scaled_dot_product_attention_math(query, key, value, mask, dropout, causal, Tensor(), scale, shared_keys);
  Tensor by_position = out.permute(IntArrayRef({2, 0, 1, 3})).clone(MemoryFormat::Contiguous);
  return {by_position.permute(IntArrayRef({1, 2, 0, 3})), weights};
}

/// The norm of each slice of `v` along `dim`, and `v` scaled to those of `g`.
std::tuple<Tensor, Tensor> with_norms(const Tensor& v, const Tensor& g, int64_t dim) {
  std::vector<int64_t> others;
  for (int64_t d = 0; d < v.dim(); ++d)
    if (d != dim) others.push_back(d);
  Tensor norm = linalg_vector_norm(v, 2, argument::Optional<argument::Ints>(others), true);
  return {v.mul(g.div(norm)), norm};
}

/// a[i+1] * b[i+2] - a[i+2] * b[i+1], counted around.
Tensor crossed(const Tensor& self, const Tensor& other, int64_t dim) {
  SymShape sizes(self.sym_sizes());
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] == 1) sizes[d] = other.sym_sizes()[d];
  Tensor a = self.sym_sizes() == sizes ? self : self.expand(sizes);
  Tensor b = other.sym_sizes() == sizes ? other : other.expand(sizes);
  int64_t at = dim < 0 ? dim + a.dim() : dim;
  Tensor places = arange(0, 3, 1, {.layout = Layout::Strided, .device = self.device(), .pin_memory = false});
  auto turned = [&](const Tensor& x, int64_t by) { return x.index_select(at, (places + by).remainder(3)); };
  auto product = [&](int64_t of_a, int64_t of_b) {
    Tensor left = turned(a, of_a);
    return left.mul(turned(b, of_b));
  };
  Tensor first = product(1, 2);
  return first.sub(product(2, 1));
}

}  // namespace

void add_layers(DecompositionTable& table) {
  table.add("aten::baddbmm", [](const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
                                const Scalar& alpha) { return scaled_sum(self, a.bmm(b), beta, alpha); });
  table.add("aten::addr", outer_sum);
  table.add("aten::dot", [](const Tensor& a, const Tensor& b) { return a.mul(b).sum(); });
  table.add("aten::mv", [](const Tensor& a, const Tensor& b) { return a.mul(b).sum(IntArrayRef({1})); });
  table.add("aten::native_batch_norm",
            [](const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
               const Tensor& variance, bool training, double momentum, double eps) -> Three {
              if (!training)
                return _native_batch_norm_legit_no_training(input, weight, bias, mean, variance, momentum, eps);
              if (!mean.defined()) return _native_batch_norm_legit(input, weight, bias, true, momentum, eps);
              return _native_batch_norm_legit(input, weight, bias, mean, variance, true, momentum, eps);
            });
  table.add("aten::_scaled_dot_product_flash_attention_for_cpu", attention_by_parts);
  table.add("aten::_weight_norm_interface", with_norms);
  table.add("aten::linalg_cross", crossed);
  table.add("aten::vdot",
            [](const Tensor& a, const Tensor& b) { return (a.is_complex() ? a.conj_physical() : a).mul(b).sum(); });
}

}  // namespace umbra::core_table
