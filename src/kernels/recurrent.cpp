#include "kernels/recurrent.h"

#include "kernels/copy.h"
#include "kernels/parallel.h"
#include "kernels/repeated_matrix.h"
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
                                     more_gates.defined() ? more_gates.data<T>() + 4 * i * n : nullptr,
                                     cell_before.data<T>() + i * n, n);
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

namespace {

/// Samples [from, to) of a step, or of a state that has no time.
Tensor samples(const Tensor& t, int64_t from, int64_t to) {
  return alias_tensor(t, {to - from, t.size(1)}, t.sym_strides(), t.storage_offset() + from * t.stride(0));
}
Tensor samples(const Tensor& t, int64_t step, int64_t from, int64_t to) {
  int64_t offset = t.storage_offset() + step * t.stride(0) + from * t.stride(1);
  return alias_tensor(t, {to - from, t.size(2)}, {t.stride(1), t.stride(2)}, offset);
}

/// sum += x, where both are contiguous.
void add_into(const Tensor& sum, const Tensor& x) {
  visit<Floating>(sum.dtype(), "lstm_layer", [&](auto tag) {
    using T = typename decltype(tag)::type;
    row_functions<T>().add(sum.data<T>(), x.data<T>(), sum.numel());
  });
}

/// So many samples make a product that is worth a thread of its own: a weight is read once for all of them.
constexpr int64_t kSamples = 8;

/// Whether threads share the samples out. Fewer than there is work for stay together, and the products of each step are
/// shared out.
bool is_shared(int64_t samples) { return samples >= kSamples * num_threads(); }

/// Calls `run(from, to)` for parts of the samples.
template <class Run> void share_samples(int64_t count, const Run& run) {
  is_shared(count) ? parallel_for(0, count, kSamples, run) : run(0, count);
}

/// The weight by which hidden states of all steps are multiplied, on its right side.
RepeatedMatrix weight_of(const Tensor& weight, int64_t samples, int64_t steps) {
  return RepeatedMatrix(weight, is_shared(samples) ? kSamples : samples, steps);
}

/// The order in which steps are taken.
struct Steps {
  int64_t count;
  bool reverse;
  int64_t operator[](int64_t k) const { return reverse ? count - 1 - k : k; }
};

}  // namespace

void lstm_layer(const Tensor& hidden, const Tensor& cells, const Tensor& sums, const Tensor& gates,
                const Tensor& first_hidden, const Tensor& first_cell, const Tensor& weight, bool reverse) {
  Steps steps{gates.size(0), reverse};
  Tensor turned = alias_tensor(weight, {weight.size(1), weight.size(0)}, {weight.stride(1), weight.stride(0)},
                               weight.storage_offset());
  RepeatedMatrix of_hidden = weight_of(turned, gates.size(1), steps.count);
  share_samples(gates.size(1), [&](int64_t from, int64_t to) {
    Tensor before = samples(first_hidden, from, to), cell_before = samples(first_cell, from, to);
    for (int64_t k = 0; k < steps.count; ++k) {
      auto part = [&](const Tensor& t) { return samples(t, steps[k], from, to); };
      Tensor sum = part(sums), next = part(hidden), cell = part(cells);
      of_hidden.add_product(sum, part(gates), before);
      lstm_cell(next, cell, sum, {}, cell_before);
      before = next;
      cell_before = cell;
    }
  });
}

void lstm_layer_gradient(const Tensor& grad_gates, const Tensor& grad_first_hidden, const Tensor& grad_first_cell,
                         const Tensor& grad_hidden, const Tensor& grad_cells, const Tensor& cells, const Tensor& sums,
                         const Tensor& first_cell, const Tensor& weight, bool reverse) {
  Steps steps{sums.size(0), reverse};
  RepeatedMatrix to_hidden = weight_of(weight, sums.size(1), steps.count);
  Tensor all_given = grad_hidden.defined() ? contiguous(grad_hidden) : Tensor();
  Tensor all_given_cells = grad_cells.defined() ? contiguous(grad_cells) : Tensor();
  share_samples(sums.size(1), [&](int64_t from, int64_t to) {
    // What comes from the step after; the memory of the first states' gradients holds it on the way there.
    Tensor of_hidden = samples(grad_first_hidden, from, to), of_cell = samples(grad_first_cell, from, to);
    for (int64_t k = steps.count - 1; k >= 0; --k) {
      auto part = [&](const Tensor& t) { return t.defined() ? samples(t, steps[k], from, to) : Tensor(); };
      bool last = k == steps.count - 1;
      Tensor given = part(all_given), given_cell = part(all_given_cells), of_gates = part(grad_gates);
      if (!last && given.defined()) add_into(of_hidden, given);
      if (!last && given_cell.defined()) add_into(of_cell, given_cell);
      Tensor cell_before = k > 0 ? samples(cells, steps[k - 1], from, to) : samples(first_cell, from, to);
      lstm_cell_gradient(of_gates, of_cell, last ? given : of_hidden, last ? given_cell : of_cell, part(sums), {},
                         cell_before, part(cells));
      to_hidden.product(of_hidden, of_gates);
    }
  });
}

}  // namespace umbra::kernels
