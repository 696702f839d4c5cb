#include "kernels/index.h"

#include <atomic>
#include <cstring>

#include "kernels/convert.h"
#include "kernels/copy.h"
#include "kernels/parallel.h"
#include "kernels/vector/extremes.h"
#include "kernels/visit.h"
#include "kernels/walk.h"

namespace umbra::kernels {
namespace {

// Which positions along a dimension a user may give, and what is said of others.
struct IndexRule {
  bool negative;  // whether negative positions count from the end
  void (*out_of_range)(int64_t position, int64_t dim, int64_t size);
  bool names_elements = true;  // or whether a position is read along a dimension, of whatever else is empty
};

const IndexRule kIndexRule = {true, [](int64_t position, int64_t dim, int64_t size) {
                                fail<IndexError>("index ", position, " is out of bounds for dimension ", dim,
                                                 " with size ", size);
                              }};
const IndexRule kSelectRule = {false, [](int64_t, int64_t, int64_t) { fail<IndexError>("index out of range in self"); },
                               false};
const IndexRule kSelectColumnRule = {false,
                                     [](int64_t position, int64_t, int64_t size) {
                                       fail("INDICES element is out of DATA bounds, id=", position, " axis_dim=", size);
                                     },
                                     false};
const IndexRule kAddRule = {false, [](int64_t position, int64_t dim, int64_t size) {
                              fail("index ", position, " is out of bounds for dimension ", dim, " with size ", size);
                            }};
const IndexRule kCopyRule = {false, [](int64_t position, int64_t dim, int64_t size) {
                               fail<IndexError>("index_copy_(): index ", position, " is out of bounds for dimension ",
                                                dim, " with size ", size);
                             }};

// One index tensor, broadcast with the others: where its elements point along one dimension of self. Its positions are
// checked when it is made, so that nothing is written before.
struct IndexColumn {
  DType dtype;
  const void* data;
  Strided<1> walk;
  int64_t size, stride;   // of the dimension
  bool negative = false;  // whether some position is

  IndexColumn(const Tensor& index, IntArrayRef shape, int64_t dim, int64_t size, int64_t stride, const IndexRule& rule,
              bool checked)
      : dtype(index.dtype()),
        data(index.numel() ? index.raw_data() : nullptr),
        walk(shape, {broadcast_strides(index, shape)}),
        size(size),
        stride(stride) {
    walk.simplify();
    int64_t least = rule.negative ? -size : 0;
    // Each element once, however often it is taken; none where what it is broadcast with is empty.
    Strided<1> own;
    bool broadcast = index.numel() < walk.numel();
    if (broadcast) {
      own = Strided<1>(index.sizes(), {index.strides()});
      own.simplify();
    }
    const Strided<1>& order = broadcast ? own : walk;
    int64_t count = checked ? std::min(index.numel(), walk.numel()) : 0;
    visit<IndexTypes>(dtype, "index", [&](auto tag) {
      using Index = typename decltype(tag)::type;
      std::atomic<bool> some_negative = false;
      parallel_for(0, count, kGrain, [&](int64_t from, int64_t to) {
        // One number says whether all fit: no branch for each.
        PositionBits bits;
        if (std::is_same_v<Index, int64_t> && order.sizes.size() == 1 && order.strides[0][0] == 1)
          bits = UMBRA_VECTOR(position_bits)(static_cast<const int64_t*>(data) + from, to - from, least, size - 1);
        else
          each<Index>(order, from, to,
                      [&, least = uint64_t(least), last = uint64_t(size - 1)](int64_t, int64_t position) {
                        bits.positions |= uint64_t(position);
                        bits.distances |= (uint64_t(position) - least) | (last - uint64_t(position));
                      });
        if (static_cast<int64_t>(bits.positions) < 0) some_negative = true;
        if (static_cast<int64_t>(bits.distances) >= 0) return;
        each<Index>(order, from, to, [&](int64_t, int64_t position) {
          if (position < least || position >= size) rule.out_of_range(position, dim, size);
        });
      });
      negative = some_negative;
    });
  }

  /// The positions where they are the offsets in self already; else null.
  const int64_t* as_offsets() const {
    bool in_order = walk.sizes.size() == 1 && walk.strides[0][0] == 1;
    return dtype == DType::Int64 && in_order && stride == 1 && !negative ? static_cast<const int64_t*>(data) : nullptr;
  }
  /// Writes, or with `add` adds, the offsets in self of the index elements [from, to).
  void offsets(int64_t* offsets, int64_t from, int64_t to, bool add) const {
    visit<IndexTypes>(dtype, "index", [&](auto tag) {
      using Index = typename decltype(tag)::type;
      auto offset = [stride = stride, size = size](int64_t position) {
        return stride * (position + (position < 0 ? size : 0));
      };
      if (add) each<Index>(walk, from, to, [=](int64_t i, int64_t position) { offsets[i - from] += offset(position); });
      else each<Index>(walk, from, to, [=](int64_t i, int64_t position) { offsets[i - from] = offset(position); });
    });
  }

 private:
  /// Calls fn(number, position) for elements [from, to) of the index, in an order of its own or broadcast: row by row.
  /// Inlined, so that what `fn` collects stays in registers and the compiler makes vectors of it.
  template <class Index, class Fn>
  [[gnu::always_inline]] void each(const Strided<1>& order, int64_t from, int64_t to, Fn fn) const {
    const Index* at = static_cast<const Index*>(data);
    auto run = [&](const Index* row, int64_t step, int64_t begin, int64_t end) __attribute__((always_inline)) {
      if (step == 1)
        for (int64_t i = begin; i < end; ++i) fn(i, row[i - begin]);
      else if (step == 0)
        for (int64_t i = begin, position = *row; i < end; ++i) fn(i, position);
      else
        for (int64_t i = begin; i < end; ++i) fn(i, row[(i - begin) * step]);
    };
    if (from >= to) return;
    if (order.sizes.empty()) return run(at, 0, from, to);
    if (order.sizes.size() == 1) return run(at + from * order.strides[0][0], order.strides[0][0], from, to);
    Strided<1> rows = order;
    const int64_t length = order.sizes.back(), step = order.strides[0].back();
    rows.pop();
    Odometer<1> place(rows);
    place.seek(from / length);
    for (int64_t first = from % length; from < to; first = 0, place.next()) {
      int64_t end = std::min(to, from + length - first);
      run(at + place[0] + first * step, step, from, end);
      from = end;
    }
  }
};

// Runs of elements: the i-th begins at self[i] in the indexed tensor and at plain[i] in the other, counted from a base
// in each.
struct IndexedRuns {
  const int64_t *self, *plain;
  int64_t count, length, self_stride, plain_stride;
  bool in_order;  // in the other tensor they lie side by side, from the place `first` on, and `plain` is null
  int64_t first;

  int64_t plain_at(int64_t i) const { return in_order ? first + i : plain[i]; }
};

// An indexed tensor against the plain tensor that holds, or receives, what is indexed. The plain one's dimensions are
// `before`, those of the index tensors, `after`.
struct IndexedPair {
  Strided<2> before, after;
  std::vector<IndexColumn> columns;
  Strided<1> plain;  // the index tensors' dimensions in the plain tensor
  int64_t count = 1;

  /// Calls fn(self base, plain base, runs) until every element was in one of the runs. With `independent`, calls may go
  /// at the same time; else only those that no two index elements can make meet.
  template <class Fn> void run(bool independent, const Fn& fn) {
    before.simplify();
    after.simplify();
    plain.simplify();
    int64_t after_numel = after.numel(), outer = before.numel();
    if (after_numel == 0 || count == 0 || outer == 0) return;
    IndexedRuns runs{
        nullptr, nullptr, 0, 1, 0, 0, plain.sizes.empty() || (plain.sizes.size() == 1 && plain.strides[0][0] == 1), 0};
    if (!after.sizes.empty()) {
      runs.length = after.sizes.back();
      runs.self_stride = after.strides[0].back();
      runs.plain_stride = after.strides[1].back();
      after.pop();
    }
    int64_t grain = kGrain / after_numel;
    if (independent && outer < count)
      parallel_for(0, count, grain / outer, [&](int64_t from, int64_t to) { block(0, outer, from, to, runs, fn); });
    else if (outer < num_threads() && runs.length >= kLongRun) by_places(outer, runs, fn);
    else parallel_for(0, outer, grain / count, [&](int64_t from, int64_t to) { block(from, to, 0, count, runs, fn); });
  }

 private:
  static constexpr int64_t kChunk = 1024, kLongRun = 64;

  // Offsets in self of those index elements that a call is for.
  struct Places {
    int64_t from, to;
  };

  // Each call has places of its own, and finds the index elements that point there: those that point to one place stay
  // in their order. Looking at an index element is little beside a run.
  template <class Fn> void by_places(int64_t outer, const IndexedRuns& runs, const Fn& fn) const {
    int64_t extent = 1, work = runs.length * after.numel() * count * outer;
    for (const IndexColumn& column : columns) extent += (column.size - 1) * column.stride;
    int64_t parts = std::clamp<int64_t>(work / kGrain, 1, 2 * num_threads());
    parallel_for(0, parts, 1, [&](int64_t from, int64_t to) {
      Places places{extent * from / parts, extent * to / parts};
      block(0, outer, 0, count, runs, fn, parts > 1 ? &places : nullptr);
    });
  }

  // Some places of `before` and some of the index elements, whose offsets are made once, a chunk at a time.
  template <class Fn>
  void block(int64_t outer_from, int64_t outer_to, int64_t from, int64_t to, IndexedRuns runs, const Fn& fn,
             const Places* places = nullptr) const {
    int64_t self_offsets[kChunk], plain_offsets[kChunk], rows = after.numel();
    runs.in_order &= !places;
    Odometer<2> at(before), row(after);
    for (; from < to; from += kChunk) {
      int64_t n = std::min(kChunk, to - from);
      const int64_t* positions = columns.size() == 1 && !places ? columns[0].as_offsets() : nullptr;
      runs.self = positions ? positions + from : self_offsets;
      if (columns.empty()) std::fill_n(self_offsets, n, 0);
      if (!positions)
        for (size_t k = 0; k < columns.size(); ++k) columns[k].offsets(self_offsets, from, from + n, k > 0);
      runs.first = from;
      runs.plain = runs.in_order ? nullptr : plain_offsets;
      if (!runs.in_order) fill_plain(plain_offsets, from, n);
      runs.count = places ? keep(*places, self_offsets, plain_offsets, n) : n;
      at.seek(outer_from);
      for (int64_t o = outer_from; o < outer_to; ++o, at.next()) {
        row.seek(0);
        for (int64_t r = 0; r < rows; ++r, row.next()) fn(at[0] + row[0], at[1] + row[1], runs);
      }
    }
  }
  // Moves the runs at those places to the front; gives their number.
  static int64_t keep(Places places, int64_t* self_offsets, int64_t* plain_offsets, int64_t n) {
    int64_t kept = 0;
    for (int64_t i = 0; i < n; ++i) {
      int64_t offset = self_offsets[i];
      self_offsets[kept] = offset;
      plain_offsets[kept] = plain_offsets[i];
      kept += offset >= places.from && offset < places.to;
    }
    return kept;
  }
  void fill_plain(int64_t* offsets, int64_t from, int64_t n) const {
    if (plain.sizes.size() <= 1) {
      int64_t step = plain.sizes.empty() ? 0 : plain.strides[0][0];
      for (int64_t i = 0; i < n; ++i) offsets[i] = (from + i) * step;
      return;
    }
    Odometer<1> at(plain);
    at.seek(from);
    for (int64_t i = 0; i < n; ++i, at.next()) offsets[i] = at[0];
  }
};

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
  for (int64_t size : shape) pair.count *= size;

  size_t lead = position_of_index_dims(indices), remaining = 0;
  // A position in something that is empty along other dimensions names no element, and may be any.
  const bool any = self.numel() == 0 && rule.names_elements;
  int64_t ordinal = 0;  // among the indexed dimensions, which is how errors name one
  for (int64_t d = 0; d < self.dim(); ++d) {
    bool indexed = d < static_cast<int64_t>(indices.size()) && indices[d].defined();
    int64_t size = self.sizes()[d], stride = self.strides()[d];
    if (indexed) {
      check<IndexError>(size > 0 || pair.count == 0, "index is out of bounds for dimension with size 0");
      pair.columns.emplace_back(indices[d], shape, ordinal++, size, stride, rule, !any || size == 0);
    } else if (remaining < lead) {
      pair.before.push(size, {stride, plain_strides[remaining++]});
    } else {
      pair.after.push(size, {stride, plain_strides[shape.size() + remaining++]});
    }
  }
  pair.plain = Strided<1>(shape, {plain_strides.slice(lead, shape.size())});
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
    pair.run(true, [=](int64_t a, int64_t b, const IndexedRuns& runs) {
      if (runs.length == 1 && runs.in_order) {
        T* target = to + b + runs.first;
        const T* source = from + a;
        const int64_t* places = runs.self;
#pragma GCC unroll 8  // of the few instructions for an element every other one would be the loop's
        for (int64_t i = 0, count = runs.count; i < count; ++i) target[i] = source[places[i]];
        return;
      }
      for (int64_t i = 0; i < runs.count; ++i)
        move_run(to + b + runs.plain_at(i), runs.plain_stride, from + a + runs.self[i], runs.self_stride, runs.length);
    });
  });
}

void move_in(const Tensor& self, const Tensor& values, IndexedPair pair) {
  visit_item_size(self.item_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = words<T>(self);
    const T* from = words<T>(values);
    pair.run(true, [=](int64_t a, int64_t b, const IndexedRuns& runs) {
      for (int64_t i = 0; i < runs.count; ++i)
        move_run(to + a + runs.self[i], runs.self_stride, from + b + runs.plain_at(i), runs.plain_stride, runs.length);
    });
  });
}

// One number in all places that are pointed to.
void fill_in(const Tensor& self, const Scalar& number, IndexedPair pair) {
  alignas(16) char bytes[16];
  write_element(bytes, self.dtype(), number);
  visit_item_size(self.item_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = words<T>(self);
    T value;
    std::memcpy(&value, bytes, sizeof(T));
    pair.run(true, [=](int64_t a, int64_t, const IndexedRuns& runs) {
      if (runs.length == 1) {
        for (int64_t i = 0; i < runs.count; ++i) to[a + runs.self[i]] = value;
        return;
      }
      for (int64_t k = 0; k < runs.count; ++k) {
        T* target = to + a + runs.self[k];
        if (runs.self_stride == 1) std::fill_n(target, runs.length, value);
        else
          for (int64_t i = 0; i < runs.length; ++i) target[i * runs.self_stride] = value;
      }
    });
  });
}

// to += from, n elements side by side.
template <class T> void add_run(T* to, const T* from, int64_t n) {
  if constexpr (std::is_same_v<T, Compute<T>>) {
    for (int64_t i = 0; i < n; ++i) to[i] = add_elements(to[i], from[i]);
  } else {
    constexpr int64_t kChunk = 512;
    Compute<T> sums[kChunk], added[kChunk];
    constexpr DType narrow = dtype_of<T>, wide = dtype_of<Compute<T>>;
    for (int64_t at = 0; at < n; at += kChunk) {
      int64_t count = std::min(kChunk, n - at);
      auto* place = reinterpret_cast<char*>(to + at);
      convert(reinterpret_cast<char*>(sums), wide, place, narrow, sizeof(T), count);
      convert(reinterpret_cast<char*>(added), wide, reinterpret_cast<const char*>(from + at), narrow, sizeof(T), count);
      for (int64_t i = 0; i < count; ++i) sums[i] += added[i];
      convert(place, narrow, reinterpret_cast<const char*>(sums), wide, sizeof(Compute<T>), count);
    }
  }
}

void add_in(const Tensor& self, const Tensor& values, IndexedPair pair, const char* kernel, const Scalar& alpha = 1) {
  constexpr int64_t kShort = 16;  // shorter runs are added one by one
  visit<detail::Join<AllOrHalfComplex, WideUnsigned>>(self.dtype(), kernel, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = self.data<T>();
    const T* from = values.data<T>();
    T factor = static_cast<T>(alpha.to<Compute<T>>());
    bool plain = alpha.equals(1);
    pair.run(false, [=](int64_t a, int64_t b, const IndexedRuns& runs) {
      bool side_by_side = plain && runs.length >= kShort && runs.self_stride == 1 && runs.plain_stride == 1;
      for (int64_t k = 0; k < runs.count; ++k) {
        T* target = to + a + runs.self[k];
        const T* value = from + b + runs.plain_at(k);
        if (side_by_side) {
          add_run(target, value, runs.length);
          continue;
        }
        for (int64_t i = 0; i < runs.length; ++i, target += runs.self_stride, value += runs.plain_stride)
          *target = add_elements(*target, plain ? *value : multiply_elements(factor, *value));
      }
    });
  });
}

using IndexPutTypes = detail::Join<AllOrHalfComplex, SignedFloat8>;

}  // namespace

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
  check_type<IndexPutTypes>(self.dtype(), "index_put");
  if (accumulate) add_in(self, values, std::move(pair), "index_put");
  else move_in(self, values, std::move(pair));
}

/// Rows of nothing are no IndexError.
static void check_selected(const Tensor& self, int64_t dim, const Tensor& index) {
  bool any = self.dim() < 2 || self.sizes()[dim] > 0 || index.numel() == 0;
  check(any, "index_select(): self indexing axis dim should be positive");
}

void index_select(const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index) {
  check_selected(self, dim, index);
  Tensor target = at_least_1d(out), source = at_least_1d(self);
  const IndexRule& rule = dim == 1 && out.is_contiguous() ? kSelectColumnRule : kSelectRule;  // PyTorch has two texts
  move_out(target, source, pair_up(source, along(dim, at_least_1d(index)), target.strides(), rule));
}

void select_rows(const Tensor& out, const Tensor& self, const Tensor& index) {
  check_selected(self, 0, index);
  move_out(out, self, pair_up(self, along(0, index), out.strides(), kSelectRule));
}

void index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
  Tensor target = at_least_1d(self), added = at_least_1d(source);
  const IndexRule& rule = target.dim() == 1 ? kSelectRule : kAddRule;
  if (target.dim() == 1) check_type<AllOrHalfComplex>(self.dtype(), "index_add_");
  add_in(target, added, pair_up(target, along(dim, at_least_1d(index)), added.strides(), rule), "index_add_", alpha);
}

void index_copy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  check_type<AllOrHalfComplex>(self.dtype(), "index_copy_cpu");
  Tensor target = at_least_1d(self), values = at_least_1d(source);
  move_in(target, values, pair_up(target, along(dim, at_least_1d(index)), values.strides(), kCopyRule));
}

void index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  check_type<AllOrHalfComplex>(self.dtype(), "index_fill_cpu");
  Tensor target = at_least_1d(self);
  SmallVector<int64_t> strides(target.dim(), 0);
  fill_in(target, value, pair_up(target, along(dim, at_least_1d(index)), strides, kIndexRule));
}

}  // namespace umbra::kernels
