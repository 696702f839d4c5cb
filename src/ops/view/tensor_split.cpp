// Parts of a tensor at given places: tensor_split, hsplit, vsplit, dsplit.
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

void check_can_split(const Tensor& self) {
  check(self.dim() > 0, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with ", self.dim(),
        " dims");
}

// As equal as they can be, the longer parts first.
std::vector<Tensor> split_sections(const Tensor& self, SymInt sections, int64_t dim) {
  check_can_split(self);
  int64_t at = wrap_dim(dim, self.dim()), count = sections.guard_int();
  check(count > 0, "number of sections must be larger than 0, got ", count);
  check(count <= INT32_MAX, "tensor_split: ", count, " sections are more than there is memory for");
  SymInt size = self.sym_sizes()[at], shortest = size / count, longer = size % count, start = 0;
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < count; ++i) {
    SymInt length = longer > i ? shortest + 1 : shortest;
    parts.push_back(slice(self, at, start, start + length, 1));
    start += length;
  }
  return parts;
}

std::vector<Tensor> split_indices(const Tensor& self, SymIntArrayRef indices, int64_t dim) {
  check_can_split(self);
  int64_t at = wrap_dim(dim, self.dim());
  SymInt start = 0;
  std::vector<Tensor> parts;
  for (SymInt end : indices) {
    parts.push_back(slice(self, at, start, end, 1));
    start = end;
  }
  parts.push_back(slice(self, at, start, self.sym_sizes()[at], 1));
  return parts;
}

UMBRA_OPERATOR("tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]")
    .composite(split_sections);
UMBRA_OPERATOR("tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]")
    .composite(split_indices);

UMBRA_OPERATOR(
    "tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int dim=0) -> "
    "Tensor(a)[]")
    .composite([](const Tensor& self, const Tensor& where, int64_t dim) {
      check_can_split(self);
      check(where.device().type == DeviceType::CPU,
            "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on ", where.device());
      check(where.dtype() == DType::Int64,
            "tensor_split expected tensor_indices_or_sections to have dtype of long, but got ",
            kernel_name(where.dtype()));
      check(where.dim() <= 1,
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but "
            "got a tensor with ",
            where.dim(), " dims");
      if (where.dim() == 0) return split_sections(self, where.item().to_sym_int(), dim);
      check(where.storage()->has_data(),
            "tensor_split: places that come from a tensor without data are not known before the run");
      // Places are read directly, as no operator of the program.
      SymShape indices;
      for (int64_t i = 0; i < where.numel(); ++i) indices.push_back(where.data<int64_t>()[i * where.stride(0)]);
      return split_indices(self, indices, dim);
    });

// ---- along columns, rows and depth ----

/// Places are plain numbers here, and go on as sizes do.
std::vector<Tensor> split_places(const Tensor& self, const std::vector<int64_t>& places, int64_t dim) {
  for (int64_t place : places)
    check(SymInt::can_hold(place), "IntArrayRef contains an int that cannot be represented as a SymInt: ", place);
  return split_indices(self, as_sym(places), dim);
}

void check_rank(const char* name, const Tensor& self, int64_t least) {
  check(self.dim() >= least, "torch.", name, " requires a tensor with at least ", least,
        " dimension, but got a tensor with ", self.dim(), " dimensions!");
}
std::vector<Tensor> split_evenly(const char* name, const Tensor& self, int64_t sections, int64_t dim) {
  check(sections != 0 && self.sym_sizes()[dim] % sections == 0, "torch.", name, " attempted to split along dimension ",
        dim, ", but the size of the dimension ", self.sym_sizes()[dim], " is not divisible by the split_size ",
        sections, "!");
  return split_sections(self, sections, dim);
}
int64_t columns(const Tensor& self) { return self.dim() == 1 ? 0 : 1; }

UMBRA_OPERATOR("hsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]")
    .composite([](const Tensor& self, int64_t sections) {
      check_rank("hsplit", self, 1);
      return split_evenly("hsplit", self, sections, columns(self));
    });
UMBRA_OPERATOR("hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]")
    .composite([](const Tensor& self, std::vector<int64_t> indices) {
      check_rank("hsplit", self, 1);
      return split_places(self, indices, columns(self));
    });
UMBRA_OPERATOR("vsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]")
    .composite([](const Tensor& self, int64_t sections) {
      check_rank("vsplit", self, 2);
      return split_evenly("vsplit", self, sections, 0);
    });
UMBRA_OPERATOR("vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]")
    .composite([](const Tensor& self, std::vector<int64_t> indices) {
      check_rank("vsplit", self, 2);
      return split_places(self, indices, 0);
    });
UMBRA_OPERATOR("dsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]")
    .composite([](const Tensor& self, int64_t sections) {
      check_rank("dsplit", self, 3);
      return split_evenly("dsplit", self, sections, 2);
    });
UMBRA_OPERATOR("dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]")
    .composite([](const Tensor& self, std::vector<int64_t> indices) {
      check_rank("dsplit", self, 3);
      return split_places(self, indices, 2);
    });

}  // namespace
}  // namespace umbra::ops
