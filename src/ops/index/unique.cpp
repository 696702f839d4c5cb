// Distinct elements and slices. How many there are depends on the data.
#include "kernels/unique.h"

#include "dispatch/data_dependent.h"
#include "kernels/copy.h"
#include "kernels/index.h"
#include "ops/common/kernel_type.h"
#include "ops/common/needs_data.h"
#include "ops/common/no_derivative.h"
#include "ops/common/outputs_as_given.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using Triple = std::tuple<Tensor, Tensor, Tensor>;
using OptionalInt = std::optional<int64_t>;

Tensor int_tensor(const std::vector<int64_t>& values, SymIntArrayRef sizes) {
  Tensor out = allocate_tensor(sizes, contiguous_strides(sizes), DType::Int64, Device());
  if (!values.empty()) std::copy(values.begin(), values.end(), out.data<int64_t>());
  return out;
}
Tensor int_row(const std::vector<int64_t>& values) { return int_tensor(values, {static_cast<int64_t>(values.size())}); }
Tensor nothing(const Tensor& self) { return empty({0}, {.dtype = DType::Int64, .device = self.device()}); }

Tensor new_row(size_t length, DType dtype) { return allocate_tensor({SymInt(length)}, {SymInt(1)}, dtype, Device()); }

Triple unique_elements(const Tensor& self, bool sorted, bool inverse, bool counts) {
  kernels::Groups groups = kernels::group_elements(self, sorted, inverse);
  Tensor elements = kernels::contiguous(self), values = new_row(groups.firsts.size(), self.dtype());
  if (!groups.firsts.empty()) {
    Tensor row = alias_tensor(elements, {self.sym_numel()}, {SymInt(1)}, elements.sym_storage_offset());
    kernels::select_rows(values, row, int_row(groups.firsts));
  }
  return {values, inverse ? int_tensor(groups.group, self.sym_sizes()) : new_row(0, DType::Int64),
          counts ? int_row(groups.counts) : new_row(0, DType::Int64)};
}

Triple unique_slices(const Tensor& self, int64_t dim, bool sorted, bool inverse, bool counts) {
  if (self.is_complex()) kernels::unsupported_dtype("unique_dim", self.dtype());
  check<IndexError>(self.dim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  int64_t at = wrap_dim(dim, self.dim()), empties = 0;
  for (int64_t size : self.sizes()) empties += size == 0;
  if (self.sizes()[at] == 0) {
    check(empties == 1, "Number of zero sized dimensions is more than one, so unique cannot be applied ");
    return {empty(self.sym_sizes(), self.options()), nothing(self), nothing(self)};
  }
  check(empties == 0, "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  kernels::Groups groups = kernels::group_slices(self, at, sorted);
  // Slices lie one behind the other, whatever their dimension.
  Tensor slices = self.movedim(at, 0).index_select(0, int_row(groups.firsts)).movedim(0, at);
  return {slices, inverse ? int_row(groups.group) : nothing(self), counts ? int_row(groups.counts) : nothing(self)};
}

/// What a fake run says: one number of distinct elements or slices for all outputs.
Triple unknown_elements(const char* op, const Tensor& self, bool inverse, bool counts) {
  SymInt count = unknown_size(op, self.sym_numel());
  TensorOptions ints{.dtype = DType::Int64, .device = self.device()};
  return {empty({count}, self.options()), inverse ? empty(self.sym_sizes(), ints) : nothing(self),
          counts ? empty({count}, ints) : nothing(self)};
}
Triple unknown_slices(const char* op, const Tensor& self, int64_t dim, bool inverse, bool counts) {
  check<IndexError>(self.dim() > 0, "Dimension specified as ", dim, " but tensor has no dimensions");
  int64_t at = wrap_dim(dim, self.dim());
  SymShape sizes(self.sym_sizes());
  SymInt length = sizes[at];
  sizes.erase(at);
  SymInt count = unknown_size(op, length);
  sizes.insert(0, count);
  TensorOptions ints{.dtype = DType::Int64, .device = self.device()};
  return {empty(sizes, self.options()).movedim(0, at), inverse ? empty({length}, ints) : nothing(self),
          counts ? empty({count}, ints) : nothing(self)};
}

/// A row's slices are its elements, where it is asked for by the number of its dimension and not from the end.
bool by_elements(const Tensor& self, OptionalInt dim) { return !dim || (self.dim() == 1 && *dim == 0); }

UMBRA_OPERATOR("_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)")
    .generated_out("_unique.out", {"out0", "out1"})
    .use(OutputsAsGiven{})
    .real([](const Tensor& self, bool, bool inverse) {
      auto [values, places, counts] = unique_elements(self, true, inverse, false);
      return std::tuple(values, places);
    })
    .fake([](const Tensor& self, bool, bool inverse) {
      auto [values, places, counts] = unknown_elements("aten::_unique", self, inverse, false);
      return std::tuple(values, places);
    })
    .tags({Tag::DynamicOutputShape})
    .use(NoDerivative<"_unique">{})
    .use(NeedsData{});

UMBRA_OPERATOR(
    "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, "
    "Tensor)")
    .generated_out("_unique2.out", {"out0", "out1", "out2"})
    .use(OutputsAsGiven{})
    .real([](const Tensor& self, bool, bool inverse, bool counts) {
      return unique_elements(self, true, inverse, counts);
    })
    .fake([](const Tensor& self, bool, bool inverse, bool counts) {
      return unknown_elements("aten::_unique2", self, inverse, counts);
    })
    .tags({Tag::DynamicOutputShape})
    .use(NoDerivative<"_unique2">{})
    .use(NeedsData{});

UMBRA_OPERATOR(
    "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
    "(Tensor, Tensor, Tensor)")
    .generated_out("unique_dim.out", {"out0", "out1", "out2"})
    .use(OutputsAsGiven{})
    // Always with places and counts, whether they were asked for or not, as in PyTorch.
    .real([](const Tensor& self, int64_t dim, bool, bool, bool) { return unique_slices(self, dim, true, true, true); })
    .fake([](const Tensor& self, int64_t dim, bool, bool, bool) {
      return unknown_slices("aten::unique_dim", self, dim, true, true);
    })
    .tags({Tag::DynamicOutputShape})
    .use(NoDerivative<"unique_dim">{})
    .use(NeedsData{});

UMBRA_OPERATOR(
    "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, "
    "Tensor, Tensor)")
    .generated_out("unique_consecutive.out", {"out0", "out1", "out2"})
    .use(OutputsAsGiven{})
    .real([](const Tensor& self, bool inverse, bool counts, OptionalInt dim) {
      if (by_elements(self, dim)) return unique_elements(self, false, inverse, counts);
      return unique_slices(self, *dim, false, true, true);
    })
    .fake([](const Tensor& self, bool inverse, bool counts, OptionalInt dim) {
      if (by_elements(self, dim)) return unknown_elements("aten::unique_consecutive", self, inverse, counts);
      return unknown_slices("aten::unique_consecutive", self, *dim, true, true);
    })
    .tags({Tag::DynamicOutputShape})
    .use(NoDerivative<"unique_consecutive">{})
    .use(NeedsData{});

UMBRA_OPERATOR(
    "unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> (Tensor, "
    "Tensor, Tensor)")
    .generated_out("unique_dim_consecutive.out", {"out0", "out1", "out2"})
    .use(OutputsAsGiven{})
    .real([](const Tensor& self, int64_t dim, bool, bool) { return unique_slices(self, dim, false, true, true); })
    .fake([](const Tensor& self, int64_t dim, bool, bool) {
      return unknown_slices("aten::unique_dim_consecutive", self, dim, true, true);
    })
    .tags({Tag::DynamicOutputShape})
    .use(NoDerivative<"unique_dim_consecutive">{})
    .use(NeedsData{});

}  // namespace
}  // namespace umbra::ops
