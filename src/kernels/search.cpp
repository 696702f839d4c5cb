#include "kernels/search.h"

#include <algorithm>

#include "kernels/copy.h"
#include "kernels/parallel.h"
#include "kernels/rows.h"
#include "kernels/visit.h"

namespace umbra::kernels {

namespace {

/// The number of elements of a row that come before `x`; NaN comes behind all numbers.
/// Where the row is in no order, which ones are looked at shows in the result: the middle of what is left, as PyTorch
/// does.
template <bool right, class T, class At> int64_t position(int64_t n, T x, const At& at) {
  int64_t low = 0, high = n;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    auto m = at(middle);
    // Written so that comparisons with NaN, which are false, go the way of numbers beyond all others.
    bool before = right ? !(m > x) : !(m >= x);
    if (before) low = middle + 1;
    else high = middle;
  }
  return low;
}

}  // namespace

void search_sorted(const Tensor& out, const Tensor& sorted, const Tensor& values, const Tensor& sorter, bool right) {
  if (values.numel() == 0) return;
  Tensor rows = contiguous(sorted), in = contiguous(values), order = sorter.defined() ? contiguous(sorter) : Tensor();
  DenseOutput dense(out);
  int64_t n = sorted.sizes().back(), width = values.dim() == 0 ? 1 : values.sizes().back();
  bool one_row = sorted.dim() == 1;
  visit<RealTypes>(sorted.dtype(), "searchsorted_out_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    visit<IndexTypes>(out.dtype(), "searchsorted_out_cpu", [&](auto index_tag) {
      using Index = typename decltype(index_tag)::type;
      Index* to = dense.tensor().data<Index>();
      parallel_for(0, in.numel(), 512, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          int64_t start = one_row ? 0 : i / width * n;
          const T* row = rows.data<T>() + start;
          const int64_t* places = order.defined() ? order.data<int64_t>() + start : nullptr;
          C x = static_cast<C>(in.data<T>()[i]);
          auto in_row = [&](int64_t k) { return static_cast<C>(row[k]); };
          auto in_order = [&](int64_t k) { return static_cast<C>(row[places[k]]); };
          auto find = [&](const auto& at) { return right ? position<true>(n, x, at) : position<false>(n, x, at); };
          to[i] = static_cast<Index>(places ? find(in_order) : find(in_row));
        }
      });
    });
  });
  dense.finish();
}

void is_in(const Tensor& out, const Tensor& elements, const Tensor& others, bool invert) {
  Tensor in = contiguous(elements), row = contiguous(others);
  DenseOutput dense(out);
  visit<RealTypes>(elements.dtype(), "isin", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    std::vector<C> known;
    for (int64_t i = 0; i < row.numel(); ++i)
      if (C x = static_cast<C>(row.data<T>()[i]); x == x) known.push_back(x);
    std::sort(known.begin(), known.end());
    bool* to = dense.tensor().data<bool>();
    parallel_for(0, in.numel(), 2048, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        C x = static_cast<C>(in.data<T>()[i]);
        to[i] = (x == x && std::binary_search(known.begin(), known.end(), x)) != invert;
      }
    });
  });
  dense.finish();
}

}  // namespace umbra::kernels
