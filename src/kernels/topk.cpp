// The largest or least elements of lines. Which of equal elements are taken, and in what order, shows; PyTorch leaves
// it to the standard library's algorithms, and so do we where a line has equal ones. Others are found by faster means.
#include <algorithm>
#include <optional>
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
  /// Whether sorting is the faster way: to the order of many, of a line that is long enough for digits.
  bool is_sorting() const { return sorted && !takes_few() && n >= kShort; }
  static constexpr int64_t kShort = 96;
};

/// Takes elements of lines the way PyTorch does: the exchanges of the algorithms follow from comparisons of values
/// alone, and keys compare as values do.
template <class T, class Key> class LineSelector {
  using Number = decltype(order_key(Compute<T>()));

 public:
  explicit LineSelector(const Selection& selection)
      : selection_(selection),
        flip_(selection.largest ? ~Number(0) : Number(0)),
        keys_(selection.takes_few() ? selection.wanted + 1 : selection.n) {}

  void select(const T* in, int64_t step) {
    if (selection_.takes_few()) return select_few(in, step);
    for (int64_t i = 0; i < selection_.n; ++i) keys_[i] = Key(number(in[i * step]), i);
    auto begin = keys_.begin(), last = begin + selection_.wanted - 1;
    std::nth_element(begin, last, keys_.end(), comes_first);
    if (selection_.sorted) std::sort(begin, last, comes_first);
  }
  int64_t place(int64_t rank) const { return keys_[rank].place(); }

 private:
  static constexpr auto comes_first = [](const Key& a, const Key& b) { return a.key() < b.key(); };
  Number number(T x) const { return order_key(static_cast<Compute<T>>(x)) ^ flip_; }

  // std::partial_sort, which keeps the first so far in a heap and looks at the others in turn: most of them are passed
  // by many at a time.
  void select_few(const T* in, int64_t step) {
    constexpr int64_t kChunk = 64;
    Number numbers[kChunk];
    const int64_t wanted = selection_.wanted;
    auto heap = keys_.begin(), heap_end = heap + wanted;
    for (int64_t i = 0; i < wanted; ++i) heap[i] = Key(number(in[i * step]), i);
    std::make_heap(heap, heap_end, comes_first);
    auto bound = static_cast<Number>(heap->key());
    for (int64_t begin = wanted; begin < selection_.n; begin += kChunk) {
      int64_t count = std::min(kChunk, selection_.n - begin);
      const T* from = in + begin * step;
      if (step == 1)
        for (int64_t i = 0; i < count; ++i) numbers[i] = number(from[i]);
      else
        for (int64_t i = 0; i < count; ++i) numbers[i] = number(from[i * step]);
      Number least = bound;
      for (int64_t i = 0; i < count; ++i) least = std::min(least, numbers[i]);
      if (least == bound) continue;
      for (int64_t i = 0; i < count; ++i) {
        if (numbers[i] >= bound) continue;
        *heap_end = Key(numbers[i], begin + i);
        std::pop_heap(heap, heap_end + 1, comes_first);  // the last so far makes room for it
        bound = static_cast<Number>(heap->key());
      }
    }
    std::sort_heap(heap, heap_end, comes_first);
  }

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

int64_t topk_workspace(const Tensor& self, int64_t dim, int64_t wanted, bool sorted) {
  if (self.numel() == 0 || self.dim() == 0 || wanted == 0) return 0;
  Selection selection{self.size(dim), wanted, true, sorted};
  return selection.is_sorting() ? sort_workspace(self, dim, wanted) : 0;
}

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
    const T* elements = self.data<T>();
    T* taken = values.data<T>();
    int64_t* places = indices.data<int64_t>();
    auto select_lines = [&]<class Key>(int64_t begin, int64_t end, const Key*) {
      std::optional<LineSorter<T, Key>> quick;
      if (selection.is_sorting()) quick.emplace(selection.n, selection.wanted, largest);
      LineSelector<T, Key> exact(selection);
      bool expect_equal = !quick;  // lines are mostly like the one before them
      Odometer<3> at(lines);
      at.seek(begin);
      for (int64_t i = begin; i < end; ++i, at.next()) {
        const T* in = elements + at[0];
        T* out = taken + at[1];
        int64_t* where = places + at[2];
        auto write = [&](const auto& found) {
          for (int64_t k = 0; k < selection.wanted; ++k) {
            out[k * out_step] = in[found.place(k) * step];
            where[k * where_step] = found.place(k);
          }
        };
        if (!expect_equal) {
          quick->sort(in, step);
          write(*quick);
          if (!quick->has_equal()) continue;
        }
        exact.select(in, step);
        write(exact);
        expect_equal = !quick || has_equal(selection, in, step, out, out_step);
      }
    };
    with_key_type<Compute<T>>(selection.n, [&](auto* key) {
      parallel_for(0, lines.numel(), line_grain(selection.n),
                   [&](int64_t begin, int64_t end) { select_lines(begin, end, key); });
    });
  });
}

}  // namespace umbra::kernels
