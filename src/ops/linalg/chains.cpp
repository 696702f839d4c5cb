// Products of chains of matrices, in the cheapest order: multi_dot, chain_matmul.
#include <atomic>
#include <limits>

#include "core/cpp_name.h"
#include "ops/common/out_variant.h"
#include "ops/common/warn_once.h"
#include "umbra/dispatch/define.h"
#include "umbra/dispatch/writes.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

/// The cheapest order of a chain of products, by the sizes between the matrices: split[i][j] is where i..j comes apart.
std::vector<std::vector<size_t>> cheapest_splits(const std::vector<int64_t>& sizes) {
  size_t n = sizes.size() - 1;
  std::vector<std::vector<int64_t>> cost(n, std::vector<int64_t>(n, 0));
  std::vector<std::vector<size_t>> split(n, std::vector<size_t>(n, 0));
  for (size_t length = 1; length < n; ++length)
    for (size_t i = 0; i + length < n; ++i) {
      size_t j = i + length;
      cost[i][j] = std::numeric_limits<int64_t>::max();
      for (size_t k = i; k < j; ++k) {
        int64_t here = cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1];
        if (here >= cost[i][j]) continue;
        cost[i][j] = here;
        split[i][j] = k;
      }
    }
  return split;
}

Tensor multiply_chain(const std::vector<Tensor>& tensors, const std::vector<std::vector<size_t>>& split, size_t i,
                      size_t j, const Tensor& out) {
  if (i == j) return tensors[i];
  size_t k = split[i][j];
  Tensor left = multiply_chain(tensors, split, i, k, {}), right = multiply_chain(tensors, split, k + 1, j, {});
  return out.defined() ? mm_out(out, left, right) : left.mm(right);
}

/// The product of a chain, in `out` where that is defined.
Tensor multi_dot_into(std::vector<Tensor> tensors, const Tensor& out) {
  size_t n = tensors.size();
  check(n >= 2, "multi_dot(): expected at least 2 tensors but got ", n);
  SymShape shape;
  check(tensors[0].dim() == 1 || tensors[0].dim() == 2, "multi_dot(): the first tensor must be 1D or 2D but got ",
        tensors[0].dim(), "D");
  if (tensors[0].dim() == 2) shape.push_back(tensors[0].sym_size(0));
  const Tensor last = tensors[n - 1];
  check(last.dim() == 1 || last.dim() == 2, "multi_dot(): the last tensor must be 1D or 2D but got ", last.dim(), "D");
  if (last.dim() == 2) shape.push_back(last.sym_size(1));
  for (size_t i = 1; i + 1 < n; ++i)
    check(tensors[i].dim() == 2, "multi_dot(): tensor ", i, " must be 2D but got ", tensors[i].dim(), "D");
  for (size_t i = 1; i < n; ++i) {
    check(tensors[i].dtype() == tensors[i - 1].dtype(),
          "multi_dot(): all tensors must have be the same dtype but tensor ", i - 1, " is ",
          cpp_name(tensors[i - 1].dtype()), " and tensor ", i, " ", cpp_name(tensors[i].dtype()));
    check(tensors[i - 1].sym_size(-1) == tensors[i].sym_size(0), "multi_dot(): tensors ", i - 1, " and ", i,
          " with shapes ", tensors[i - 1].sym_sizes(), " and ", tensors[i].sym_sizes(), " cannot be multiplied");
  }
  if (tensors[0].dim() == 1) tensors[0] = tensors[0].unsqueeze(0);
  if (last.dim() == 1) tensors[n - 1] = last.unsqueeze(-1);
  Tensor matrix;
  if (out.defined()) {
    check(out.dtype() == last.dtype(), "multi_dot(): expected out tensor to have dtype ", cpp_name(last.dtype()),
          " but got ", cpp_name(out.dtype()));
    matrix = resized_out(out, shape).view({tensors[0].sym_size(0), tensors[n - 1].sym_size(1)});
  }
  std::vector<std::vector<size_t>> splits{{0, 0}, {0, 0}};
  if (n > 2) {
    std::vector<int64_t> sizes{tensors[0].size(0)};
    for (const Tensor& t : tensors) sizes.push_back(t.size(1));
    splits = cheapest_splits(sizes);
  }
  Tensor product = multiply_chain(tensors, splits, 0, n - 1, matrix);
  return out.defined() ? out : product.view(shape);
}

Tensor multi_dot_parts(std::vector<Tensor> tensors) { return multi_dot_into(std::move(tensors), {}); }

UMBRA_OPERATOR("linalg_multi_dot(Tensor[] tensors) -> Tensor")
    .out("linalg_multi_dot.out")
    .composite(multi_dot_parts)
    .use(out_parts(multi_dot_into));

void check_chain(const std::vector<Tensor>& matrices) {
  static std::atomic<bool> told = false;
  warn_once(told, "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. ",
            "Use torch.linalg.multi_dot instead, which accepts a list of two or more tensors rather than ",
            "multiple parameters.");
  check(!matrices.empty(), "chain_matmul(): Expected one or more matrices");
  for (const Tensor& t : matrices) check(t.dim() == 2, "Tensor dimension is ", t.dim(), ", expected 2 instead.");
}

UMBRA_OPERATOR("chain_matmul(Tensor[] matrices) -> Tensor")
    .out("chain_matmul.out")
    .composite([](std::vector<Tensor> matrices) {
      check_chain(matrices);
      return matrices.size() == 1 ? matrices[0].clone() : multi_dot_parts(std::move(matrices));
    })
    .use(out_parts([](std::vector<Tensor> matrices, const Tensor& out) {
      check_chain(matrices);
      return matrices.size() == 1 ? copied_out(out, matrices[0]) : multi_dot_into(std::move(matrices), out);
    }));

}  // namespace
}  // namespace umbra::ops
