#include "umbra/nn/padding.h"

#include <cstring>

#include "nn/text.h"
#include "umbra/generated/functions.h"

namespace umbra::nn {

template <size_t N>
Padding<N>::Padding(const char* type, Sizes<2 * N> padding, const char* mode, double value)
    : Layer(type), padding_(padding), mode_(mode), value_(value) {}

template <size_t N> Tensor Padding<N>::forward(Tensor x) {
  bool constant = std::strcmp(mode_, "constant") == 0;
  return pad(x, padding_, mode_, constant ? std::optional(value_) : std::nullopt);
}

template <size_t N> std::string Padding<N>::extra_repr() const {
  std::string sizes = tuple_text(padding_);
  bool says_value = this->type_name().find("Constant") != std::string::npos;
  return says_value ? concat("padding=", sizes, ", value=", value_) : sizes;
}

#define UMBRA_PADDING(Name, mode)                                                                           \
  template <size_t N>                                                                                       \
  Name<N>::Name(Sizes<2 * N> padding) : Padding<N>(UMBRA_LAYER_NAME(N, "padding", #Name), padding, mode) {} \
  template class UMBRA_INSTANCE Name<1>;                                                                    \
  template class UMBRA_INSTANCE Name<2>;                                                                    \
  template class UMBRA_INSTANCE Name<3>;
UMBRA_PADDING(ReflectionPad, "reflect")
UMBRA_PADDING(ReplicationPad, "replicate")
UMBRA_PADDING(CircularPad, "circular")
UMBRA_PADDING(ZeroPad, "constant")
#undef UMBRA_PADDING

template <size_t N>
ConstantPad<N>::ConstantPad(Sizes<2 * N> padding, double value)
    : Padding<N>(UMBRA_LAYER_NAME(N, "padding", "ConstantPad"), padding, "constant", value) {}
template class UMBRA_INSTANCE ConstantPad<1>;
template class UMBRA_INSTANCE ConstantPad<2>;
template class UMBRA_INSTANCE ConstantPad<3>;

}  // namespace umbra::nn
