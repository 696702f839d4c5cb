#include "kernels/search.h"

#include <algorithm>
#include <limits>

#include "kernels/copy.h"
#include "kernels/parallel.h"
#include "kernels/rows.h"
#include "kernels/vector/search.h"
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

/// Values that are looked for in one row, many at a time; false where there is no such form.
template <class T, class Index>
bool search_together(const T* row, int64_t n, const T* values, int64_t count, Index* to, bool right) {
  if constexpr (!std::is_floating_point_v<T>) {
    return false;
  } else {
    constexpr int64_t kPiece = 256;
    if (n > std::numeric_limits<int32_t>::max()) return false;
    if constexpr (std::is_same_v<Index, int64_t>) {
      UMBRA_VECTOR(template search_row<T>)(row, n, values, count, to, right);
    } else {
      int64_t found[kPiece];
      for (int64_t at = 0; at < count; at += kPiece) {
        int64_t piece = std::min(kPiece, count - at);
        UMBRA_VECTOR(template search_row<T>)(row, n, values + at, piece, found, right);
        std::copy_n(found, piece, to + at);
      }
    }
    return true;
  }
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
        // Row by row, if each has values of its own.
        for (int64_t i = begin; i < end && !order.defined();) {
          int64_t start = one_row ? 0 : i / width * n, stop = one_row ? end : std::min(end, (i / width + 1) * width);
          if (!search_together(rows.data<T>() + start, n, in.data<T>() + i, stop - i, to + i, right)) break;
          begin = i = stop;
        }
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
  visit<detail::Join<RealTypes, WideUnsigned>>(elements.dtype(), "isin_default_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    std::vector<C> known;
    for (int64_t i = 0; i < row.numel(); ++i)
      if (C x = static_cast<C>(row.data<T>()[i]); x == x) known.push_back(x);
    bool* to = dense.tensor().data<bool>();
    constexpr size_t kFew = 8;
    if (known.size() <= kFew) {  // compared with each, whole rows at a time
      const T* from = in.numel() == 0 ? nullptr : in.data<T>();
      parallel_for(0, in.numel(), kGrain, [&](int64_t begin, int64_t end) {
        std::fill(to + begin, to + end, invert);
        for (C x : known)
          for (int64_t i = begin; i < end; ++i) to[i] = static_cast<C>(from[i]) == x ? !invert : to[i];
      });
      return;
    }
    std::sort(known.begin(), known.end());
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
