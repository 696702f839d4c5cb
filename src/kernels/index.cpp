#include "kernels/index.h"

#include <atomic>

#include "kernels/copy.h"
#include "kernels/parallel.h"
#include "kernels/visit.h"
#include "kernels/walk.h"

namespace umbra::kernels {
namespace {

// Turns a position that a user gave into one in [0, size), or says what is wrong with it.
struct IndexRule {
  bool negative;  // whether negative positions count from the end
  void (*out_of_range)(int64_t position, int64_t dim, int64_t size);

  int64_t operator()(int64_t position, int64_t dim, int64_t size) const {
    int64_t place = negative && position < 0 ? position + size : position;
    if (place < 0 || place >= size) out_of_range(position, dim, size);
    return place;
  }
};

const IndexRule kIndexRule = {true, [](int64_t position, int64_t dim, int64_t size) {
                                fail<IndexError>("index ", position, " is out of bounds for dimension ", dim,
                                                 " with size ", size);
                              }};
const IndexRule kSelectRule = {false,
                               [](int64_t, int64_t, int64_t) { fail<IndexError>("index out of range in self"); }};
const IndexRule kAddRule = {false, [](int64_t position, int64_t dim, int64_t size) {
                              fail("index ", position, " is out of bounds for dimension ", dim, " with size ", size);
                            }};
const IndexRule kCopyRule = {false, [](int64_t position, int64_t dim, int64_t size) {
                               fail<IndexError>("index_copy_(): index ", position, " is out of bounds for dimension ",
                                                dim, " with size ", size);
                             }};

// An indexed tensor against the plain tensor that holds, or receives, what is indexed. The plain one's dimensions are
// `before`, those of the index tensors, `after`; for each element of the index tensors there is an offset into both.
struct IndexedPair {
  Strided<2> before, after;
  std::vector<int64_t> self_offsets, plain_offsets;

  /// Calls fn(self offset, plain offset, n, self stride, plain stride) for every run of elements. With `independent`,
  /// runs may go at the same time; else only those that no two index elements can make meet.
  template <class Fn> void run(bool independent, const Fn& fn) {
    before.simplify();
    after.simplify();
    int64_t n = 1, self_stride = 0, plain_stride = 0, after_numel = after.numel();
    if (!after.sizes.empty()) {
      n = after.sizes.back();
      self_stride = after.strides[0].back();
      plain_stride = after.strides[1].back();
      after.pop();
    }
    int64_t rows = after.numel(), count = static_cast<int64_t>(self_offsets.size()), outer = before.numel();
    if (n == 0 || count == 0) return;
    auto units = [&](int64_t from, int64_t to) {
      Odometer<2> at(before), row(after);
      at.seek(from / count);
      for (int64_t i = from % count, left = to - from; left > 0; i = 0, at.next()) {
        int64_t end = std::min(count, i + left);
        left -= end - i;
        for (; i < end; ++i) {
          int64_t self = at[0] + self_offsets[i], plain = at[1] + plain_offsets[i];
          if (rows == 1) {
            fn(self, plain, n, self_stride, plain_stride);
            continue;
          }
          row.seek(0);
          for (int64_t r = 0; r < rows; ++r, row.next())
            fn(self + row[0], plain + row[1], n, self_stride, plain_stride);
        }
      }
    };
    int64_t grain = kGrain / std::max<int64_t>(1, after_numel);
    if (independent) return parallel_for(0, outer * count, grain, units);
    parallel_for(0, outer, grain / count, [&](int64_t from, int64_t to) { units(from * count, to * count); });
  }
};

// Adds, for each element of the index (broadcast to `shape`), where it points along one dimension of self.
void add_offsets(std::vector<int64_t>& offsets, const Tensor& index, IntArrayRef shape, int64_t dim, int64_t size,
                 int64_t stride, const IndexRule& rule) {
  Strided<1> walk(shape, {broadcast_strides(index, shape)});
  walk.simplify();
  visit<IndexTypes>(index.dtype(), "index", [&](auto tag) {
    using Index = typename decltype(tag)::type;
    const Index* data = index.data<Index>();
    parallel_for(0, static_cast<int64_t>(offsets.size()), kGrain, [&](int64_t from, int64_t to) {
      Odometer<1> at(walk);
      at.seek(from);
      for (int64_t i = from; i < to; ++i, at.next()) offsets[i] += stride * rule(data[at[0]], dim, size);
    });
  });
}

std::vector<int64_t> broadcast_shape(TensorList tensors) {
  std::vector<int64_t> shape;
  for (const Tensor& t : tensors) {
    if (!t.defined()) continue;
    auto sizes = t.sizes();
    if (sizes.size() > shape.size()) shape.insert(shape.begin(), sizes.size() - shape.size(), 1);
    for (size_t d = 0; d < sizes.size(); ++d) {
      int64_t& size = shape[shape.size() - sizes.size() + d];
      if (size == 1) size = sizes[d];
    }
  }
  return shape;
}

// Where the index tensors' dimensions stand in the result: after how many of self's remaining dimensions.
size_t position_of_index_dims(TensorList indices) {
  size_t first = 0;
  while (first < indices.size() && !indices[first].defined()) ++first;
  size_t last = indices.size();
  while (last > first && !indices[last - 1].defined()) --last;
  for (size_t d = first; d < last; ++d)
    if (!indices[d].defined()) return 0;
  return first;
}

IndexedPair pair_up(const Tensor& self, TensorList indices, IntArrayRef plain_strides, const IndexRule& rule) {
  std::vector<int64_t> shape = broadcast_shape(indices);
  IndexedPair pair;
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  pair.self_offsets.assign(count, 0);
  pair.plain_offsets.assign(count, 0);

  size_t lead = position_of_index_dims(indices), remaining = 0;
  int64_t ordinal = 0;  // among the indexed dimensions, which is how errors name one
  for (int64_t d = 0; d < self.dim(); ++d) {
    bool indexed = d < static_cast<int64_t>(indices.size()) && indices[d].defined();
    int64_t size = self.sizes()[d], stride = self.strides()[d];
    if (indexed) {
      check<IndexError>(size > 0 || count == 0, "index is out of bounds for dimension with size 0");
      add_offsets(pair.self_offsets, indices[d], shape, ordinal++, size, stride, rule);
    } else if (remaining < lead) {
      pair.before.push(size, {stride, plain_strides[remaining++]});
    } else {
      pair.after.push(size, {stride, plain_strides[shape.size() + remaining++]});
    }
  }
  Strided<1> walk(shape, {plain_strides.slice(lead, shape.size())});
  walk.simplify();
  Odometer<1> at(walk);
  for (int64_t i = 0; i < count; ++i, at.next()) pair.plain_offsets[i] = at[0];
  return pair;
}

// The indices of an operator that takes one vector of positions for one dimension.
std::vector<Tensor> along(int64_t dim, const Tensor& index) {
  std::vector<Tensor> indices(dim + 1);
  indices[dim] = index;
  return indices;
}

void move_out(const Tensor& out, const Tensor& self, IndexedPair pair) {
  visit_item_size(self.item_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = words<T>(self);
    T* to = words<T>(out);
    pair.run(true, [=](int64_t a, int64_t b, int64_t n, int64_t a_stride, int64_t b_stride) {
      move_run(to + b, b_stride, from + a, a_stride, n);
    });
  });
}

void move_in(const Tensor& self, const Tensor& values, IndexedPair pair) {
  visit_item_size(self.item_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = words<T>(self);
    const T* from = words<T>(values);
    pair.run(true, [=](int64_t a, int64_t b, int64_t n, int64_t a_stride, int64_t b_stride) {
      move_run(to + a, a_stride, from + b, b_stride, n);
    });
  });
}

void add_in(const Tensor& self, const Tensor& values, IndexedPair pair, const char* kernel, const Scalar& alpha = 1) {
  visit<AllTypes>(self.dtype(), kernel, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = self.data<T>();
    const T* from = values.data<T>();
    T factor = static_cast<T>(alpha.to<Compute<T>>());
    bool plain = alpha.equals(1);
    pair.run(false, [=](int64_t a, int64_t b, int64_t n, int64_t a_stride, int64_t b_stride) {
      for (int64_t i = 0; i < n; ++i) {
        T& target = to[a + i * a_stride];
        T value = from[b + i * b_stride];
        target = add_elements(target, plain ? value : multiply_elements(factor, value));
      }
    });
  });
}

// Offsets of elements of a tensor seen as one row.
class FlatOffsets {
 public:
  explicit FlatOffsets(const Tensor& t) : shape_(t.sizes(), {t.strides()}), numel_(t.numel()) { shape_.simplify(); }
  int64_t operator()(int64_t position) const {
    int64_t place = position < 0 ? position + numel_ : position;
    check<IndexError>(place >= 0 && place < numel_, "out of range: tried to access index ", position,
                      " on a tensor of ", numel_, " elements.");
    int64_t offset = 0;
    for (size_t d = shape_.sizes.size(); d-- > 0;) {
      offset += place % shape_.sizes[d] * shape_.strides[0][d];
      place /= shape_.sizes[d];
    }
    return offset;
  }

 private:
  Strided<1> shape_;
  int64_t numel_;
};

}  // namespace

std::vector<int64_t> indexed_shape(IntArrayRef self_sizes, TensorList indices) {
  std::vector<int64_t> remaining, shape = broadcast_shape(indices);
  for (size_t d = 0; d < self_sizes.size(); ++d)
    if (d >= indices.size() || !indices[d].defined()) remaining.push_back(self_sizes[d]);
  remaining.insert(remaining.begin() + static_cast<int64_t>(position_of_index_dims(indices)), shape.begin(),
                   shape.end());
  return remaining;
}

void index(const Tensor& out, const Tensor& self, TensorList indices) {
  move_out(out, self, pair_up(self, indices, out.strides(), kIndexRule));
}

void index_put(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate) {
  auto strides = broadcast_strides(values, indexed_shape(self.sizes(), indices));
  IndexedPair pair = pair_up(self, indices, strides, kIndexRule);
  if (accumulate) add_in(self, values, std::move(pair), "index_put");
  else move_in(self, values, std::move(pair));
}

void index_select(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index) {
  Tensor target = at_least_1d(out), source = at_least_1d(self);
  move_out(target, source, pair_up(source, along(dim, at_least_1d(index)), target.strides(), kSelectRule));
}

void select_rows(const Tensor& out, const Tensor& self, const Tensor& index) {
  move_out(out, self, pair_up(self, along(0, index), out.strides(), kSelectRule));
}

void index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
  Tensor target = at_least_1d(self), added = at_least_1d(source);
  const IndexRule& rule = target.dim() == 1 ? kSelectRule : kAddRule;
  add_in(target, added, pair_up(target, along(dim, at_least_1d(index)), added.strides(), rule), "index_add_", alpha);
}

void index_copy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  Tensor target = at_least_1d(self), values = at_least_1d(source);
  move_in(target, values, pair_up(target, along(dim, at_least_1d(index)), values.strides(), kCopyRule));
}

void index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  Tensor target = at_least_1d(self), number = scratch({}, self.dtype());
  write_element(number.raw_data(), self.dtype(), value);
  SmallVector<int64_t> strides(target.dim(), 0);
  move_in(target, number, pair_up(target, along(dim, at_least_1d(index)), strides, kIndexRule));
}

void take(const Tensor& out, const Tensor& self, const Tensor& index) {
  if (index.numel() == 0) return;
  FlatOffsets offset(self);
  Strided<2> walk(index.sizes(), {out.strides(), index.strides()});
  walk.simplify();
  visit_item_size(self.item_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(0, index.numel(), kGrain, [&](int64_t from, int64_t to) {
      Odometer<2> at(walk);
      at.seek(from);
      for (int64_t i = from; i < to; ++i, at.next())
        words<T>(out)[at[0]] = words<T>(self)[offset(index.data<int64_t>()[at[1]])];
    });
  });
}

void put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  FlatOffsets offset(self);
  Tensor positions = contiguous(index), values = contiguous(source);
  auto each = [&](auto store) {
    for (int64_t i = 0; i < positions.numel(); ++i) store(offset(positions.data<int64_t>()[i]), i);
  };
  if (accumulate) {
    visit<AllTypes>(self.dtype(), "take_put_cpu", [&](auto tag) {
      using T = typename decltype(tag)::type;
      each([&](int64_t at, int64_t i) { self.data<T>()[at] = add_elements(self.data<T>()[at], values.data<T>()[i]); });
    });
    return;
  }
  visit_item_size(self.item_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    each([&](int64_t at, int64_t i) { words<T>(self)[at] = words<T>(values)[i]; });
  });
}

int64_t count_nonzero(const Tensor& self) {
  std::atomic<int64_t> total = 0;
  Strided<1> walk(self.sizes(), {self.strides()});
  walk.simplify();
  visit<AllTypes>(self.dtype(), "nonzero_count_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(0, self.numel(), kGrain, [&](int64_t from, int64_t to) {
      Odometer<1> at(walk);
      at.seek(from);
      int64_t count = 0;
      for (int64_t i = from; i < to; ++i, at.next())
        count += static_cast<Compute<T>>(self.data<T>()[at[0]]) != Compute<T>(0);
      total += count;
    });
  });
  return total;
}

void nonzero(const Tensor& out, const Tensor& self) {
  if (self.numel() == 0) return;
  Tensor dense = contiguous(self);
  int64_t last = self.dim() - 1, length = last >= 0 ? self.size(last) : 1, lines = self.numel() / length;
  int64_t *target = out.data<int64_t>(), step = out.strides()[1];
  Strided<1> outer;
  for (int64_t d = 0; d < last; ++d) outer.push(self.size(d), {0});
  Odometer<1> at(outer);
  visit<AllTypes>(self.dtype(), "nonzero_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* data = dense.data<T>();
    for (int64_t line = 0; line < lines; ++line, data += length, at.next()) {
      for (int64_t j = 0; j < length; ++j) {
        if (static_cast<Compute<T>>(data[j]) == Compute<T>(0)) continue;
        for (int64_t d = 0; d < last; ++d) target[d * step] = at.digit(d);
        if (last >= 0) target[last * step] = j;
        target += out.strides()[0];
      }
    }
  });
}

void masked_select(const Tensor& out, const Tensor& self, const Tensor& mask) {
  std::vector<int64_t> shape = broadcast_shape(std::vector<Tensor>{self, mask});
  Strided<2> walk(shape, {broadcast_strides(self, shape), broadcast_strides(mask, shape)});
  walk.simplify();
  auto* holds = static_cast<const uint8_t*>(mask.raw_data());
  visit_item_size(self.item_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* target = words<T>(out);
    Odometer<2> at(walk);
    for (int64_t i = 0, n = walk.numel(); i < n; ++i, at.next()) {
      if (!holds[at[1]]) continue;
      *target = words<T>(self)[at[0]];
      target += out.stride(0);
    }
  });
}

void masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  Strided<2> walk(self.sizes(), {self.strides(), broadcast_strides(mask, self.sizes())});
  walk.simplify();
  Tensor values = contiguous(source);
  auto* holds = static_cast<const uint8_t*>(mask.raw_data());
  visit_item_size(self.item_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *next = words<T>(values), *end = next + values.numel();
    Odometer<2> at(walk);
    for (int64_t i = 0, n = walk.numel(); i < n; ++i, at.next()) {
      if (!holds[at[1]]) continue;
      check(next != end, "Number of elements of source < number of ones in mask");
      words<T>(self)[at[0]] = *next++;
    }
  });
}

}  // namespace umbra::kernels
