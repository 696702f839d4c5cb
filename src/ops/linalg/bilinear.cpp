// Products of three tensors: bilinear layers and the sums of products that they are made of.
#include "core/cpp_name.h"
#include "ops/common/batching.h"
#include "ops/common/out_variant.h"
#include "ops/linalg/linalg.h"
#include "ops/pointwise/family.h"

namespace umbra::ops {
namespace {

/// Dimensions of size 1 at these places.
Tensor with_dims(Tensor t, const std::vector<int64_t>& dims) {
  for (int64_t d : dims) t = t.unsqueeze(d);
  return t;
}

/// The product as an equation of Einstein's, which matrix products serve; none where a dimension is nobody's.
std::optional<std::string> trilinear_equation(int64_t rank, std::array<const std::vector<int64_t>*, 3> expanded,
                                              const std::vector<int64_t>& summed) {
  auto has = [rank](const std::vector<int64_t>& dims, int64_t d) {
    return std::find(dims.begin(), dims.end(), d) != dims.end() ||
           std::find(dims.begin(), dims.end(), d - rank) != dims.end();
  };
  std::string equation, result;
  for (const auto* dims : expanded) {
    for (int64_t d = 0; d < rank; ++d)
      if (!has(*dims, d)) equation += static_cast<char>('a' + d);
    equation += ',';
  }
  for (int64_t d = 0; d < rank; ++d) {
    if (equation.find(static_cast<char>('a' + d)) == std::string::npos) return std::nullopt;
    if (!has(summed, d)) result += static_cast<char>('a' + d);
  }
  equation.back() = '-';
  return equation + ">" + result;
}

Tensor trilinear_parts(const Tensor& i1, const Tensor& i2, const Tensor& i3, std::vector<int64_t> expand1,
                       std::vector<int64_t> expand2, std::vector<int64_t> expand3, std::vector<int64_t> sumdim,
                       int64_t unroll_dim) {
  int64_t rank = i1.dim() + static_cast<int64_t>(expand1.size());
  check(unroll_dim >= 0 && unroll_dim < rank, "unroll_dim must be in [0,", rank - 1, "]");
  for (const std::vector<int64_t>* dims : {&expand1, &expand2, &expand3, &sumdim})
    dim_mask(*dims, rank);  // each list says what is wrong with it, in turn
  // Narrow types are multiplied in float: three factors lose too much otherwise.
  DType wide = compute_type(i1.dtype());
  bool one_type = i1.dtype() == i2.dtype() && i1.dtype() == i3.dtype() && !is_integral(i1.dtype(), true);
  // Matrix products pay where there is something to multiply.
  constexpr int64_t kSmall = 4096;
  auto is_below = [](const Tensor& t, int64_t size) {
    return !t.sym_numel().is_symbolic() && t.sym_numel().value() < size;
  };
  bool small = is_below(i1, kSmall) && is_below(i2, kSmall) && is_below(i3, kSmall);
  bool nothing = is_below(i1, 1) || is_below(i2, 1) || is_below(i3, 1);
  if (one_type && !small && !nothing && !sumdim.empty() && rank <= 26)
    if (auto equation = trilinear_equation(rank, {&expand1, &expand2, &expand3}, sumdim))
      return einsum(*equation, {i1.to(wide), i2.to(wide), i3.to(wide)}).contiguous().to(i1.dtype());
  Tensor product = with_dims(i1.to(wide), expand1).mul(with_dims(i2, expand2)).mul(with_dims(i3, expand3));
  return (sumdim.empty() ? product : product.sum(IntArrayRef(sumdim))).to(i1.dtype());
}

/// The gradient of one factor of a trilinear product.
Tensor trilinear_gradient(const Tensor& grad, const Tensor& a, const std::vector<int64_t>& expand_a, const Tensor& b,
                          const std::vector<int64_t>& expand_b, std::vector<int64_t> own, std::vector<int64_t> summed) {
  int64_t rank = a.dim() + static_cast<int64_t>(expand_a.size());
  std::vector<int64_t> back = wrap_dims(summed, rank);
  std::sort(back.begin(), back.end());
  Tensor product = with_dims(grad, back).mul(with_dims(a, expand_a).conj()).mul(with_dims(b, expand_b).conj());
  own = wrap_dims(own, rank);
  return own.empty() ? product : product.sum(IntArrayRef(own));
}

UMBRA_OPERATOR(
    "_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, int "
    "unroll_dim=1) -> Tensor")
    .generated_out("_trilinear.out")
    .all_backends(trilinear_parts)
    .gradient("i1, i2, i3", {"grad", "i1", "i2", "i3", "expand1", "expand2", "expand3", "sumdim"},
              [](const Tensor& grad, const Tensor& i1, const Tensor& i2, const Tensor& i3, std::vector<int64_t> expand1,
                 std::vector<int64_t> expand2, std::vector<int64_t> expand3, std::vector<int64_t> sumdim) {
                auto fit = [](const Tensor& t, const Tensor& like) { return ops::sum_to_size(t, like.sym_sizes()); };
                return std::tuple{fit(trilinear_gradient(grad, i2, expand2, i3, expand3, expand1, sumdim), i1),
                                  fit(trilinear_gradient(grad, i1, expand1, i3, expand3, expand2, sumdim), i2),
                                  fit(trilinear_gradient(grad, i1, expand1, i2, expand2, expand3, sumdim), i3)};
              })
    .use(batch_through(trilinear_parts));

UMBRA_OPERATOR("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor")
    .composite([](const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias) {
      check(input1.dtype() == input2.dtype() && input1.dtype() == weight.dtype() &&
                (!bias.defined() || bias.dtype() == input1.dtype()),
            "All tensors must have the same dtype, got input1: ", cpp_name(input1.dtype()),
            ", input2: ", cpp_name(input2.dtype()), ", weight: ", cpp_name(weight.dtype()),
            bias.defined() ? concat(", bias: ", cpp_name(bias.dtype())) : std::string());
      check(input1.dim() == input2.dim(), "bilinear(): input dimensions do not match: got ", input1.dim(), " and ",
            input2.dim());
      for (int64_t d = 0; d + 1 < input1.dim(); ++d)
        check(input1.sym_size(d) == input2.sym_size(d), "bilinear(): input batch dimensions do not match at dim ", d,
              ": got ", input1.sym_size(d), " and ", input2.sym_size(d));
      check(input1.sym_size(-1) == weight.sym_size(1), "bilinear(): input1 size does not match weight size: got ",
            input1.sym_size(-1), " but expected ", weight.sym_size(1));
      check(input2.sym_size(-1) == weight.sym_size(2), "bilinear(): input2 size does not match weight size: got ",
            input2.sym_size(-1), " but expected ", weight.sym_size(2));
      check(!bias.defined() || bias.sym_size(0) == weight.sym_size(0),
            "bilinear(): bias size does not match weight size: got ", bias.defined() ? bias.sym_size(0) : SymInt(0),
            " but expected ", weight.sym_size(0));
      // One "bmm" over all rows decides about the types that have such a product.
      check<NotImplementedError>(input1.dtype() != DType::Bool, "\"bmm\" not implemented for 'Bool'");
      SymShape shape(input1.sym_sizes());
      shape[shape.size() - 1] = weight.sym_size(0);
      Tensor rows1 = input1.reshape({-1, input1.sym_size(-1)}), rows2 = input2.reshape({-1, input2.sym_size(-1)});
      Tensor out = _trilinear(rows1, weight, rows2, {1, 3}, {0}, {1, 2}, {2, 3}).reshape(shape);
      return bias.defined() ? out.add(bias) : out;
    });

}  // namespace
}  // namespace umbra::ops
