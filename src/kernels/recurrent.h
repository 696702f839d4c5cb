// Steps of recurrent networks.
#pragma once

#include "umbra/core/tensor.h"

namespace umbra::kernels {

/// One step of an LSTM from the sums of its gates' parts, [batch, 4 * features] each, and the cells before; all
/// contiguous and of one type, float or double.
void lstm_cell(const Tensor& hidden, const Tensor& cell, const Tensor& gates, const Tensor& more_gates,
               const Tensor& cell_before);

}  // namespace umbra::kernels
