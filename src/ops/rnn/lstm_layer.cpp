// A layer of an LSTM over whole sequences, as one call. Step by step it would be a product, a step and a dozen nodes of
// the gradient's graph for each moment, and the gradient of the weight a sum of as many products of a few rows; as a
// whole, that gradient is one product. Captures, modes and transforms see the steps instead.
#include "kernels/recurrent.h"
#include "ops/common/batching.h"
#include "ops/common/may_read.h"
#include "ops/norm/by_parts.h"
#include "ops/rnn/cells.h"
#include "umbra/dispatch/define.h"
#include "umbra/dispatch/typed.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using LayerResult = std::tuple<Tensor, Tensor, Tensor>;             // hidden states, cells, sums of gates
using LayerGradients = std::tuple<Tensor, Tensor, Tensor, Tensor>;  // of gates, first hidden state, first cell, weight

/// The steps of a layer in the order in which they are taken.
std::vector<int64_t> steps_in_order(int64_t count, bool reverse) {
  std::vector<int64_t> order;
  for (int64_t k = 0; k < count; ++k) order.push_back(reverse ? count - 1 - k : k);
  return order;
}

/// The layer by values, step by step.
LayerResult layer_by_parts(const Tensor& gates, const Tensor& first_hidden, const Tensor& first_cell,
                           const Tensor& weight, bool reverse) {
  std::vector<Tensor> given = gates.unbind(0), hidden(given.size()), cells(given.size()), sums(given.size());
  CellState state{first_hidden, first_cell};
  for (int64_t step : steps_in_order(static_cast<int64_t>(given.size()), reverse)) {
    size_t t = static_cast<size_t>(step);
    sums[t] = given[t].add(state.hidden.matmul(weight.t()));
    std::tie(state.hidden, state.cell) = lstm_parts(sums[t], {}, state.cell);
    hidden[t] = state.hidden;
    cells[t] = state.cell;
  }
  return {stack(hidden, 0), stack(cells, 0), stack(sums, 0)};
}

/// What a layer gave, and was given, as far as its gradient needs it.
struct Saved {
  const Tensor &hidden, &cells, &sums, &first_hidden, &first_cell, &weight;
  bool reverse;
};

Tensor sum_of(const Tensor& a, const Tensor& b) { return !a.defined() ? b : !b.defined() ? a : a.add(b); }

/// The gradient in parts that can be differentiated: the sums of gates then have a gradient, too.
LayerGradients gradients_by_parts(const Tensor& grad_hidden, const Tensor& grad_cells, const Tensor& grad_sums,
                                  const Saved& saved) {
  auto [hidden, cells, sums, first_hidden, first_cell, weight, reverse] = saved;
  auto at = [](const Tensor& t, int64_t step) { return t.defined() ? t.select(0, step) : Tensor(); };
  std::vector<int64_t> order = steps_in_order(sums.size(0), reverse);
  std::vector<Tensor> of_gates(order.size());
  Tensor of_hidden, of_cell, of_weight;
  for (size_t k = order.size(); k-- > 0;) {
    int64_t t = order[k];
    Tensor hidden_before = k > 0 ? at(hidden, order[k - 1]) : first_hidden;
    Tensor cell_before = k > 0 ? at(cells, order[k - 1]) : first_cell;
    auto [of_sums, of_cell_before] = lstm_gradient_parts(
        sum_of(at(grad_hidden, t), of_hidden), sum_of(at(grad_cells, t), of_cell), at(sums, t), {}, cell_before);
    of_cell = of_cell_before;
    Tensor& all = of_gates[static_cast<size_t>(t)] = sum_of(of_sums, at(grad_sums, t));
    of_hidden = all.matmul(weight);
    of_weight = sum_of(of_weight, all.t().matmul(hidden_before));
  }
  return {stack(of_gates, 0), of_hidden, of_cell, of_weight};
}

/// The gradient of the weight: each step's gradient of gates times the hidden state before it, all steps at once.
Tensor weight_gradient(const Tensor& of_gates, const Saved& saved) {
  int64_t later = of_gates.size(0) - 1;
  Tensor first = of_gates.select(0, saved.reverse ? later : 0).t().mm(saved.first_hidden);
  auto rows = [&](const Tensor& t, bool from_second) {
    return t.narrow(0, from_second ? 1 : 0, later).reshape({later * t.size(1), t.size(2)});
  };
  return later == 0 ? first : first.addmm_(rows(of_gates, !saved.reverse).t(), rows(saved.hidden, saved.reverse));
}

LayerGradients gradients(const Tensor& grad_hidden, const Tensor& grad_cells, const Tensor& grad_sums,
                         const Tensor& first_hidden, const Tensor& first_cell, const Tensor& weight, bool reverse,
                         const Tensor& hidden, const Tensor& cells, const Tensor& sums,
                         const std::vector<bool>& needs) {
  static const auto fused = typed<LayerResult(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                              const Tensor&, bool)>("umbra::lstm_layer_backward");
  Saved saved{hidden, cells, sums, first_hidden, first_cell, weight, reverse};
  if (grad_sums.defined() || !may_read(sums) ||
      wants_derivative({&grad_hidden, &grad_cells, &hidden, &cells, &sums, &first_hidden, &first_cell, &weight}))
    return gradients_by_parts(grad_hidden, grad_cells, grad_sums, saved);
  auto [of_gates, of_hidden, of_cell] = fused(grad_hidden, grad_cells, cells, sums, first_cell, weight, reverse);
  return {of_gates, of_hidden, of_cell, needs[3] ? weight_gradient(of_gates, saved) : Tensor()};
}

TensorSpec spec_of(const Tensor& like) { return TensorSpec(like.sym_sizes(), like.dtype(), like.device()); }

UMBRA_OPERATOR(
    "umbra::lstm_layer(Tensor gates, Tensor first_hidden, Tensor first_cell, Tensor weight, bool reverse) -> (Tensor "
    "hidden, Tensor cells, Tensor sums)")
    .meta([](const Tensor& gates, const Tensor&, const Tensor&, const Tensor& weight, bool) {
      TensorSpec states(SymShape{gates.sym_size(0), gates.sym_size(1), weight.sym_size(1)}, gates.dtype(),
                        gates.device());
      return std::tuple(states, states, spec_of(gates));
    })
    .cpu<3>([](const Tensor& hidden, const Tensor& cells, const Tensor& sums, const Tensor& gates,
               const Tensor& first_hidden, const Tensor& first_cell, const Tensor& weight, bool reverse) {
      kernels::lstm_layer(hidden, cells, sums, gates, first_hidden, first_cell, weight, reverse);
    })
    .gradient("gates, first_hidden, first_cell, weight",
              {"grad0", "grad1", "grad2", "first_hidden", "first_cell", "weight", "reverse", "hidden", "cells", "sums",
               "needs"},
              gradients)
    .tangents_through(layer_by_parts)
    .use(batch_through(layer_by_parts));
UMBRA_OPERATOR(
    "umbra::lstm_layer_backward(Tensor? grad_hidden, Tensor? grad_cells, Tensor cells, Tensor sums, Tensor first_cell, "
    "Tensor weight, bool reverse) -> (Tensor, Tensor, Tensor)")
    .meta([](const Tensor&, const Tensor&, const Tensor&, const Tensor& sums, const Tensor& first_cell, const Tensor&,
             bool) { return std::tuple(spec_of(sums), spec_of(first_cell), spec_of(first_cell)); })
    .cpu<3>([](const Tensor& of_gates, const Tensor& of_hidden, const Tensor& of_cell, const Tensor& grad_hidden,
               const Tensor& grad_cells, const Tensor& cells, const Tensor& sums, const Tensor& first_cell,
               const Tensor& weight, bool reverse) {
      kernels::lstm_layer_gradient(of_gates, of_hidden, of_cell, grad_hidden, grad_cells, cells, sums, first_cell,
                                   weight, reverse);
    })
    .not_differentiable();

/// Whether the tensors are plain, of one type and of sizes that fit, so that the steps would meet no error.
bool fits_one_call(const Tensor& data, const CellState& first, const CellParameters& parameters) {
  const Tensor& weight = parameters.w_hh;
  if (parameters.w_hr.defined() || parameters.b_ih.defined() != parameters.b_hh.defined()) return false;
  for (const Tensor* t :
       {&data, &first.hidden, &first.cell, &weight, &parameters.w_ih, &parameters.b_ih, &parameters.b_hh})
    if (t->defined() && (!may_read(*t) || t->dtype() != data.dtype())) return false;
  if (data.dtype() != DType::Float32 && data.dtype() != DType::Float64) return false;
  if (data.dim() != 3 || data.numel() == 0 || weight.dim() != 2 || first.hidden.dim() != 2) return false;
  int64_t width = weight.size(1);
  bool sizes_fit = weight.size(0) == 4 * width && first.hidden.size(0) == data.size(1) &&
                   first.hidden.size(1) == width && first.cell.sym_sizes() == first.hidden.sym_sizes() && width > 0;
  bool weights_fit = parameters.w_ih.sym_sizes() == SymShape{4 * width, data.size(2)} &&
                     (!parameters.b_ih.defined() || (parameters.b_ih.sym_sizes() == SymShape{4 * width} &&
                                                     parameters.b_hh.sym_sizes() == SymShape{4 * width}));
  return sizes_fit && weights_fit;
}

}  // namespace

std::optional<LstmLayer> lstm_layer(const Tensor& data, const CellState& first, const CellParameters& parameters,
                                    bool reverse) {
  static const auto layer =
      typed<LayerResult(const Tensor&, const Tensor&, const Tensor&, const Tensor&, bool)>("umbra::lstm_layer");
  if (!fits_one_call(data, first, parameters)) return std::nullopt;
  Tensor bias = parameters.b_ih.defined() ? parameters.b_ih.add(parameters.b_hh) : Tensor();
  auto [hidden, cells, sums] = layer(linear(data, parameters.w_ih, bias).contiguous(), first.hidden.contiguous(),
                                     first.cell.contiguous(), parameters.w_hh.contiguous(), reverse);
  return LstmLayer{hidden, cells};
}

}  // namespace umbra::ops
