#include "kernels/concatenate.h"

#include <algorithm>
#include <cstring>

#include "kernels/convert.h"
#include "kernels/copy.h"
#include "kernels/loop.h"
#include "kernels/parallel.h"
#include "kernels/visit.h"
#include "kernels/walk.h"

namespace umbra::kernels {
namespace {

Tensor narrowed(const Tensor& t, int64_t dim, int64_t start, int64_t length) {
  SymShape sizes(t.sym_sizes());
  sizes[dim] = length;
  return alias_tensor(t, sizes, t.sym_strides(), t.storage_offset() + start * t.stride(dim));
}

bool skipped(const Tensor& t) { return t.dim() == 1 && t.sizes()[0] == 0; }

/// Copies `count` blocks of a few bytes, which lie one after the other, to places `step` apart.
void spread_blocks(char* to, int64_t step, const char* from, int64_t bytes, int64_t count) {
  auto spread = [&](auto size) {
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * step, from + i * size, static_cast<size_t>(size));
  };
  switch (bytes) {
    case 1: return spread(std::integral_constant<int64_t, 1>());
    case 2: return spread(std::integral_constant<int64_t, 2>());
    case 4: return spread(std::integral_constant<int64_t, 4>());
    case 8: return spread(std::integral_constant<int64_t, 8>());
    case 12: return spread(std::integral_constant<int64_t, 12>());
    case 16: return spread(std::integral_constant<int64_t, 16>());
    default: return spread(bytes);
  }
}

// All contiguous: for each step of the outer dimensions, one block of bytes from each tensor in turn.
void cat_blocks(const Tensor& out, TensorList tensors, int64_t dim) {
  struct Block {
    const char* data;
    int64_t bytes, at;
  };
  SmallVector<Block, 8> blocks;
  int64_t row_bytes = 0, outer = 1;
  for (int64_t d = 0; d < dim; ++d) outer *= out.sizes()[d];
  for (const Tensor& t : tensors) {
    if (t.numel() == 0) continue;
    int64_t bytes = t.numel() / outer * t.item_size();
    blocks.push_back({static_cast<const char*>(t.raw_data()), bytes, row_bytes});
    row_bytes += bytes;
  }
  char* target = static_cast<char*>(out.raw_data());
  int64_t count = static_cast<int64_t>(blocks.size());
  int64_t block_bytes = std::max<int64_t>(1, row_bytes / std::max<int64_t>(count, 1));
  constexpr int64_t kFewBytes = 64, kRows = 64;
  if (block_bytes <= kFewBytes && outer > 1) {  // tensor by tensor, some rows at a time
    parallel_for(0, outer, 1 + 4 * kGrain / row_bytes, [&](int64_t from, int64_t to) {
      for (int64_t row = from; row < to; row += kRows)
        for (const Block& block : blocks)
          spread_blocks(target + row * row_bytes + block.at, row_bytes, block.data + row * block.bytes, block.bytes,
                        std::min(kRows, to - row));
    });
    return;
  }
  // Threads share out bytes, not blocks: of two tensors one may be long and the other short.
  constexpr int64_t kLine = 64;
  int64_t total = outer * row_bytes, lines = (total + kLine - 1) / kLine;
  parallel_for(0, lines, 4 * kGrain / kLine, [&](int64_t from, int64_t to) {
    int64_t at = from * kLine, end = std::min(to * kLine, total), row = at / row_bytes, start = row * row_bytes;
    size_t k = blocks.size();
    while (blocks[--k].at > at - start) {
    }
    while (at < end) {
      const Block& block = blocks[k];
      int64_t skip = at - start - block.at, bytes = std::min(block.bytes - skip, end - at);
      copy_bytes(target + at, block.data + row * block.bytes + skip, bytes);
      at += bytes;
      if (++k == blocks.size()) k = 0, ++row, start += row_bytes;
    }
  });
}

/// One dimension of memory that lies in order: each line has two pieces, which change places.
void roll_lines(const Tensor& out, const Tensor& self, int64_t dim, int64_t shift) {
  int64_t line = self.item_size(), outer = 1;
  for (int64_t d = dim; d < self.dim(); ++d) line *= self.size(d);
  for (int64_t d = 0; d < dim; ++d) outer *= self.size(d);
  size_t front = static_cast<size_t>(line / self.size(dim) * shift), back = static_cast<size_t>(line) - front;
  char* target = static_cast<char*>(out.raw_data());
  const char* source = static_cast<const char*>(self.raw_data());
  parallel_for(0, outer, 1 + 4 * kGrain / line, [&](int64_t from, int64_t to) {
    for (int64_t at = from * line; at < to * line; at += line) {
      copy_bytes(target + at, source + at + back, front);
      copy_bytes(target + at + front, source + at, back);
    }
  });
}

// Shifts dimension by dimension; each splits what is left into the part that stays in order and the part that comes
// around.
void roll_dims(const Tensor& out, const Tensor& self, ArrayRef<std::pair<int64_t, int64_t>> dims_and_shifts) {
  if (dims_and_shifts.empty()) return copy(out, self);
  auto [dim, shift] = dims_and_shifts.front();
  int64_t size = self.size(dim), rest = size - shift;
  roll_dims(narrowed(out, dim, shift, rest), narrowed(self, dim, 0, rest), dims_and_shifts.drop_front());
  if (shift > 0)
    roll_dims(narrowed(out, dim, 0, shift), narrowed(self, dim, rest, shift), dims_and_shifts.drop_front());
}

Tensor as_row(const Tensor& contiguous_tensor) {
  return alias_tensor(contiguous_tensor, {contiguous_tensor.numel()}, {1}, contiguous_tensor.storage_offset());
}

int64_t floor_mod(int64_t a, int64_t b) { return (a % b + b) % b; }

template <class T> void clear_run(T* to, int64_t step, int64_t n) {
  if (step == 1) std::fill_n(to, n, T{});
  else
    for (int64_t i = 0; i < n; ++i) to[i * step] = T{};
}

// Copies columns [first(row), last(row)) of each row of each matrix and clears the others.
template <class First, class Last>
void keep_part(const Tensor& out, const Tensor& self, const First& first, const Last& last) {
  int64_t d = self.dim(), rows = self.size(d - 2), columns = self.size(d - 1);
  if (self.numel() == 0) return;
  Strided<2> walk(self.sizes().drop_back(), {out.strides().drop_back(), self.strides().drop_back()});
  int64_t out_step = out.stride(d - 1), self_step = self.stride(d - 1);
  visit_item_size(self.item_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* written = words<T>(out);
    const T* read = words<T>(self);
    parallel_for(0, walk.numel(), kGrain / columns, [&](int64_t from, int64_t to) {
      Odometer<2> at(walk);
      at.seek(from);
      for (int64_t i = from; i < to; ++i, at.next()) {
        T* target = written + at[0];
        const T* source = read + at[1];
        int64_t begin = std::clamp<int64_t>(first(i % rows), 0, columns);
        int64_t end = std::clamp<int64_t>(last(i % rows), begin, columns);
        clear_run(target, out_step, begin);
        if (target != source)
          move_run(target + begin * out_step, out_step, source + begin * self_step, self_step, end - begin);
        clear_run(target + end * out_step, out_step, columns - end);
      }
    });
  });
}

}  // namespace

void cat(const Tensor& out, TensorList tensors, int64_t dim) {
  if (out.numel() == 0) return;
  bool blocks = out.is_contiguous();
  for (const Tensor& t : tensors)
    blocks = blocks && (t.numel() == 0 || (t.is_contiguous() && t.dtype() == out.dtype()));
  if (blocks) return cat_blocks(out, tensors, dim);
  int64_t at = 0;
  for (const Tensor& t : tensors) {
    if (skipped(t)) continue;
    copy(narrowed(out, dim, at, t.size(dim)), t);
    at += t.size(dim);
  }
}

void join_parts(const Tensor& out, const Tensor& real, const Tensor& imaginary) {
  Tensor first = cast(real, real_type(out.dtype())), second = cast(imaginary, real_type(out.dtype()));
  visit_item_size(first.item_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    LoopGeometry(out, {&first, &second}).for_each_inner([](char** data, const int64_t* strides, int64_t n) {
      constexpr int64_t item = sizeof(T);
      bool dense = strides[0] == 2 * item && strides[1] == item && strides[2] == item;
      if (dense) {
        T* __restrict to = reinterpret_cast<T*>(data[0]);
        const T *a = reinterpret_cast<const T*>(data[1]), *b = reinterpret_cast<const T*>(data[2]);
        for (int64_t i = 0; i < n; ++i) to[2 * i] = a[i], to[2 * i + 1] = b[i];
        return;
      }
      for (int64_t i = 0; i < n; ++i) {
        T* to = reinterpret_cast<T*>(data[0] + i * strides[0]);
        to[0] = *reinterpret_cast<const T*>(data[1] + i * strides[1]);
        to[1] = *reinterpret_cast<const T*>(data[2] + i * strides[2]);
      }
    });
  });
}

void flip(const Tensor& out, const Tensor& self, IntArrayRef dims) {
  if (self.numel() == 0) return;
  // Lines that stay as they are are moved whole, whatever they hold.
  int64_t last = self.dim() - 1;
  while (last > 0 && self.size(last) == 1) --last;
  if (std::find(dims.begin(), dims.end(), last) != dims.end() && self.size(last) > 1)
    check_type<AllTypesAndUnsigned>(self.dtype(), "flip_cpu");
  Strided<2> walk(self.sizes(), {out.strides(), self.strides()});
  int64_t base = 0;
  for (int64_t d : dims) {
    base += (self.size(d) - 1) * self.stride(d);
    walk.strides[1][d] = -self.stride(d);
  }
  walk.simplify();
  if (walk.sizes.empty()) walk.push(1, {1, 1});
  int64_t n = walk.sizes.back(), out_step = walk.strides[0].back(), self_step = walk.strides[1].back();
  walk.pop();
  if (walk.sizes.empty()) walk.push(1, {0, 0});
  int64_t rows = walk.sizes.back(), out_row = walk.strides[0].back(), self_row = walk.strides[1].back();
  visit_item_size(self.item_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* target = words<T>(out);
    const T* source = words<T>(self) + base;
    parallel_for(0, walk.numel(), kGrain / n, [&](int64_t from, int64_t to) {
      Odometer<2> at(walk);
      while (from < to) {
        at.seek(from);
        int64_t count = std::min(to - from, rows - from % rows);
        T* row = target + at[0];
        const T* source_row = source + at[1];
        for (int64_t i = 0; i < count; ++i, row += out_row, source_row += self_row)
          move_run(row, out_step, source_row, self_step, n);
        from += count;
      }
    });
  });
}

void roll(const Tensor& out, const Tensor& self, IntArrayRef shifts, IntArrayRef dims) {
  if (self.numel() == 0) return;
  if (dims.empty()) {
    Tensor target = out.is_contiguous() ? out : scratch(out.sizes(), out.dtype());
    std::pair<int64_t, int64_t> whole = {0, floor_mod(shifts[0], self.numel())};
    roll_dims(as_row(target), as_row(contiguous(self)), {whole});
    if (!target.is_same(out)) copy(out, target);
    return;
  }
  std::vector<std::pair<int64_t, int64_t>> steps;
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t size = self.size(dims[i]);
    auto known = std::find_if(steps.begin(), steps.end(), [&](auto& step) { return step.first == dims[i]; });
    if (known == steps.end()) known = steps.insert(steps.end(), {dims[i], 0});
    known->second = floor_mod(known->second + shifts[i], size);
  }
  if (steps.size() == 1 && steps[0].first > 0 && out.is_contiguous() && self.is_contiguous())
    return roll_lines(out, self, steps[0].first, steps[0].second);
  roll_dims(out, self, steps);
}

namespace {

/// Matrices that lie column after column: their transposes are walked, row after row.
bool lie_by_columns(const Tensor& out, const Tensor& self) {
  auto by_columns = [](const Tensor& t) { return t.stride(-1) != 1 && t.stride(-2) == 1; };
  return by_columns(out) && by_columns(self);
}
Tensor turned(const Tensor& t) {
  SymShape sizes(t.sym_sizes()), strides(t.sym_strides());
  std::swap(sizes[sizes.size() - 2], sizes[sizes.size() - 1]);
  std::swap(strides[strides.size() - 2], strides[strides.size() - 1]);
  return alias_tensor(t, sizes, strides, t.storage_offset());
}

// Beyond the matrix all diagonals are alike.
int64_t diagonal_inside(const Tensor& self, int64_t diagonal) {
  return std::clamp(diagonal, -self.size(-2), self.size(-1));
}

}  // namespace

void tril(const Tensor& out, const Tensor& self, int64_t diagonal) {
  check_type<AllOrHalfComplex>(self.dtype(), "tril");
  if (lie_by_columns(out, self)) return triu(turned(out), turned(self), -diagonal_inside(self, diagonal));
  diagonal = diagonal_inside(self, diagonal);
  keep_part(
      out, self, [](int64_t) { return int64_t{0}; }, [=](int64_t row) { return row + diagonal + 1; });
}

void triu(const Tensor& out, const Tensor& self, int64_t diagonal) {
  check_type<AllOrHalfComplex>(self.dtype(), "triu");
  if (lie_by_columns(out, self)) return tril(turned(out), turned(self), -diagonal_inside(self, diagonal));
  diagonal = diagonal_inside(self, diagonal);
  int64_t columns = self.size(-1);
  keep_part(
      out, self, [=](int64_t row) { return row + diagonal; }, [=](int64_t) { return columns; });
}

void repeat_interleave(const Tensor& out, const Tensor& repeats) {
  visit<IndexTypes>(repeats.dtype(), "repeat_interleave_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor counts = contiguous(repeats);
    T* target = out.data<T>();
    for (int64_t i = 0; i < counts.numel(); ++i) {
      T count = counts.data<T>()[i];
      check(count >= 0, "repeats can not be negative");
      for (T k = 0; k < count; ++k, target += out.stride(0)) *target = static_cast<T>(i);
    }
  });
}

}  // namespace umbra::kernels
