// Which elements are not zero, and how many: where the number of results depends on the data or is given.
#include "dispatch/data_dependent.h"
#include "kernels/copy.h"
#include "kernels/masks.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/out_asks.h"
#include "ops/common/unbacked.h"
#include "ops/reduce/reduced_shape.h"

namespace umbra::ops {
namespace {

void check_positions(const char* name, const Tensor& out) {
  check(out.dtype() == DType::Int64, name, ": Expected out tensor to have scalar type Long but got scalar type",
        kernel_name(out.dtype()));
}

UMBRA_OPERATOR("nonzero(Tensor self) -> Tensor")
    .out("nonzero.out")
    .use(out_asks("nonzero.out", [](const Tensor&, const Tensor& out) { check_positions("nonzero", out); }))
    .real([](const Tensor& self) {
      int64_t count = kernels::count_nonzero(self);
      // Laid out by dimension, so that each column is an index of its own.
      Tensor out = empty_strided({count, self.dim()}, {SymInt(1), SymInt(count)}, {.dtype = DType::Int64});
      kernels::nonzero(out, self);
      return out;
    })
    .fake([](const Tensor& self) {
      SymInt count = unknown_count("aten::nonzero", self);
      return empty_strided({count, self.dim()}, {SymInt(1), count}, {.dtype = DType::Int64, .device = self.device()});
    })
    .not_differentiable()
    .tags({Tag::Core, Tag::DynamicOutputShape});

UMBRA_OPERATOR("argwhere(Tensor self) -> Tensor")
    .composite([](const Tensor& self) { return self.nonzero(); })
    .tags({Tag::DynamicOutputShape});

std::vector<Tensor> columns(const Tensor& self) {
  return (self.dim() == 0 ? self.unsqueeze(0) : self).nonzero().unbind(1);
}
UMBRA_OPERATOR("nonzero_numpy(Tensor self) -> Tensor[]").composite(columns);
UMBRA_OPERATOR("where(Tensor condition) -> Tensor[]").composite(columns);

// The first `size` of them; what is missing is filled in.
UMBRA_OPERATOR("nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor")
    .out("nonzero_static.out")
    .use(out_asks("nonzero_static.out",
                  [](const Tensor&, SymInt, int64_t, const Tensor& out) { check_positions("nonzero_static", out); }))
    .meta([](const Tensor& self, SymInt size, int64_t) {
      check(expect_at_most(0, size), "nonzero_static: 'size' must be an non-negative integer");
      SymShape sizes{size, SymInt(self.dim())};
      // On the meta device PyTorch describes the kernel of accelerators, which writes columns.
      if (self.is_meta() && !self.is_fake()) return TensorSpec(sizes, SymShape{1, size}, DType::Int64, self.device());
      return TensorSpec(sizes, DType::Int64, self.device());
    })
    .cpu([](const Tensor& out, const Tensor& self, SymInt size, int64_t fill_value) {
      int64_t wanted = size.guard_int();
      if (self.dim() == 0 || wanted == 0) return;
      int64_t found = kernels::count_nonzero(self), kept = std::min(found, wanted);
      Tensor all = kernels::scratch(std::vector<int64_t>{found, self.dim()}, DType::Int64);
      kernels::nonzero(all, self);
      auto rows = [](const Tensor& t, int64_t from, int64_t to) {
        SymInt start = t.sym_storage_offset() + t.sym_stride(0) * from;
        return alias_tensor(t, {SymInt(to - from), t.sym_size(1)}, t.sym_strides(), start);
      };
      if (kept > 0) kernels::copy(rows(out, 0, kept), rows(all, 0, kept));
      if (kept < wanted) kernels::fill(rows(out, kept, wanted), fill_value);
    })
    .not_differentiable();

// ---- how many ----

Tensor count_along(const Tensor& self, std::vector<int64_t> dims) {
  for (int64_t dim : dims) wrap_dim(dim, self.dim());
  Tensor there = self.ne(0);
  return dims.empty() ? there.sum() : there.sum(IntArrayRef(dims));
}

UMBRA_OPERATOR("count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor")
    .generated_out("count_nonzero.dim_IntList_out")
    .all_backends(count_along)
    .not_differentiable()
    .tags({Tag::Reduction})
    .use(BatchInFront{.dims = {"dim"}, .empty_is_all = true, .scalars = true});

UMBRA_OPERATOR("count_nonzero(Tensor self, int? dim=None) -> Tensor")
    .generated_out("count_nonzero.out")
    .all_backends([](const Tensor& self, std::optional<int64_t> dim) {
      check_kernel_type(dim || (!is_float8(self.dtype()) && !is_wide_unsigned(self.dtype())), "nonzero_count_cpu",
                        self);
      return count_along(self, dim ? std::vector<int64_t>{*dim} : std::vector<int64_t>());
    })
    .not_differentiable()
    .tags({Tag::Reduction})
    .use(batch_through([](const Tensor& self, std::optional<int64_t> dim) {
      return count_along(self, dim ? std::vector<int64_t>{*dim} : std::vector<int64_t>());
    }));

}  // namespace
}  // namespace umbra::ops
