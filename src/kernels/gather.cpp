#include "kernels/gather.h"

#include <limits>

#include "kernels/copy.h"
#include "kernels/parallel.h"
#include "kernels/visit.h"
#include "kernels/walk.h"

namespace umbra::kernels {
namespace {

// The loops of gather and scatter. `plain` is the tensor that goes along with the index element by element (out of a
// gather, source of a scatter), `self` the one that is pointed into. Lines along `dim` never meet those elsewhere, so
// they may run at the same time; the innermost loop goes along the last dimension, where memory lies.
class IndexedLines {
 public:
  IndexedLines(const Tensor& self, const Tensor& plain, int64_t dim, const Tensor& index)
      : index_(index), dim_(dim), limit_(self.sizes()[dim]), self_step_(self.strides()[dim]) {
    auto sizes = index.sizes();
    int64_t last = index.dim() - 1;
    for (int64_t d = 0; d < index.dim(); ++d) {
      if (d == dim || d == last) continue;
      outer_.push(sizes[d], {self.strides()[d], plain.strides()[d], index.strides()[d]});
    }
    outer_.simplify();
    length_ = {sizes[dim], 0, plain.strides()[dim], index.strides()[dim]};
    if (last != dim) {
      inner_ = {sizes[last], self.strides()[last], plain.strides()[last], index.strides()[last]};
    } else if (sizes[dim] < kShortLine && !outer_.sizes.empty()) {  // many short lines: across them
      inner_ = {outer_.sizes.back(), outer_.strides[0].back(), outer_.strides[1].back(), outer_.strides[2].back()};
      outer_.pop();
    }
  }

  /// Calls fn(self offset, plain offset) for every element of the index.
  template <class Fn> void run(const Fn& fn) const {
    visit<IndexTypes>(index_.dtype(), "gather", [&](auto tag) { run_with<typename decltype(tag)::type>(fn); });
  }

 private:
  static constexpr int64_t kShortLine = 16;
  struct Loop {
    int64_t size = 1, self = 0, plain = 0, index = 0;
  };

  template <class Index, class Fn> void run_with(const Fn& fn) const {
    int64_t lines = outer_.numel() * inner_.size;
    if (lines == 0 || length_.size == 0) return;
    parallel_for(0, lines, kGrain / length_.size, [&](int64_t from, int64_t to) {
      Odometer<3> at(outer_);
      // A part of the lines is a part of the innermost loop in each of several places of the outer ones.
      while (from < to) {
        int64_t first = from % inner_.size, count = std::min(inner_.size - first, to - from);
        at.seek(from / inner_.size);
        block<Index>(fn, at[0] + first * inner_.self, at[1] + first * inner_.plain, at[2] + first * inner_.index,
                     count);
        from += count;
      }
    });
  }

  /// `fn` is a copy, which no element that is written can change: what it holds stays in registers.
  template <class Index, class Fn> void block(Fn fn, int64_t self, int64_t plain, int64_t index, int64_t count) const {
    const Index* data = index_.data<Index>() + index;
    const Loop length = length_, inner = inner_;
    const int64_t step = self_step_;
    if (count == 1) {
      check_positions(data, length.index, length.size);
      if (length.index == 1 && length.plain == 1 && step == 1) {
#pragma GCC unroll 8  // of the few instructions for an element every other one would be the loop's
        for (int64_t i = 0; i < length.size; ++i) fn(self + data[i], plain + i);
      } else
        for (int64_t i = 0; i < length.size; ++i) fn(self + data[i * length.index] * step, plain + i * length.plain);
      return;
    }
    for (int64_t i = 0; i < length.size; ++i) {
      const Index* row = data + i * length.index;
      check_positions(row, inner.index, count);
      for (int64_t j = 0; j < count; ++j)
        fn(self + row[j * inner.index] * step + j * inner.self, plain + i * length.plain + j * inner.plain);
    }
  }
  // A line at a time, before it is used: a check for each element would stand in the way of the loop.
  template <class Index> void check_positions(const Index* positions, int64_t step, int64_t count) const {
    uint64_t misfits = 0, last = static_cast<uint64_t>(limit_ - 1);
    auto look = [last](int64_t position) {  // the sign bit is set where it is negative, or beyond the last
      return static_cast<uint64_t>(position) | (last - static_cast<uint64_t>(position));
    };
    if (step == 1)
      for (int64_t i = 0; i < count; ++i) misfits |= look(positions[i]);
    else
      for (int64_t i = 0; i < count; ++i) misfits |= look(positions[i * step]);
    if (static_cast<int64_t>(misfits) >= 0) return;
    for (int64_t i = 0; i < count; ++i) {
      int64_t position = positions[i * step];
      if (position < 0 || position >= limit_)
        fail("index ", position, " is out of bounds for dimension ", dim_, " with size ", limit_);
    }
  }

  Tensor index_;
  int64_t dim_, limit_, self_step_;
  Strided<3> outer_;
  Loop length_, inner_;
};

// ---- reductions
// ------------------------------------------------------------------------------------------------------

template <class T> T larger(T a, T b) {
  auto x = static_cast<Compute<T>>(a), y = static_cast<Compute<T>>(b);
  return x != x || x > y ? a : b;
}
template <class T> T smaller(T a, T b) {
  auto x = static_cast<Compute<T>>(a), y = static_cast<Compute<T>>(b);
  return x != x || x < y ? a : b;
}

const char* kernel_of(ScatterReduce reduce) {
  switch (reduce) {
    case ScatterReduce::Mean: return "scatter_gather_tensor_cpu_reduce_mean";
    case ScatterReduce::Max: return "scatter_gather_tensor_cpu_reduce_amax";
    case ScatterReduce::Min: return "scatter_gather_tensor_cpu_reduce_amin";
    default: return "scatter_gather_tensor_cpu";
  }
}

// What leaves every element as it is when combined with it.
template <class T> T neutral(ScatterReduce reduce) {
  using C = Compute<T>;
  if (reduce == ScatterReduce::Product) return static_cast<T>(C(1));
  if constexpr (!std::is_same_v<T, std::complex<float>> && !std::is_same_v<T, std::complex<double>>) {
    using Limits = std::numeric_limits<C>;
    if (reduce == ScatterReduce::Max)
      return static_cast<T>(Limits::has_infinity ? -Limits::infinity() : Limits::lowest());
    if (reduce == ScatterReduce::Min) return static_cast<T>(Limits::has_infinity ? Limits::infinity() : Limits::max());
  }
  return static_cast<T>(C(0));
}

template <class T> void combine(const IndexedLines& lines, T* self, const T* source, ScatterReduce reduce) {
  switch (reduce) {
    case ScatterReduce::Product:
      return lines.run([=](int64_t a, int64_t b) { self[a] = multiply_elements(self[a], source[b]); });
    case ScatterReduce::Max:
    case ScatterReduce::Min:
      if constexpr (!std::is_same_v<T, std::complex<float>> && !std::is_same_v<T, std::complex<double>>) {
        if (reduce == ScatterReduce::Max)
          lines.run([=](int64_t a, int64_t b) { self[a] = larger(self[a], source[b]); });
        else lines.run([=](int64_t a, int64_t b) { self[a] = smaller(self[a], source[b]); });
      }
      return;
    default: return lines.run([=](int64_t a, int64_t b) { self[a] = add_elements(self[a], source[b]); });
  }
}

template <class T> T divide(T sum, int64_t count) {
  if constexpr (std::is_integral_v<T>) {
    auto n = static_cast<int64_t>(sum), quotient = n / count;
    return static_cast<T>(quotient - (n % count != 0 && n < 0));
  } else {
    return static_cast<T>(static_cast<Compute<T>>(sum) / static_cast<Compute<T>>(static_cast<float>(count)));
  }
}

// Whether an index says the same at every place around the dimension, as that of index_reduce does.
bool is_one_line(const Tensor& index, int64_t dim) {
  for (int64_t d = 0; d < index.dim(); ++d)
    if (d != dim && index.size(d) > 1 && index.stride(d) != 0) return false;
  return index.dtype() == DType::Int64;
}

// The same for such an index and a target in order: one number divides whole rows.
void finish_mean_of_slices(const Tensor& self, int64_t dim, const Tensor& index, bool include_self) {
  int64_t inner = 1, outer = 1, slices = self.size(dim);
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != dim) (d < dim ? outer : inner) *= self.size(d);
  std::vector<int64_t> counts(static_cast<size_t>(slices), include_self ? 1 : 0);
  const int64_t* at = index.data<int64_t>();
  for (int64_t i = 0; i < index.size(dim); ++i) ++counts[static_cast<size_t>(at[i * index.stride(dim)])];
  visit<NumberTypes>(self.dtype(), kernel_of(ScatterReduce::Mean), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* row = self.data<T>();
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t s = 0; s < slices; ++s, row += inner)
        if (int64_t count = counts[static_cast<size_t>(s)]; count > 1)
          for (int64_t i = 0; i < inner; ++i) row[i] = divide(row[i], count);
  });
}

// Divides each sum by how many elements went into it.
void finish_mean(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, bool include_self) {
  auto around = [&](const Tensor& t) { return std::pair(t.sizes().slice(0, dim), t.sizes().drop_front(dim + 1)); };
  if (self.is_contiguous() && is_one_line(index, dim) && around(index) == around(self))
    return finish_mean_of_slices(self, dim, index, include_self);
  Tensor counts = scratch(self.sizes(), DType::Int64);
  int64_t* count = counts.data<int64_t>();
  std::fill_n(count, counts.numel(), include_self ? 1 : 0);
  IndexedLines(counts, source, dim, index).run([=](int64_t a, int64_t) { ++count[a]; });
  Strided<2> walk(self.sizes(), {self.strides(), counts.strides()});
  visit<NumberTypes>(self.dtype(), kernel_of(ScatterReduce::Mean), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* sums = self.data<T>();
    if (self.is_contiguous()) {
      for (int64_t i = 0, n = self.numel(); i < n; ++i)
        if (count[i] > 1) sums[i] = divide(sums[i], count[i]);
      return;
    }
    Odometer<2> at(walk);
    for (int64_t i = 0, n = self.numel(); i < n; ++i, at.next())
      if (count[at[1]] > 1) sums[at[0]] = divide(sums[at[0]], count[at[1]]);
  });
}

}  // namespace

ScatterReduce scatter_reduce_from_name(const std::string& name) {
  if (name == "sum" || name == "add") return ScatterReduce::Sum;
  if (name == "prod" || name == "multiply") return ScatterReduce::Product;
  if (name == "mean") return ScatterReduce::Mean;
  if (name == "amax") return ScatterReduce::Max;
  if (name == "amin") return ScatterReduce::Min;
  fail("reduce argument must be either sum, prod, mean, amax or amin, got ", name);
}

void gather(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index) {
  if (index.numel() == 0) return;
  check_type<AllTypesAndUnsigned>(self.dtype(),
                                  is_float8(self.dtype()) ? "gather_expanded_index" : "scatter_gather_tensor_cpu");
  Tensor target = at_least_1d(out), source = at_least_1d(self);
  IndexedLines lines(source, target, dim, at_least_1d(index));
  visit_item_size(self.item_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = words<T>(target);
    const T* from = words<T>(source);
    lines.run([=](int64_t a, int64_t b) { to[b] = from[a]; });
  });
}

void scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, ScatterReduce reduce,
             bool include_self) {
  if (index.numel() == 0) return;
  Tensor target = at_least_1d(self), values = at_least_1d(source), positions = at_least_1d(index);
  IndexedLines lines(target, values, dim, positions);
  if (reduce == ScatterReduce::Assign) {
    check_type<AllTypesAndUnsigned>(self.dtype(), "scatter_gather_tensor_cpu");
    visit_item_size(self.item_size(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      T* to = words<T>(target);
      const T* from = words<T>(values);
      lines.run([=](int64_t a, int64_t b) { to[a] = from[b]; });
    });
    return;
  }
  bool ordered = reduce == ScatterReduce::Max || reduce == ScatterReduce::Min;
  if ((ordered && self.is_complex()) || (reduce == ScatterReduce::Mean && self.dtype() == DType::Bool))
    unsupported_dtype(kernel_of(reduce), self.dtype());
  if (reduce != ScatterReduce::Sum) check_type<AllTypes>(self.dtype(), kernel_of(reduce));
  visit<AllTypesAndUnsigned>(self.dtype(), kernel_of(reduce), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = target.data<T>();
    T start = neutral<T>(reduce);
    if (!include_self) lines.run([=](int64_t a, int64_t) { to[a] = start; });
    combine<T>(lines, to, values.data<T>(), reduce);
  });
  if (reduce == ScatterReduce::Mean) finish_mean(target, dim, positions, values, include_self);
}

void scatter(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value, ScatterReduce reduce) {
  if (reduce == ScatterReduce::Assign && index.numel() > 0)
    check_type<AllTypesAndUnsigned>(self.dtype(), "scatter_gather_scalar_cpu");
  Tensor number = scratch({}, self.dtype());
  write_element(number.raw_data(), self.dtype(), value);
  SymShape strides(index.dim(), 0);
  scatter(self, dim, index, alias_tensor(number, index.sym_sizes(), strides, 0), reduce);
}

}  // namespace umbra::kernels
