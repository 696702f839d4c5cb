// Sizes and strides as operators, so that graphs can ask for them.
#include "ops/view/contiguity.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

UMBRA_OPERATOR("sym_size.int(Tensor self, int dim) -> SymInt")
    .composite([](const Tensor& self, int64_t dim) { return self.sym_size(dim); })
    .tags({Tag::Core, Tag::SizeOnDemand});

UMBRA_OPERATOR("sym_stride.int(Tensor self, int dim) -> SymInt")
    .composite([](const Tensor& self, int64_t dim) {
      rely_on_layout(self);
      return self.sym_stride(dim);
    })
    .tags({Tag::Core});

UMBRA_OPERATOR("sym_numel(Tensor self) -> SymInt")
    .composite([](const Tensor& self) { return self.sym_numel(); })
    .tags({Tag::Core});

UMBRA_OPERATOR("sym_storage_offset(Tensor self) -> SymInt")
    .composite([](const Tensor& self) {
      rely_on_layout(self);
      return self.sym_storage_offset();
    })
    .tags({Tag::Core});

}  // namespace
}  // namespace umbra::ops
