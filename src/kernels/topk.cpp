// The largest or least elements of lines. Which of equal elements are taken, and in what order, shows; PyTorch leaves
// it to the standard library's algorithms, and so do we where a line has equal ones. Others are found by faster means.
#include <algorithm>
#include <vector>

#include "kernels/parallel.h"
#include "kernels/sort.h"
#include "kernels/sort_keys.h"
#include "kernels/visit.h"
#include "kernels/walk.h"

namespace umbra::kernels {

namespace {

/// One line of `n` elements, of which `wanted` are taken.
template <class T> class Line {
  using Number = Compute<T>;
  struct Element {
    Number value;
    int64_t place;
  };

 public:
  Line(int64_t n, int64_t wanted, bool largest, bool sorted)
      : n_(n), wanted_(wanted), largest_(largest), sorted_(sorted) {}

  /// Whether the order in which they were found is one that PyTorch might not have.
  bool is_in_doubt(const T* in, int64_t step, const T* found, int64_t found_step) const {
    if (!sorted_ && !takes_few()) return true;
    auto at = [&](int64_t k) { return static_cast<Number>(found[k * found_step]); };
    for (int64_t k = 1; k < wanted_; ++k)
      if (equal(at(k - 1), at(k))) return true;
    int64_t as_last = 0;
    for (int64_t i = 0; i < n_; ++i) as_last += equal(static_cast<Number>(in[i * step]), at(wanted_ - 1));
    return as_last > 1;
  }

  void select(const T* in, int64_t step) {
    elements_.resize(n_);
    for (int64_t i = 0; i < n_; ++i) elements_[i] = {static_cast<Number>(in[i * step]), i};
    if (largest_) select_by([](const Element& a, const Element& b) { return before(b.value, a.value); });
    else select_by([](const Element& a, const Element& b) { return before(a.value, b.value); });
  }
  int64_t place(int64_t rank) const { return elements_[rank].place; }

 private:
  static bool equal(Number a, Number b) { return a == b || (is_nan(a) && is_nan(b)); }
  bool takes_few() const { return wanted_ * 64 <= n_; }

  template <class Before> void select_by(Before first) {
    auto begin = elements_.begin(), last = begin + wanted_ - 1;
    if (takes_few()) return std::partial_sort(begin, begin + wanted_, elements_.end(), first);
    std::nth_element(begin, last, elements_.end(), first);
    if (sorted_) std::sort(begin, last, first);
  }

  int64_t n_, wanted_;
  bool largest_, sorted_;
  std::vector<Element> elements_;
};

}  // namespace

void topk(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim, bool largest, bool sorted) {
  check_type<RealTypes>(self.dtype(), "topk_cpu");
  sort(values, indices, self, dim, largest);
  if (values.numel() == 0 || self.dim() == 0) return;
  int64_t n = self.sizes()[dim], wanted = values.sizes()[dim];
  Strided<3> lines;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != dim) lines.push(self.sizes()[d], {self.strides()[d], values.strides()[d], indices.strides()[d]});
  visit<RealTypes>(self.dtype(), "topk_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t step = self.strides()[dim], out_step = values.strides()[dim], where_step = indices.strides()[dim];
    auto grain = std::max<int64_t>(1, kGrain / n);
    parallel_for(0, lines.numel(), grain, [&](int64_t begin, int64_t end) {
      Line<T> line(n, wanted, largest, sorted);
      Odometer<3> at(lines);
      at.seek(begin);
      for (int64_t i = begin; i < end; ++i, at.next()) {
        const T* in = self.data<T>() + at[0];
        T* out = values.data<T>() + at[1];
        if (!line.is_in_doubt(in, step, out, out_step)) continue;
        line.select(in, step);
        for (int64_t k = 0; k < wanted; ++k) {
          out[k * out_step] = in[line.place(k) * step];
          indices.data<int64_t>()[at[2] + k * where_step] = line.place(k);
        }
      }
    });
  });
}

}  // namespace umbra::kernels
