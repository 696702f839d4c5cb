// Steps of recurrent networks.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// One step of an LSTM from two parts of its gates' sums, [batch, 4 * features] each, of which the second may be
/// undefined, and the cells before; all contiguous and of one type, float or double.
void lstm_cell(const Tensor& hidden, const Tensor& cell, const Tensor& gates, const Tensor& more_gates,
               const Tensor& cell_before);
/// Its gradient, from those of its results, which may be undefined: that of the gates, and that of the cells before.
void lstm_cell_gradient(const Tensor& grad_gates, const Tensor& grad_cell_before, const Tensor& grad_hidden,
                        const Tensor& grad_cell, const Tensor& gates, const Tensor& more_gates,
                        const Tensor& cell_before, const Tensor& cell);

/// All steps of a layer of an LSTM over [time, batch, ...]: `gates` is what the inputs contribute, `weight`
/// [4 * features, features] is for the hidden states. Fills the hidden states and cells after each step, and the sums
/// of its gates. Samples go their ways by themselves, so that threads share them out and never wait.
void lstm_layer(const Tensor& hidden, const Tensor& cells, const Tensor& sums, const Tensor& gates,
                const Tensor& first_hidden, const Tensor& first_cell, const Tensor& weight, bool reverse);
/// Its gradient from those of the hidden states and cells, which may be undefined: that of the gates, and those of the
/// first hidden state and cell.
void lstm_layer_gradient(const Tensor& grad_gates, const Tensor& grad_first_hidden, const Tensor& grad_first_cell,
                         const Tensor& grad_hidden, const Tensor& grad_cells, const Tensor& cells, const Tensor& sums,
                         const Tensor& first_cell, const Tensor& weight, bool reverse);

}  // namespace umbra::kernels
