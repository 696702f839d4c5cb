// The largest or least elements of lines. Which of equal elements are taken, and in what order, shows; PyTorch leaves
// it to the standard library's algorithms, and so do we where a line has equal ones. Others are found by faster means.
#include <algorithm>
#include <vector>

#include "kernels/line_sorter.h"
#include "kernels/parallel.h"
#include "kernels/sort.h"
#include "kernels/sort_keys.h"
#include "kernels/visit.h"
#include "kernels/walk.h"

namespace umbra::kernels {

namespace {

/// What is asked of each line.
struct Selection {
  int64_t n, wanted;  // elements of a line, and how many of them are taken
  bool largest, sorted;

  bool takes_few() const { return wanted * 64 <= n; }
  /// Whether PyTorch gives them in order; else they lie as its algorithm left them.
  bool has_order() const { return sorted || takes_few(); }
};

/// Takes elements of lines the way PyTorch does: the exchanges of the algorithms follow from comparisons of values
/// alone, and keys compare as values do.
template <class T, class Key> class LineSelector {
  using Number = decltype(order_key(Compute<T>()));

 public:
  explicit LineSelector(const Selection& selection)
      : selection_(selection), flip_(selection.largest ? ~Number(0) : Number(0)) {}

  void select(const T* in, int64_t step) {
    keys_.resize(selection_.n);
    for (int64_t i = 0; i < selection_.n; ++i)
      keys_[i] = Key(order_key(static_cast<Compute<T>>(in[i * step])) ^ flip_, i);
    auto first = [](const Key& a, const Key& b) { return a.key() < b.key(); };
    auto begin = keys_.begin(), last = begin + selection_.wanted - 1;
    if (selection_.takes_few()) return std::partial_sort(begin, last + 1, keys_.end(), first);
    std::nth_element(begin, last, keys_.end(), first);
    if (selection_.sorted) std::sort(begin, last, first);
  }
  int64_t place(int64_t rank) const { return keys_[rank].place(); }

 private:
  Selection selection_;
  Number flip_;
  std::vector<Key> keys_;
};

/// Whether what was found has equal elements, or there are more like the last one.
template <class T>
bool has_equal(const Selection& selection, const T* in, int64_t step, const T* found, int64_t found_step) {
  using Number = Compute<T>;
  auto equal = [](Number a, Number b) { return a == b || (is_nan(a) && is_nan(b)); };
  auto at = [&](int64_t k) { return static_cast<Number>(found[k * found_step]); };
  for (int64_t k = 1; k < selection.wanted; ++k)
    if (equal(at(k - 1), at(k))) return true;
  int64_t as_last = 0;
  const Number last = at(selection.wanted - 1);
  for (int64_t i = 0; i < selection.n; ++i) as_last += equal(static_cast<Number>(in[i * step]), last);
  return as_last > 1;
}

}  // namespace

void topk(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, bool largest, bool sorted) {
  check_type<RealTypes>(self.dtype(), "topk_cpu");
  if (values.numel() == 0 || self.dim() == 0) return sort(values, indices, self, dim, largest);
  const Selection selection{self.sizes()[dim], values.sizes()[dim], largest, sorted};
  Strided<3> lines;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != dim) lines.push(self.sizes()[d], {self.strides()[d], values.strides()[d], indices.strides()[d]});
  visit<RealTypes>(self.dtype(), "topk_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t step = self.strides()[dim], out_step = values.strides()[dim], where_step = indices.strides()[dim];
    auto select_lines = [&]<class Key>(int64_t begin, int64_t end, const Key*) {
      LineSorter<T, Key> quick(selection.n, selection.wanted, largest);
      LineSelector<T, Key> exact(selection);
      Odometer<3> at(lines);
      at.seek(begin);
      // Lines are mostly like the one before them.
      bool expect_equal = !selection.has_order();
      for (int64_t i = begin; i < end; ++i, at.next()) {
        const T* in = self.data<T>() + at[0];
        T* out = values.data<T>() + at[1];
        int64_t* where = indices.data<int64_t>() + at[2];
        auto write = [&](const auto& found) {
          for (int64_t k = 0; k < selection.wanted; ++k) {
            out[k * out_step] = in[found.place(k) * step];
            where[k * where_step] = found.place(k);
          }
        };
        if (!expect_equal) {
          quick.sort(in, step);
          write(quick);
          if (!has_equal(selection, in, step, out, out_step)) continue;
        }
        exact.select(in, step);
        write(exact);
        expect_equal = !selection.has_order() || has_equal(selection, in, step, out, out_step);
      }
    };
    with_key_type<Compute<T>>(selection.n, [&](auto* key) {
      parallel_for(0, lines.numel(), line_grain(selection.n),
                   [&](int64_t begin, int64_t end) { select_lines(begin, end, key); });
    });
  });
}

}  // namespace umbra::kernels
