// Dropout, of elements and of whole channels. In training alone; otherwise the input passes as it is.
//
//     nn::Dropout drop(0.1);
//     drop.eval();
//     Tensor y = drop(x);                                            // x itself
#pragma once

#include "umbra/nn/module.h"

namespace UMBRA_API umbra {
namespace nn {

/// What they share: the probability with which something is dropped.
class DropoutLayer : public Layer {
 public:
  std::string extra_repr() const override;

 protected:
  DropoutLayer(const char* type, double p);
  double p_;
};

#define UMBRA_DROPOUT(Name)            \
  class Name : public DropoutLayer {   \
   public:                             \
    explicit Name(double p = 0.5);     \
    Tensor forward(Tensor x) override; \
  }
/// Zeroes elements, and scales the others up.
UMBRA_DROPOUT(Dropout);
/// Whole channels of sequences, images and volumes.
UMBRA_DROPOUT(Dropout1d);
UMBRA_DROPOUT(Dropout2d);
UMBRA_DROPOUT(Dropout3d);
/// Keeps mean and variance of what SELU gives; the second one by whole channels.
UMBRA_DROPOUT(AlphaDropout);
UMBRA_DROPOUT(FeatureAlphaDropout);
#undef UMBRA_DROPOUT

}  // namespace nn
}  // namespace umbra
