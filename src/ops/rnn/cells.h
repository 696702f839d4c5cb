// One step of a recurrent network, and the parameters of a layer.
#pragma once

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

}  // namespace umbra::ops
