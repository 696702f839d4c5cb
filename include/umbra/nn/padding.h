// Margins around signals, images and volumes: so many elements at the front and the back of each dimension, the last
// dimension first, as `pad` has them.
//
//     Tensor y = nn::ReflectionPad2d(1)(randn({1, 3, 4, 4}));        // [1, 3, 6, 6]
//     Tensor z = nn::ZeroPad2d({1, 2, 0, 0})(y);                     // left and right alone
#pragma once

#include "umbra/nn/module.h"
#include "umbra/nn/sizes.h"

namespace UMBRA_API umbra {
namespace nn {

/// What they share: one operator, and what it fills the margins with.
template <size_t N> class Padding : public Layer {
 public:
  Tensor forward(Tensor x) override;
  std::string extra_repr() const override;

 protected:
  Padding(const char* type, Sizes<2 * N> padding, const char* mode, double value = 0);

 private:
  Sizes<2 * N> padding_;
  const char* mode_;
  double value_;
};

#define UMBRA_PADDING(Name)                            \
  template <size_t N> class Name : public Padding<N> { \
   public:                                             \
    explicit Name(Sizes<2 * N> padding);               \
  };                                                   \
  using Name##1d = Name<1>;                            \
  using Name##2d = Name<2>;                            \
  using Name##3d = Name<3>
/// The elements next to the border, mirrored at it.
UMBRA_PADDING(ReflectionPad);
/// The elements at the border, over and over.
UMBRA_PADDING(ReplicationPad);
/// The elements of the other end.
UMBRA_PADDING(CircularPad);
UMBRA_PADDING(ZeroPad);
#undef UMBRA_PADDING

template <size_t N> class ConstantPad : public Padding<N> {
 public:
  ConstantPad(Sizes<2 * N> padding, double value);
};
using ConstantPad1d = ConstantPad<1>;
using ConstantPad2d = ConstantPad<2>;
using ConstantPad3d = ConstantPad<3>;

}  // namespace nn
}  // namespace umbra
