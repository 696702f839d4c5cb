// What operators outside of the core set are made of, where their definitions do not say so themselves.
#include <numeric>

#include "umbra/export/decompose.h"
#include "umbra/generated/functions.h"

namespace umbra {

namespace {

using OptionalDType = std::optional<DType>;
using OptionalLayout = std::optional<Layout>;
using OptionalDevice = std::optional<Device>;
using OptionalBool = std::optional<bool>;
using OptionalFormat = std::optional<MemoryFormat>;

Tensor swapped(const Tensor& self, int64_t first, int64_t second) {
  std::vector<int64_t> order(static_cast<size_t>(self.dim()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<size_t>(first)], order[static_cast<size_t>(second)]);
  return permute(self, order);
}

Tensor filled(SymIntArrayRef size, const Scalar& value, OptionalDType dtype, OptionalLayout layout,
              OptionalDevice device, OptionalBool pinned) {
  return full(size, value,
              {.dtype = dtype.value_or(default_dtype()),
               .layout = layout.value_or(Layout::Strided),
               .device = device.value_or(Device("cpu")),
               .pin_memory = pinned.value_or(false)});
}

Tensor filled_like(const Tensor& self, const Scalar& value, OptionalDType dtype, OptionalLayout layout,
                   OptionalDevice device, OptionalBool pinned, OptionalFormat format) {
  return full_like(self, value,
                   {.dtype = dtype, .layout = layout, .device = device, .pin_memory = pinned.value_or(false)},
                   format.value_or(MemoryFormat::Preserve));
}

void add_factories(DecompositionTable& table) {
  for (int64_t number : {0, 1}) {
    const char* name = number ? "aten::ones" : "aten::zeros";
    table.add(name, [number](SymIntArrayRef size, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
                             OptionalBool pinned) { return filled(size, number, dtype, layout, device, pinned); });
    table.add(concat(name, "_like"), [number](const Tensor& self, OptionalDType dtype, OptionalLayout layout,
                                              OptionalDevice device, OptionalBool pinned, OptionalFormat format) {
      return filled_like(self, number, dtype, layout, device, pinned, format);
    });
    table.add(number ? "aten::new_ones" : "aten::new_zeros", [number](const Tensor& self, SymIntArrayRef size,
                                                                      OptionalDType dtype, OptionalLayout layout,
                                                                      OptionalDevice device, OptionalBool pinned) {
      return filled(size, number, dtype.value_or(self.dtype()), layout, device.value_or(self.device()), pinned);
    });
  }
  table.add("aten::new_full", [](const Tensor& self, SymIntArrayRef size, const Scalar& value, OptionalDType dtype,
                                 OptionalLayout layout, OptionalDevice device, OptionalBool pinned) {
    return filled(size, value, dtype.value_or(self.dtype()), layout, device.value_or(self.device()), pinned);
  });
  table.add("aten::arange", [](const Scalar& end, OptionalDType dtype, OptionalLayout layout, OptionalDevice device,
                               OptionalBool pinned) {
    return arange(0, end, 1, {.dtype = dtype, .layout = layout, .device = device, .pin_memory = pinned});
  });
  table.add("aten::arange.start", [](const Scalar& start, const Scalar& end, OptionalDType dtype, OptionalLayout layout,
                                     OptionalDevice device, OptionalBool pinned) {
    return arange(start, end, 1, {.dtype = dtype, .layout = layout, .device = device, .pin_memory = pinned});
  });
}

void add_views(DecompositionTable& table) {
  table.add("aten::t", [](const Tensor& self) { return self.dim() < 2 ? alias(self) : swapped(self, 0, 1); });
  table.add("aten::transpose.int", [](const Tensor& self, int64_t first, int64_t second) {
    first = wrap_dim(first, self.dim()), second = wrap_dim(second, self.dim());
    return self.dim() < 2 || first == second ? alias(self) : swapped(self, first, second);
  });
  table.add("aten::squeeze.dim",
            [](const Tensor& self, int64_t dim) { return squeeze(self, std::vector<int64_t>{dim}); });
  table.add("aten::detach", [](const Tensor& self) { return alias(self); });
}

void add_pointwise(DecompositionTable& table) {
  table.add("aten::silu", [](const Tensor& self) { return mul(self, sigmoid(self)); });
  table.add("aten::sum",
            [](const Tensor& self, OptionalDType dtype) { return sum(self, std::vector<int64_t>{}, false, dtype); });
  table.add("aten::rsub.Tensor",
            [](const Tensor& self, const Tensor& other, const Scalar& alpha) { return sub(other, self, alpha); });
  table.add("aten::addcmul", [](const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value) {
    return add(self, mul(mul(a, b), value));
  });
  table.add("aten::addcdiv", [](const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value) {
    return add(self, mul(div(a, b), value));
  });
  table.add("aten::masked_fill.Scalar", [](const Tensor& self, const Tensor& mask, const Scalar& value) {
    return where(
        mask, scalar_tensor(value, {.dtype = self.dtype(), .layout = Layout::Strided, .device = self.device()}), self);
  });
  table.add("aten::masked_fill.Tensor",
            [](const Tensor& self, const Tensor& mask, const Tensor& value) { return where(mask, value, self); });
}

}  // namespace

DecompositionTable core_decompositions() {
  DecompositionTable table;
  add_factories(table);
  add_views(table);
  add_pointwise(table);
  return table;
}

}  // namespace umbra
