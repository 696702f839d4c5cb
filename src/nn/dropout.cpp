#include "umbra/nn/dropout.h"

#include "umbra/generated/functions.h"
#include "umbra/nn/functional.h"

namespace umbra::nn {

DropoutLayer::DropoutLayer(const char* type, double p) : Layer(type), p_(p) {
  check<ValueError>(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
}
std::string DropoutLayer::extra_repr() const { return concat("p=", p_, ", inplace=False"); }

#define UMBRA_DROPOUT(Name, function)                                          \
  Name::Name(double p) : DropoutLayer("torch.nn.modules.dropout." #Name, p) {} \
  Tensor Name::forward(Tensor x) { return function(x, p_, is_training()); }
UMBRA_DROPOUT(Dropout, dropout)
UMBRA_DROPOUT(Dropout1d, functional::dropout1d)
UMBRA_DROPOUT(Dropout2d, functional::dropout2d)
UMBRA_DROPOUT(Dropout3d, functional::dropout3d)
UMBRA_DROPOUT(AlphaDropout, alpha_dropout)
UMBRA_DROPOUT(FeatureAlphaDropout, feature_alpha_dropout)
#undef UMBRA_DROPOUT

}  // namespace umbra::nn
