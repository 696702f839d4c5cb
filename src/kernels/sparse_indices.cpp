#include "kernels/sparse_indices.h"

#include <algorithm>

#include "kernels/copy.h"

namespace umbra::kernels {

void row_starts(const Tensor& out, const Tensor& rows) {
  const int64_t count = rows.numel(), size = out.numel() - 1;
  const int64_t* row = count > 0 ? rows.data<int64_t>() : nullptr;
  int64_t misfits = 0;  // negative where one is
  for (int64_t i = 0; i < count; ++i) misfits |= row[i] | (size - 1 - row[i]);
  for (int64_t i = 0; i < count && misfits < 0; ++i)
    check(row[i] >= 0 && row[i] < size, "index ", row[i], " is out of bounds for ", size, " rows");
  bool in_place = out.dtype() == DType::Int64 && out.is_contiguous();
  Tensor starts = in_place ? out : scratch(out.sizes(), DType::Int64);
  int64_t* start = starts.data<int64_t>();
  // Where the number of the row grows, the rows up to it begin. What is not in order gives what PyTorch makes of it.
  int64_t current = count > 0 ? row[0] : size;
  std::fill(start, start + current + 1, 0);
  constexpr int64_t kBlock = 16;
  for (int64_t first = 1; first < count; first += kBlock) {
    const int64_t last = std::min(first + kBlock, count);
    int64_t grows = 0;  // negative where one does; in long rows most blocks have none
    for (int64_t i = first; i < last; ++i) grows |= current - row[i];
    for (int64_t i = first; i < last && grows < 0; ++i) {
      const int64_t next = row[i];
      if (current < next) start[++current] = i;  // mostly one: nothing for a loop
      while (current < next) start[++current] = i;
    }
  }
  if (count > 0) std::fill(start + row[count - 1] + 1, start + size + 1, count);
  if (!in_place) copy(out, starts);
}

}  // namespace umbra::kernels
