#include "umbra/nn/container.h"

namespace umbra::nn {

Tensor Sequential::forward(Tensor x) {
  for (const NamedModule& m : children()) x = (*m.module)(x);
  return x;
}

}  // namespace umbra::nn
