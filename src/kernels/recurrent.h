// Steps of recurrent networks.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// One step of an LSTM from the sums of its gates' parts, [batch, 4 * features] each, and the cells before; all
/// contiguous and of one type, float or double.
void lstm_cell(const Tensor& hidden, const Tensor& cell, const Tensor& gates, const Tensor& more_gates,
               const Tensor& cell_before);
/// Its gradient, from those of its results, which may be undefined: that of the gates, and that of the cells before.
void lstm_cell_gradient(const Tensor& grad_gates, const Tensor& grad_cell_before, const Tensor& grad_hidden,
                        const Tensor& grad_cell, const Tensor& gates, const Tensor& more_gates,
                        const Tensor& cell_before, const Tensor& cell);

}  // namespace umbra::kernels
