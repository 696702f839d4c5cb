#include "kernels/embedding.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/copy.h"
#include "kernels/index.h"
#include "kernels/lanes.h"
#include "kernels/parallel.h"
#include "kernels/visit.h"
#include "kernels/walk.h"

namespace umbra::kernels {
namespace {

// A tensor of any shape as one row, copied where its strides ask for it.
Tensor flattened(const Tensor& t) {
  Tensor dense = contiguous(t);
  return alias_tensor(dense, {dense.numel()}, {1}, dense.storage_offset());
}

// Adds the rows of one part of the table, which starts at zero. Each thread owns a range of rows, so that no two write
// to the same one and sums come out in the same order with any number of threads.
template <class T> struct RowSums {
  const int64_t* positions;
  const int64_t* counts;  // null unless sums are scaled
  int64_t count, width, padding;
  const T* grad;
  T* table;
  int64_t row_stride, column_stride;

  void operator()(int64_t first, int64_t last) const {
    if (column_stride == 1) sum_rows(first, last, std::integral_constant<int64_t, 1>());  // loops that become vectors
    else sum_rows(first, last, column_stride);
  }

 private:
  template <class Stride> void sum_rows(int64_t first, int64_t last, Stride stride) const {
    for (int64_t row = first; row < last; ++row)
      for (int64_t j = 0; j < width; ++j) table[row * row_stride + j * stride] = T(0);
    for (int64_t i = 0; i < count; ++i) {
      int64_t row = positions[i];
      if (row < first || row >= last || row == padding) continue;
      auto scale = counts ? Compute<T>(1) / static_cast<Compute<T>>(counts[row]) : Compute<T>(1);
      const T* __restrict from = grad + i * width;
      T* __restrict to = table + row * row_stride;
      for (int64_t j = 0; j < width; ++j) {
        T& target = to[j * stride];
        target = static_cast<T>(static_cast<Compute<T>>(target) + scale * static_cast<Compute<T>>(from[j]));
      }
    }
  }
};

// The vector norm of a row; its sum is kept in the type that the row is computed in.
template <class T> double row_norm(const T* row, int64_t width, int64_t stride, double p) {
  auto size = [&](int64_t j) { return std::abs(static_cast<Compute<T>>(row[j * stride])); };
  using C = decltype(size(0));
  if (width == 1 && p != 0) return static_cast<double>(size(0));  // whatever its powers would do
  C sum = p == -INFINITY ? C(INFINITY) : C(0);
  if (p == 1) sum = sum_lanes<C>(width, size);
  else if (p == 2) sum = sum_lanes<C>(width, [&](int64_t j) { return size(j) * size(j); });
  else
    for (int64_t j = 0; j < width; ++j) {
      C x = size(j);
      if (p == INFINITY) sum = std::max(sum, x);
      else if (p == -INFINITY) sum = std::min(sum, x);
      else sum += p == 0 ? C(x != 0) : std::pow(x, static_cast<C>(p));
    }
  if (p == 2) sum = std::sqrt(sum);
  else if (std::isfinite(p) && p != 0 && p != 1) sum = std::pow(sum, static_cast<C>(1 / p));
  if constexpr (std::is_same_v<C, Compute<T>>) sum = static_cast<C>(static_cast<T>(sum));
  return static_cast<double>(sum);
}

}  // namespace

void embedding_renorm(const Tensor& table, const Tensor& indices, double max_norm, double norm_type) {
  Tensor positions = cast(flattened(indices), DType::Int64);
  int64_t rows = table.size(0), width = table.size(1);
  std::vector<char> named(static_cast<size_t>(rows), 0);
  const int64_t* position = positions.data<int64_t>();
  for (int64_t i = 0, count = positions.numel(); i < count; ++i) {
    int64_t row = position[i];
    if (row < -rows || row >= rows)
      fail<IndexError>("select(): index ", row, " out of range for tensor of size ", to_string(table.sym_sizes()),
                       " at dimension 0");
    named[static_cast<size_t>(row < 0 ? row + rows : row)] = 1;
  }
  check<NotImplementedError>(is_differentiable(table.dtype()),
                             "norm(): input dtype should be either floating point or complex. Got ",
                             kernel_name(table.dtype()), " instead.");
  visit<DifferentiableTypes>(table.dtype(), "embedding_renorm", [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t stride = table.stride(1);
    for (int64_t number = 0; number < rows; ++number) {
      if (!named[static_cast<size_t>(number)]) continue;
      T* row = table.data<T>() + number * table.stride(0);
      double norm = row_norm(row, width, stride, norm_type);
      if (!(norm > max_norm)) continue;
      Compute<T> scale = static_cast<T>(static_cast<Compute<T>>(max_norm / (norm + 1e-7)));  // a number of the table's
      for (int64_t j = 0; j < width; ++j)
        row[j * stride] = static_cast<T>(static_cast<Compute<T>>(row[j * stride]) * scale);
    }
  });
}

void embedding(const Tensor& out, const Tensor& weight, const Tensor& indices) { select_rows(out, weight, indices); }

void embedding_dense_backward(const Tensor& grad_weight, const Tensor& grad_output, const Tensor& indices,
                              int64_t padding_idx, bool scale_grad_by_freq) {
  int64_t rows = grad_weight.size(0);
  Tensor positions = cast(flattened(indices), DType::Int64);
  Tensor grad = contiguous(grad_output);
  std::vector<int64_t> counts;
  if (scale_grad_by_freq) {
    counts.assign(rows, 0);
    for (int64_t i = 0; i < positions.numel(); ++i) {
      int64_t row = positions.data<int64_t>()[i];
      if (row >= 0 && row < rows) ++counts[row];
    }
  }
  visit<AllTypes>(grad_weight.dtype(), "embedding_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    RowSums<T> sums{positions.data<int64_t>(),
                    scale_grad_by_freq ? counts.data() : nullptr,
                    positions.numel(),
                    grad_weight.size(1),
                    padding_idx,
                    grad.data<T>(),
                    grad_weight.data<T>(),
                    grad_weight.stride(0),
                    grad_weight.stride(1)};
    int64_t work = positions.numel() * sums.width;
    parallel_for(0, rows, work < kGrain ? rows : 1, sums);
  });
}

}  // namespace umbra::kernels
