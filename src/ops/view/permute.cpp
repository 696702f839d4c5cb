// Views that reorder dimensions: transpose, permute, t, movedim.
#include <algorithm>
#include <atomic>

#include "ops/common/alias.h"
#include "ops/common/batching.h"
#include "ops/common/shape.h"
#include "ops/sparse/parts.h"
#include "ops/sparse/structure.h"
#include "umbra/core/warning.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

Tensor swap_dims(const Tensor& self, int64_t dim0, int64_t dim1) {
  int64_t a = wrap_dim(dim0, self.dim()), b = wrap_dim(dim1, self.dim());
  SymShape sizes(self.sym_sizes()), strides(self.sym_strides());
  if (self.dim() > 0) {
    std::swap(sizes[a], sizes[b]);
    std::swap(strides[a], strides[b]);
  }
  return alias_tensor(self, sizes, strides, self.sym_storage_offset());
}

Tensor reorder_dims(const Tensor& self, std::vector<int64_t> dims) {
  check(static_cast<int64_t>(dims.size()) == self.dim(),
        "permute(sparse_coo): number of dimensions in the tensor input does not match the "
        "length of the desired ordering of dimensions i.e. input.dim() = ",
        self.dim(), " is not equal to len(dims) = ", dims.size());
  SymShape sizes, strides;
  uint64_t seen = 0;
  for (int64_t d : dims) {
    int64_t at = wrap_dim(d, self.dim());
    check(!(seen >> at & 1), "permute(): duplicate dims are not allowed.");
    seen |= uint64_t{1} << at;
    sizes.push_back(self.sym_sizes()[at]);
    strides.push_back(self.sym_strides()[at]);
  }
  return alias_tensor(self, sizes, strides, self.sym_storage_offset());
}

std::vector<int64_t> inverse(ArrayRef<int64_t> dims) {
  std::vector<int64_t> out(dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    out[wrap_dim(dims[i], static_cast<int64_t>(dims.size()))] = static_cast<int64_t>(i);
  return out;
}

UMBRA_OPERATOR("transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)")
    .inplace("transpose_")
    .on_inplace([](OperatorBuilder& variant) { variant.node("TransposeBackward1"); })
    .view(swap_dims)
    .view_inverse([](const Tensor&, const Tensor& written, int64_t, int64_t dim0, int64_t dim1) {
      return written.transpose(dim0, dim1);
    })
    .sparse(sparse::transpose)
    .gradient("self", {"grad", "dim0", "dim1"},
              [](const Tensor& grad, int64_t dim0, int64_t dim1) { return grad.transpose(dim0, dim1); })
    .linear()
    .use(BatchInFront{.dims = {"dim0", "dim1"}, .scalars = true});

UMBRA_OPERATOR("t(Tensor(a) self) -> Tensor(a)")
    .inplace("t_")
    .on_inplace([](OperatorBuilder& variant) { variant.node("TBackward1"); })
    .view([](const Tensor& self) {
      check(self.dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", self.dim(), "D");
      return swap_dims(self, 0, self.dim() < 2 ? 0 : 1);
    })
    .view_inverse([](const Tensor&, const Tensor& written, int64_t) { return written.t(); })
    .sparse([](const Tensor& self) {
      if (self.layout() == Layout::SparseCoo) {
        int64_t places = sparse::sparse_dims(self), dense = self.dim() - places;
        check(places <= 2 && dense == 0, "t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got ",
              places, " sparse and ", dense, " dense dimensions");
      }
      check(self.dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", self.dim(), "D");
      return sparse::transpose(self, 0, self.dim() < 2 ? 0 : 1);
    })
    .gradient("self", {"grad"}, [](const Tensor& grad) { return grad.t(); })
    .linear()
    .batch([](const Batched& self) {
      check(self.rank() <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", self.rank(), "D");
      Tensor value = batch_first(self);
      return Batched(self.rank() < 2 ? alias(value) : value.transpose(1, 2), 0);
    });

UMBRA_OPERATOR("permute(Tensor(a) self, int[] dims) -> Tensor(a)")
    .view(reorder_dims)
    .view_inverse([](const Tensor&, const Tensor& written, int64_t, std::vector<int64_t> dims) {
      return written.permute(inverse(dims));
    })
    .sparse([](const Tensor& self, std::vector<int64_t> dims) { return sparse::permute(self, dims); })
    .gradient("self", {"grad", "dims"},
              [](const Tensor& grad, std::vector<int64_t> dims) { return grad.permute(inverse(dims)); })
    .linear()
    .tags({Tag::Core})
    .batch([](const Batched& self, std::vector<int64_t> dims) {
      check(static_cast<int64_t>(dims.size()) == self.rank(),
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            "ordering of dimensions i.e. input.dim() = ",
            self.rank(), " is not equal to len(dims) = ", dims.size());
      std::vector<int64_t> order{0};
      for (int64_t d : dims) order.push_back(wrap_dim(d, self.rank()) + 1);
      return Batched(batch_first(self).permute(order), 0);
    });

UMBRA_OPERATOR("numpy_T(Tensor(a) self) -> Tensor(a)").composite([](const Tensor& self) {
  static std::atomic<bool> warned = false, warned_of_none = false;
  if (self.dim() == 0 && tells_once(warned_of_none))
    warn("Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.");
  if (self.dim() != 2 && self.dim() != 0 && tells_once(warned))
    warn(
        "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will throw ",
        "an error in a future release. Consider `x.mT` to transpose batches of matrices or ",
        "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.");
  std::vector<int64_t> dims;
  for (int64_t d = self.dim(); d-- > 0;) dims.push_back(d);
  return self.permute(dims);
});

void check_matrix(const char* name, const Tensor& self) {
  check(self.dim() != 1, "tensor.", name, " is only supported on matrices or batches of matrices. Got 1-D tensor.");
}
void warn_scalar(const char* name, const char* instead) { warn(name, " is deprecated on 0-D tensors. ", instead); }

UMBRA_OPERATOR("mT(Tensor(a) self) -> Tensor(a)").composite([](const Tensor& self) {
  check_matrix("mT", self);
  if (self.dim() > 0) return self.transpose(-2, -1);
  warn_scalar("Tensor.mT", "This function is the identity in these cases.");
  return self;
});

UMBRA_OPERATOR("mH(Tensor(a) self) -> Tensor(a)").composite([](const Tensor& self) {
  check_matrix("mH", self);
  if (self.dim() > 0) return self.transpose(-2, -1).conj();
  warn_scalar("Tensor.mH", "Consider using x.conj().");
  return self.conj();
});

UMBRA_OPERATOR("adjoint(Tensor(a) self) -> Tensor(a)").composite([](const Tensor& self) {
  check_matrix("adjoint()", self);
  if (self.dim() > 0) return self.transpose(-2, -1).conj();
  warn_scalar("adjoint()", "Consider using x.conj().");
  return self.conj();
});

UMBRA_OPERATOR("swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)")
    .inplace("swapaxes_")
    .on_inplace([](OperatorBuilder& variant) {
      variant.composite([](const Tensor& self, int64_t axis0, int64_t axis1) { return self.transpose_(axis0, axis1); });
    })
    .composite([](const Tensor& self, int64_t axis0, int64_t axis1) { return self.transpose(axis0, axis1); });

UMBRA_OPERATOR("swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)")
    .inplace("swapdims_")
    .on_inplace([](OperatorBuilder& variant) {
      variant.composite([](const Tensor& self, int64_t dim0, int64_t dim1) { return self.transpose_(dim0, dim1); });
    })
    .composite([](const Tensor& self, int64_t dim0, int64_t dim1) { return self.transpose(dim0, dim1); });

UMBRA_OPERATOR("movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)")
    .composite([](const Tensor& self, std::vector<int64_t> source, std::vector<int64_t> destination) {
      check(source.size() == destination.size(), "movedim: Invalid source or destination dims: source (",
            IntArrayRef(source), " dims) should contain the same number of dims as destination (",
            IntArrayRef(destination), " dims)");
      for (const auto* list : {&source, &destination})
        for (int64_t d : *list) wrap_dim(d, self.dim());  // all of them before one is found twice
      for (const auto* list : {&source, &destination}) {
        std::vector<int64_t> places;
        for (int64_t d : *list) places.push_back(wrap_dim(d, self.dim()));
        std::sort(places.begin(), places.end());
        check(std::adjacent_find(places.begin(), places.end()) == places.end(), "movedim: repeated dim in `",
              list == &source ? "source" : "destination", "` (", IntArrayRef(*list), ")");
      }
      if (self.dim() == 0) return self.alias();
      std::vector<int64_t> order(self.dim(), -1), rest;
      uint64_t moved = 0;
      for (size_t i = 0; i < source.size(); ++i) {
        int64_t from = wrap_dim(source[i], self.dim());
        order[wrap_dim(destination[i], self.dim())] = from;
        moved |= uint64_t{1} << from;
      }
      int64_t next = 0;
      for (int64_t& d : order) {
        if (d >= 0) continue;
        while (moved >> next & 1) ++next;
        d = next++;
      }
      return self.permute(order);
    });

UMBRA_OPERATOR("movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)")
    .composite([](const Tensor& self, int64_t source, int64_t destination) {
      for (int64_t dim : {source, destination}) wrap_dim(dim, self.dim());
      return movedim(self, IntArrayRef{source}, IntArrayRef{destination});
    });

UMBRA_OPERATOR("moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)")
    .use(AliasOf{"movedim.intlist"});
UMBRA_OPERATOR("moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)").use(AliasOf{"movedim.int"});

}  // namespace
}  // namespace umbra::ops
