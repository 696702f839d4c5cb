// One step of a recurrent network, and the parameters of a layer.
#pragma once

#include <optional>
#include <tuple>
#include <vector>

#include "umbra/core/tensor.h"

namespace umbra::ops {

/// The parameters of one direction of one layer; biases and the projection may be undefined.
struct CellParameters {
  Tensor w_ih, w_hh, b_ih, b_hh, w_hr;
  /// What the inputs contribute, for one step or for all at once.
  Tensor from_input(const Tensor& input) const;
  Tensor from_hidden(const Tensor& hidden) const;
  /// The projection of a hidden state, where there is one.
  Tensor projected(const Tensor& hidden) const;
};

/// What a cell keeps from step to step: the hidden state, and a cell state where it has one.
struct CellState {
  Tensor hidden, cell;
  /// Some of the samples.
  CellState slice(SymInt begin, SymInt end) const;
  static CellState join(const std::vector<CellState>& parts);
};

/// A step from what the inputs contribute (`from_input`) and the state.
using Cell = CellState (*)(const Tensor& input, const CellState& state, const CellParameters& parameters);
/// One step of a kind of network: as it is run, in memory of its own that it writes, and by values alone, which is what
/// vmap needs where some of the tensors are batched and others are not.
struct CellKind {
  Cell step, values;
};
extern const CellKind kTanhCell, kReluCell, kLstmCell, kGruCell;

using CellPair = std::tuple<Tensor, Tensor>;

/// The parts of one step of an LSTM, by values: the next hidden state and cell from the two parts of the gates' sums,
/// of which the second may be undefined.
CellPair lstm_parts(const Tensor& past, const Tensor& input, const Tensor& cell);
/// The gradient of a step, with respect to the sum of gates and to the cell, in parts that can be differentiated.
/// Gradients that are undefined count as zero.
CellPair lstm_gradient_parts(const Tensor& grad_hidden, const Tensor& grad_cell, const Tensor& past,
                             const Tensor& input, const Tensor& cell);

/// All steps of one direction of a layer of an LSTM: hidden states and cells, [time, batch, features].
struct LstmLayer {
  Tensor hidden, cells;
};
/// The whole layer as one call and one node of a gradient's graph, where it is arithmetic on plain tensors that nobody
/// watches; nothing where it is not, or does not fit together. `data` is [time, batch, inputs].
std::optional<LstmLayer> lstm_layer(const Tensor& data, const CellState& first, const CellParameters& parameters,
                                    bool reverse);

}  // namespace umbra::ops
