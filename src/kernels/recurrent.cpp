#include "kernels/recurrent.h"

#include "kernels/parallel.h"
#include "kernels/vector/rows.h"
#include "kernels/visit.h"

namespace umbra::kernels {

void lstm_cell(const Tensor& hidden, const Tensor& cell, const Tensor& gates, const Tensor& more_gates,
               const Tensor& cell_before) {
  if (cell.numel() == 0) return;
  int64_t n = cell.size(1);
  visit<Floating>(cell.dtype(), "lstm_cell", [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(0, cell.size(0), kGrain / (8 * n), [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i)
        row_functions<T>().lstm_cell(hidden.data<T>() + i * n, cell.data<T>() + i * n, gates.data<T>() + 4 * i * n,
                                     more_gates.data<T>() + 4 * i * n, cell_before.data<T>() + i * n, n);
    });
  });
}

}  // namespace umbra::kernels
