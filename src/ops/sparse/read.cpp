// Sparse tensors taken apart again.
#include "ops/common/needs_data.h"
#include "ops/sparse/any_layout.h"
#include "ops/sparse/parts.h"

namespace umbra::ops {
namespace {

using sparse::by_rows;

void expect_layout(const Tensor& self, const char* what, bool holds, const char* kind) {
  check(holds, what, " expected ", kind, " but got ", short_name(self.layout()));
}
void expect_coo(const Tensor& self, const char* what) {
  expect_layout(self, what, self.layout() == Layout::SparseCoo, "sparse coordinate tensor layout");
}
void expect_rows(const Tensor& self, const char* what) {
  expect_layout(self, what, is_compressed(self.layout()) && by_rows(self.layout()),
                "sparse row compressed tensor layout");
}
void expect_columns(const Tensor& self, const char* what) {
  expect_layout(self, what, is_compressed(self.layout()) && !by_rows(self.layout()),
                "sparse column compressed tensor layout");
}
const SparseParts& coalesced_parts(const Tensor& self, const char* what) {
  const SparseParts& parts = sparse_parts(self);
  check(parts.coalesced, "Cannot get ", what, " on an uncoalesced tensor, please call .coalesce() first");
  return parts;
}

/// The part shares memory with the tensor, and not its history.
Tensor part_of(const Tensor& part) { return part.detach(); }

UMBRA_OPERATOR("_nnz(Tensor self) -> int")
    .use(AnyLayout{[](const Tensor& self) {
      sparse::expect_sparse(self, "_nnz");
      expect_layout(self, "_nnz", is_sparse(self.layout()), "sparse tensor layout");
      return sparse::element_count(self);
    }})
    .use(NeedsData{});
UMBRA_OPERATOR("_indices(Tensor(a) self) -> Tensor(a)")
    .use(AnyLayout{[](const Tensor& self) {
      sparse::expect_sparse(self, "_indices");
      expect_coo(self, "_indices");
      return part_of(sparse_parts(self).indices);
    }})
    .use(NeedsData{});
UMBRA_OPERATOR("_values(Tensor(a) self) -> Tensor(a)")
    .use(AnyLayout{[](const Tensor& self) {
      sparse::expect_sparse(self, "_values");
      expect_coo(self, "_values");
      return part_of(sparse_parts(self).values);
    }})
    .use(NeedsData{});
UMBRA_OPERATOR("indices(Tensor(a) self) -> Tensor(a)").use(AnyLayout{[](const Tensor& self) {
  expect_coo(self, "indices");
  return part_of(coalesced_parts(self, "indices").indices);
}});
Tensor values_of(const Tensor& self) {
  expect_layout(self, "values", is_sparse(self.layout()), "sparse tensor layout");
  return part_of(self.layout() == Layout::SparseCoo ? coalesced_parts(self, "values").values
                                                    : sparse_parts(self).values);
}
UMBRA_OPERATOR("values(Tensor(a) self) -> Tensor(a)")
    .all_backends(values_of)
    .sparse(values_of)
    .gradient("self", {"grad", "self"}, [](const Tensor& grad, const Tensor& self) {
      TensorOptions options{.dtype = self.dtype(), .layout = self.layout()};
      if (sparse::is_coo(self)) return _sparse_coo_tensor_unsafe(self.indices(), grad, self.sym_sizes(), options, true);
      Tensor compressed = by_rows(self.layout()) ? self.crow_indices() : self.ccol_indices();
      Tensor plain = by_rows(self.layout()) ? self.col_indices() : self.row_indices();
      return _sparse_compressed_tensor_unsafe(compressed, plain, grad, self.sym_sizes(), options);
    });
UMBRA_OPERATOR("crow_indices(Tensor(a) self) -> Tensor(a)").use(AnyLayout{[](const Tensor& self) {
  expect_rows(self, "crow_indices");
  return part_of(sparse_parts(self).compressed);
}});
UMBRA_OPERATOR("col_indices(Tensor(a) self) -> Tensor(a)").use(AnyLayout{[](const Tensor& self) {
  expect_rows(self, "col_indices");
  return part_of(sparse_parts(self).indices);
}});
UMBRA_OPERATOR("ccol_indices(Tensor(a) self) -> Tensor(a)").use(AnyLayout{[](const Tensor& self) {
  expect_columns(self, "ccol_indices");
  return part_of(sparse_parts(self).compressed);
}});
UMBRA_OPERATOR("row_indices(Tensor(a) self) -> Tensor(a)").use(AnyLayout{[](const Tensor& self) {
  expect_columns(self, "row_indices");
  return part_of(sparse_parts(self).indices);
}});
UMBRA_OPERATOR("is_coalesced(Tensor self) -> bool").use(AnyLayout{[](const Tensor& self) {
  expect_coo(self, "is_coalesced");
  return sparse_parts(self).coalesced;
}});
UMBRA_OPERATOR("sparse_dim(Tensor self) -> int").use(AnyLayout{[](const Tensor& self) -> int64_t {
  if (self.layout() == Layout::SparseCoo) return sparse_parts(self).indices.size(0);
  return is_compressed(self.layout()) ? 2 : 0;
}});
UMBRA_OPERATOR("dense_dim(Tensor self) -> int").use(AnyLayout{[](const Tensor& self) -> int64_t {
  if (self.layout() == Layout::SparseCoo) return sparse_parts(self).values.dim() - 1;
  return is_compressed(self.layout()) ? sparse::inner_dims(self) : self.dim();
}});
UMBRA_OPERATOR("_dimI(Tensor self) -> int").use(AnyLayout{[](const Tensor& self) {
  sparse::expect_sparse(self, "_dimI");
  expect_coo(self, "_dimI");
  return sparse::sparse_dims(self);
}});
UMBRA_OPERATOR("_dimV(Tensor self) -> int").use(AnyLayout{[](const Tensor& self) {
  sparse::expect_sparse(self, "_dimV");
  expect_coo(self, "_dimV");
  return sparse_parts(self).values.dim() - 1;
}});

// ---- order of elements ----

UMBRA_OPERATOR("coalesce(Tensor(a) self) -> Tensor(a)").composite([](const Tensor& self) {
  expect_coo(self, "coalesce");
  return sparse_parts(self).coalesced ? self : _coalesce(self);
});
UMBRA_OPERATOR("_coalesce(Tensor self) -> Tensor")
    .sparse([](const Tensor& self) {
      expect_coo(self, "_coalesce");
      return sparse::coalesced(self);
    })
    .gradient("self", {"grad"}, [](const Tensor& grad) { return grad; });
UMBRA_OPERATOR("_coalesced_(Tensor(a!) self, bool coalesced) -> Tensor(a!)")
    .sparse([](const Tensor& self, bool coalesced) {
      expect_coo(self, "_coalesced_");
      SparseParts parts = sparse_parts(self);
      parts.coalesced = coalesced;
      set_sparse(self, self.sym_sizes(), std::move(parts));
      return self;
    })
    .all_backends([](const Tensor& self, bool) -> Tensor { sparse::refuse_strided(self, "_coalesced_"); })
    .not_differentiable()
    .use(NothingOnMeta{});

}  // namespace
}  // namespace umbra::ops
