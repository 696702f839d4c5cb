// Questions about a tensor's history that are operators.
#include "umbra/autograd/autograd.h"
#include "umbra/dispatch/define.h"

namespace umbra::autograd {
namespace {

UMBRA_OPERATOR("output_nr(Tensor self) -> int").composite([](const Tensor& self) {
  return static_cast<int64_t>(output_number(self));
});

}  // namespace
}  // namespace umbra::autograd
