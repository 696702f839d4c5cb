// Initial values of parameters, drawn as PyTorch draws them: the same seed gives the same weights.
//
//     nn::init::kaiming_normal_(conv.weight, 0, nn::init::FanMode::FanOut, "relu");
//     nn::init::zeros_(conv.bias);
#pragma once

#include <string>

#include "umbra/core/tensor.h"

namespace UMBRA_API umbra {
namespace nn::init {

enum class FanMode : uint8_t { FanIn, FanOut };

/// Number of inputs and outputs that an element of the weight takes part in.
struct Fans {
  int64_t in, out;
};
Fans fans_of(const Tensor& weight);
/// The factor that keeps variance through a nonlinearity: "linear", "relu", "tanh", "leaky_relu", "sigmoid", "selu".
double gain(const std::string& nonlinearity, double parameter = 0.01);

// All of these write the tensor outside autograd and return it.
Tensor uniform_(const Tensor& tensor, double from = 0, double to = 1);
Tensor normal_(const Tensor& tensor, double mean = 0, double std = 1);
Tensor constant_(const Tensor& tensor, double value);
Tensor zeros_(const Tensor& tensor);
Tensor ones_(const Tensor& tensor);
/// The identity, of a matrix; of any tensor a (half) orthogonal matrix of its first dimension and all the others.
Tensor eye_(const Tensor& matrix);
Tensor orthogonal_(const Tensor& tensor, double gain = 1);
Tensor xavier_uniform_(const Tensor& weight, double gain = 1);
Tensor xavier_normal_(const Tensor& weight, double gain = 1);
Tensor kaiming_uniform_(const Tensor& weight, double a = 0, FanMode mode = FanMode::FanIn,
                        const std::string& nonlinearity = "leaky_relu");
Tensor kaiming_normal_(const Tensor& weight, double a = 0, FanMode mode = FanMode::FanIn,
                       const std::string& nonlinearity = "leaky_relu");

}  // namespace nn::init
}  // namespace umbra
