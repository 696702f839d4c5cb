#include "kernels/recurrent.h"

#include "kernels/copy.h"
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
    parallel_for(0, cell.size(0), kGrain / (32 * n), [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i)
        row_functions<T>().lstm_cell(hidden.data<T>() + i * n, cell.data<T>() + i * n, gates.data<T>() + 4 * i * n,
                                     more_gates.data<T>() + 4 * i * n, cell_before.data<T>() + i * n, n);
    });
  });
}

void lstm_cell_gradient(const Tensor& grad_gates, const Tensor& grad_cell_before, const Tensor& grad_hidden,
                        const Tensor& grad_cell, const Tensor& gates, const Tensor& more_gates,
                        const Tensor& cell_before, const Tensor& cell) {
  if (cell.numel() == 0) return;
  Tensor of_hidden = grad_hidden.defined() ? contiguous(grad_hidden) : Tensor();
  Tensor of_cell = grad_cell.defined() ? contiguous(grad_cell) : Tensor();
  int64_t n = cell.size(1);
  visit<Floating>(cell.dtype(), "lstm_cell", [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto row = [n](const Tensor& t, int64_t i) { return t.defined() ? t.data<T>() + i * n : nullptr; };
    parallel_for(0, cell.size(0), kGrain / (32 * n), [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i)
        row_functions<T>().lstm_cell_gradient(row(grad_gates, 4 * i), row(grad_cell_before, i), row(of_hidden, i),
                                              row(of_cell, i), row(gates, 4 * i), row(more_gates, 4 * i),
                                              row(cell_before, i), row(cell, i), n);
    });
  });
}

}  // namespace umbra::kernels
