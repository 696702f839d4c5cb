// What training loops do to parameters and gradients besides the optimiser.
//
//     loss.backward();
//     double norm = nn::utils::clip_grad_norm_(model.parameters(), 1.0);
//     optimizer.step();
#pragma once

#include "umbra/core/tensor.h"

namespace UMBRA_API umbra {
namespace nn::utils {

/// Scales the gradients together so that their norm is no more than `max_norm`; gives the norm they had. Parameters
/// without a gradient do not count. `norm_type` may be infinite: the largest element.
double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2,
                       bool error_if_nonfinite = false);
/// Clamps each element of the gradients to [-clip_value, clip_value].
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);

/// All parameters one after the other.
Tensor parameters_to_vector(const std::vector<Tensor>& parameters);
/// Writes each parameter's part of the vector to it. A vector of another length is an error.
void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters);

}  // namespace nn::utils
}  // namespace umbra
