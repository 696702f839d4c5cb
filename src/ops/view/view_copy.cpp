// Views that are copied at once: the same elements, in memory of their own.
#include "ops/common/batching.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

Tensor copied(const Tensor& view) { return view.clone(MemoryFormat::Contiguous); }

UMBRA_OPERATOR("alias_copy(Tensor self) -> Tensor")
    .generated_out("alias_copy.out")
    .composite([](const Tensor& self) { return copied(self.alias()); })
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("detach_copy(Tensor self) -> Tensor")
    .generated_out("detach_copy.out")
    .composite([](const Tensor& self) { return copied(self.detach()); })
    .tags({Tag::ViewCopy});
// Begins a program's use of a literal, and so stays whole in graphs.
UMBRA_OPERATOR("lift_fresh_copy(Tensor self) -> Tensor")
    .generated_out("lift_fresh_copy.out")
    .all_backends([](const Tensor& self) { return self.clone(); })
    .gradient("self", {"grad"}, [](const Tensor& grad) { return grad; })
    .linear()
    .tags({Tag::ViewCopy})
    .use(BatchInPlace{});
UMBRA_OPERATOR("t_copy(Tensor self) -> Tensor")
    .generated_out("t_copy.out")
    .composite([](const Tensor& self) { return copied(self.t()); })
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor")
    .generated_out("transpose_copy.int_out")
    .composite([](const Tensor& self, int64_t a, int64_t b) { return copied(self.transpose(a, b)); })
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("permute_copy(Tensor self, int[] dims) -> Tensor")
    .generated_out("permute_copy.out")
    .composite([](const Tensor& self, std::vector<int64_t> dims) { return copied(self.permute(dims)); })
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("unsqueeze_copy(Tensor self, int dim) -> Tensor")
    .generated_out("unsqueeze_copy.out")
    .composite([](const Tensor& self, int64_t dim) { return copied(self.unsqueeze(dim)); })
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("squeeze_copy(Tensor self) -> Tensor")
    .generated_out("squeeze_copy.out")
    .composite([](const Tensor& self) { return copied(self.squeeze()); })
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("squeeze_copy.dim(Tensor self, int dim) -> Tensor")
    .generated_out("squeeze_copy.dim_out")
    .composite([](const Tensor& self, int64_t dim) { return copied(self.squeeze(dim)); })
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("view_copy(Tensor self, SymInt[] size) -> Tensor")
    .generated_out("view_copy.out")
    .composite([](const Tensor& self, SymIntArrayRef size) { return copied(self.reshape(size)); })
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor")
    .generated_out("expand_copy.out")
    .composite([](const Tensor& self, SymIntArrayRef size, bool implicit) {
      return copied(self.expand(size, implicit));
    })
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR("select_copy.int(Tensor self, int dim, SymInt index) -> Tensor")
    .generated_out("select_copy.int_out")
    .composite([](const Tensor& self, int64_t dim, SymInt index) { return copied(self.select(dim, index)); })
    .tags({Tag::ViewCopy});
UMBRA_OPERATOR(
    "slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor")
    .generated_out("slice_copy.Tensor_out")
    .composite([](const Tensor& self, int64_t dim, std::optional<SymInt> start, std::optional<SymInt> end,
                  SymInt step) { return copied(self.slice(dim, start, end, step)); })
    .tags({Tag::ViewCopy});

}  // namespace
}  // namespace umbra::ops
