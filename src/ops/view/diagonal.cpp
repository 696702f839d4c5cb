// Matrices from their diagonals, and back.
#include "ops/common/batching.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

UMBRA_OPERATOR("diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor")
    .generated_out("diag_embed.out")
    .all_backends([](const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
      int64_t rank = self.dim() + 1, a = wrap_dim(dim1, rank), b = wrap_dim(dim2, rank);
      check(a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
      SymInt length = self.sym_size(-1) + std::abs(offset);
      SymShape sizes(self.sym_sizes().drop_back());
      sizes.insert(std::min(a, b), length);
      sizes.insert(std::max(a, b), length);
      Tensor out = zeros(sizes, self.options());
      out.diagonal(offset, a, b).copy_(self);
      return out;
    })
    .gradient("self", {"grad", "offset", "dim1", "dim2"},
              [](const Tensor& grad, int64_t offset, int64_t dim1, int64_t dim2) {
                return grad.diagonal(offset, dim1, dim2);
              })
    .linear()
    .batch([](const Batched& self, int64_t offset, int64_t dim1, int64_t dim2) {
      int64_t rank = self.rank() + 1;
      return Batched(diag_embed(batch_first(self), offset, wrap_dim(dim1, rank) + 1, wrap_dim(dim2, rank) + 1), 0);
    });

void check_diag(const Tensor& self) {
  check(self.dim() == 1 || self.dim() == 2, "diag(): Supports 1D or 2D tensors. Got ", self.dim(), "D");
}

UMBRA_OPERATOR("diag(Tensor self, int diagonal=0) -> Tensor").composite([](const Tensor& self, int64_t diagonal) {
  check_diag(self);
  return self.dim() == 1 ? diag_embed(self, diagonal) : diagonal_copy(self, diagonal);
});
UMBRA_OPERATOR("diag.out(Tensor self, int diagonal=0, *, Tensor(a!) out) -> Tensor(a!)")
    .composite([](const Tensor& self, int64_t diagonal, const Tensor& out) {
      check_diag(self);
      return self.dim() == 1 ? diag_embed_out(out, self, diagonal) : diagonal_copy_out(out, self, diagonal);
    })
    .tags({Tag::Out});

UMBRA_OPERATOR("diagflat(Tensor self, int offset=0) -> Tensor").composite([](const Tensor& self, int64_t offset) {
  return self.contiguous().view({-1}).diag(offset);
});

// One value on the main diagonal of a matrix, or of a cube; with `wrap` a tall matrix begins anew after a gap of a row.
UMBRA_OPERATOR("fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)")
    .composite([](const Tensor& self, const Scalar& value, bool wrap) {
      int64_t rank = self.dim();
      check(rank >= 2, "dimensions must larger than 1");
      SymInt height = self.sym_size(0), width = self.sym_size(1), step = 0, shortest = height;
      for (int64_t d = 0; d < rank; ++d) {
        check(rank == 2 || self.sym_size(d) == height, "all dimensions of input must be of equal length");
        step += self.sym_stride(d);
        shortest = sym_min(shortest, self.sym_size(d));
      }
      as_strided(self, {shortest}, {step}, self.sym_storage_offset()).fill_(value);
      if (!wrap || rank != 2 || !(height > width + 1)) return self;
      SymInt length = ((self.sym_numel() + width) / (width + 1)) - shortest;
      SymInt start = self.sym_stride(0) * (width + 1) + self.sym_storage_offset();
      as_strided(self, {length}, {step}, start).fill_(value);
      return self;
    });

}  // namespace
}  // namespace umbra::ops
