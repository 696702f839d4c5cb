#include "kernels/masks.h"

#include <atomic>
#include <bit>
#include <numeric>

#include "kernels/copy.h"
#include "kernels/index.h"
#include "kernels/parallel.h"
#include "kernels/visit.h"
#include "kernels/walk.h"

namespace umbra::kernels {

namespace {

template <class T> bool is_nonzero(T x) {
  // The bits but the sign: NaN is not zero, -0 is, and the compiler makes vectors of it.
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<uint32_t>(x) << 1 != 0;
  else if constexpr (std::is_same_v<T, double>) return std::bit_cast<uint64_t>(x) << 1 != 0;
  else return static_cast<Compute<T>>(x) != Compute<T>(0);
}

constexpr int64_t kMaskChunk = 512;

// Writes those of n places from `begin` on where `holds`, and returns how many they are. There is no branch on what the
// mask holds: it would be guessed wrong half of the time.
template <class Holds> int64_t places_where(int64_t n, int64_t begin, int64_t* places, const Holds& holds) {
  int64_t count = 0;
  for (int64_t j = begin; j < begin + n; ++j) {
    places[count] = j;
    count += holds(j);
  }
  return count;
}

template <class T> int64_t count_where_nonzero(const T* data, int64_t from, int64_t to) {
  int64_t count = 0;
  for (int64_t i = from; i < to; ++i) count += is_nonzero(data[i]);
  return count;
}

// Writes the positions of those of the elements [from, to) that are not zero, from a row of `out` on. `data` has the
// elements of `self` side by side.
template <class T>
void write_positions(const Tensor& out, int64_t row, const Tensor& self, const T* data, int64_t from, int64_t to) {
  int64_t row_step = out.strides()[0], step = out.strides()[1], *target = out.data<int64_t>() + row * row_step;
  int64_t last = self.dim() - 1, length = last >= 0 ? self.size(last) : 1;
  Strided<1> outer;
  for (int64_t d = 0; d < last; ++d) outer.push(self.size(d), {0});
  Odometer<1> at(outer);
  at.seek(from / length);
  int64_t found[kMaskChunk];
  for (int64_t line = from / length * length; line < to; line += length, at.next()) {
    int64_t line_end = std::min(length, to - line);
    for (int64_t begin = std::max<int64_t>(0, from - line); begin < line_end; begin += kMaskChunk) {
      const T* chunk = data + line;
      int64_t n = std::min(kMaskChunk, line_end - begin), count = count_where_nonzero(chunk, begin, begin + n);
      if (count == n) std::iota(found, found + n, begin);
      else if (count > 0) places_where(n, begin, found, [&](int64_t j) { return is_nonzero(chunk[j]); });
      for (int64_t d = 0; d < last; ++d) {
        const int64_t digit = at.digit(d);
        int64_t* column = target + d * step;
        if (row_step == 1)  // lines are short: a call would take longer
          for (int64_t i = 0; i < count; ++i) column[i] = digit;
        else
          for (int64_t i = 0; i < count; ++i) column[i * row_step] = digit;
      }
      if (last >= 0) {
        int64_t* column = target + last * step;
        if (row_step == 1)
          copy_bytes(reinterpret_cast<char*>(column), reinterpret_cast<const char*>(found), count * sizeof(int64_t));
        else
          for (int64_t i = 0; i < count; ++i) column[i * row_step] = found[i];
      }
      target += count * row_step;
    }
  }
}

}  // namespace

int64_t count_nonzero(const Tensor& self) {
  std::atomic<int64_t> total = 0;
  Strided<1> walk(self.sizes(), {self.strides()});
  walk.simplify();
  bool side_by_side = walk.sizes.empty() || (walk.sizes.size() == 1 && walk.strides[0][0] == 1);
  visit<AllOrHalfComplex>(self.dtype(), "nonzero_count_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(0, self.numel(), kGrain, [&](int64_t from, int64_t to) {
      const T* data = self.data<T>();
      int64_t count = 0;
      if (side_by_side) {
        count = count_where_nonzero(data, from, to);
      } else {
        Odometer<1> at(walk);
        at.seek(from);
        for (int64_t i = from; i < to; ++i, at.next()) count += is_nonzero(data[at[0]]);
      }
      total += count;
    });
  });
  return total;
}

void nonzero(const Tensor& out, const Tensor& self) {
  if (self.numel() == 0) return;
  Tensor dense = contiguous(self);
  // Each part is counted before any is written, so that all know where their positions go.
  constexpr int64_t kLeast = kGrain / 4;
  int64_t numel = self.numel(), parts = std::clamp<int64_t>(numel / kLeast, 1, num_threads());
  int64_t length = (numel + parts - 1) / parts;
  auto each_part = [&](const auto& visit_part) {
    parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
      for (int64_t part = first; part < last; ++part)
        visit_part(part, part * length, std::min(numel, (part + 1) * length));
    });
  };
  visit<AllOrHalfComplex>(self.dtype(), "nonzero_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* data = dense.data<T>();
    std::vector<int64_t> rows(parts + 1, 0);
    if (parts > 1)
      each_part([&](int64_t part, int64_t from, int64_t to) { rows[part + 1] = count_where_nonzero(data, from, to); });
    std::partial_sum(rows.begin(), rows.end(), rows.begin());
    each_part([&](int64_t part, int64_t from, int64_t to) { write_positions(out, rows[part], self, data, from, to); });
  });
}

void masked_select(const Tensor& out, const Tensor& self, const Tensor& mask) {
  std::vector<int64_t> shape = broadcast_shape(std::vector<Tensor>{self, mask});
  Strided<2> walk(shape, {broadcast_strides(self, shape), broadcast_strides(mask, shape)});
  walk.simplify();
  if (walk.sizes.empty()) walk.push(1, {0, 0});
  int64_t length = walk.sizes.back(), self_step = walk.strides[0].back(), mask_step = walk.strides[1].back();
  walk.pop();
  auto* holds = static_cast<const uint8_t*>(mask.raw_data());
  visit_item_size(self.item_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* target = words<T>(out);
    int64_t found[kMaskChunk], target_step = out.stride(0);
    Odometer<2> at(walk);
    for (int64_t line = 0, lines = length > 0 ? walk.numel() : 0; line < lines; ++line, at.next()) {
      const T* from = words<T>(self) + at[0];
      const uint8_t* wanted = holds + at[1];
      for (int64_t begin = 0; begin < length; begin += kMaskChunk) {
        int64_t count = places_where(std::min(kMaskChunk, length - begin), begin, found,
                                     [&](int64_t j) { return wanted[j * mask_step] != 0; });
        for (int64_t i = 0; i < count; ++i) target[i * target_step] = from[found[i] * self_step];
        target += count * target_step;
      }
    }
  });
}

void masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  check_type<AllTypes>(self.dtype(), "masked_scatter");
  Strided<2> walk(self.sizes(), {self.strides(), broadcast_strides(mask, self.sizes())});
  walk.simplify();
  if (walk.sizes.empty()) walk.push(1, {0, 0});
  int64_t length = walk.sizes.back(), self_step = walk.strides[0].back(), mask_step = walk.strides[1].back();
  walk.pop();
  Tensor values = contiguous(source);
  auto* holds = static_cast<const uint8_t*>(mask.raw_data());
  visit_item_size(self.item_size(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *next = words<T>(values), *end = next + values.numel();
    int64_t found[kMaskChunk];
    Odometer<2> at(walk);
    for (int64_t line = 0, lines = length > 0 ? walk.numel() : 0; line < lines; ++line, at.next()) {
      T* to = words<T>(self) + at[0];
      const uint8_t* wanted = holds + at[1];
      for (int64_t begin = 0; begin < length; begin += kMaskChunk) {
        int64_t count = places_where(std::min(kMaskChunk, length - begin), begin, found,
                                     [&](int64_t j) { return wanted[j * mask_step] != 0; });
        check(count <= end - next, "Number of elements of source < number of ones in mask");
        for (int64_t i = 0; i < count; ++i) to[found[i] * self_step] = next[i];
        next += count;
      }
    }
  });
}

}  // namespace umbra::kernels
