// Memory that an accelerator reads by itself: there is no accelerator, so that none can be pinned.
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

UMBRA_OPERATOR("_pin_memory(Tensor self, Device? device=None) -> Tensor")
    .all_backends([](const Tensor&, std::optional<Device>) -> Tensor {
      fail("Cannot access accelerator device when none is available.");
    })
    .not_differentiable();

UMBRA_OPERATOR("pin_memory(Tensor(a) self, Device? device=None) -> Tensor(a)")
    .composite([](const Tensor& self, std::optional<Device> device) { return _pin_memory(self, device); });

}  // namespace
}  // namespace umbra::ops
