// Checks that exported programs carry: they give nothing and fail where a promise does not hold.
#include <iostream>

#include "ops/common/batching.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

std::tuple<> assert_tensor_metadata(const Tensor& a, const std::optional<std::vector<SymInt>>& size,
                                    const std::optional<std::vector<SymInt>>& stride, std::optional<DType> dtype,
                                    std::optional<Device> device, std::optional<Layout> layout) {
  if (size)
    check(SymIntArrayRef(*size) == a.sym_sizes(), "Tensor sizes mismatch! Expected: ", to_string(SymIntArrayRef(*size)),
          ", Got: ", a.sym_sizes());
  if (stride)
    check(SymIntArrayRef(*stride) == a.sym_strides(),
          "Tensor strides mismatch! Expected: ", to_string(SymIntArrayRef(*stride)),
          ", Got: ", to_string(a.sym_strides()));
  if (dtype) check(*dtype == a.dtype(), "Tensor dtype mismatch! Expected: ", *dtype, ", Got: ", a.dtype());
  if (device)
    check(device->type == a.device().type, "Tensor device mismatch! Expected: ", *device, ", Got: ", a.device());
  if (layout)
    check(*layout == Layout::Strided, "Tensor layout mismatch! Expected: ", to_string(*layout), ", Got: Strided");
  return {};
}

UMBRA_OPERATOR(
    "_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? dtype=None, *, Device? "
    "device=None, Layout? layout=None) -> ()")
    .all_backends(assert_tensor_metadata);

UMBRA_OPERATOR("_assert_scalar(Scalar self, str assert_msg) -> ()")
    .all_backends([](const Scalar& self, const std::string& message) {
      // Captured once more, a condition stays one for the run.
      check(self.is_symbolic() ? self.to_sym_bool().expect_true(message.c_str()) : self.to_bool(), message);
      return std::tuple<>();
    });

// ---- of tensors with one element ----

void assert_element(const Tensor& self, const std::string& message) {
  check(self.numel() != 0, "Boolean value of Tensor with no values is ambiguous");
  check(self.numel() == 1, "Boolean value of Tensor with more than one value is ambiguous");
  check(self.ne(0).item().to_bool(), message);
}

/// A batch of elements holds where each does, and where there are none.
Tensor every_element(const Batched& self) {
  for (int64_t d = 0; d < self.value.dim(); ++d)
    check(d == self.dim || self.value.sym_sizes()[d].same(1),
          "Boolean value of Tensor with more than one value is ambiguous");
  return self.value.ne(0).all();
}

UMBRA_OPERATOR("_assert_async(Tensor self) -> ()")
    .real([](const Tensor& self) {
      assert_element(self, "Expected Tensor with single nonzero value, but got zero");
      return std::tuple<>();
    })
    .fake([](const Tensor&) { return std::tuple<>(); })
    .batch([](const Batched& self) {
      _assert_async(every_element(self));
      return std::tuple<>();
    });
UMBRA_OPERATOR("_assert_async.msg(Tensor self, str assert_msg) -> ()")
    .real([](const Tensor& self, const std::string& message) {
      assert_element(self, message);
      return std::tuple<>();
    })
    .fake([](const Tensor&, const std::string&) { return std::tuple<>(); })
    .batch([](const Batched& self, const std::string& message) {
      _assert_async(every_element(self), message);
      return std::tuple<>();
    });

// ---- effects (capture/effects.h) ----

UMBRA_OPERATOR("_print(str s) -> ()")
    .real([](const std::string& text) {
      std::cout << text << std::endl;
      return std::tuple<>();
    })
    .fake([](const std::string&) { return std::tuple<>(); });
UMBRA_OPERATOR("prims::_make_token() -> Tensor").all_backends([] { return empty({0}, {.dtype = DType::Float32}); });
UMBRA_OPERATOR("prims::_sink_tokens(Tensor[] tokens) -> ()").all_backends([](TensorList) { return std::tuple<>(); });

// Its schema says nothing of a write: captures keep it where it stands.
UMBRA_OPERATOR("inductor::resize_storage_bytes_(Tensor variable, SymInt new_size) -> ()")
    .real([](const Tensor& variable, int64_t size) {
      check(size >= 0, "a storage cannot have ", size, " bytes");
      variable.storage()->resize(size);
      return std::tuple<>();
    })
    .fake([](const Tensor&, SymInt) { return std::tuple<>(); });

// ---- as functions of a token, so that nothing moves them ----

UMBRA_OPERATOR(
    "_make_dep_token(*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
    "MemoryFormat? memory_format=None) -> Tensor")
    .all_backends([](std::optional<DType> dtype, std::optional<Layout> layout, std::optional<Device> device,
                     std::optional<bool> pin_memory, std::optional<MemoryFormat> format) {
      if (device && device->type == DeviceType::Meta) dtype.reset();  // a token there is of the default type
      return empty({}, {.dtype = dtype, .layout = layout, .device = device, .pin_memory = pin_memory}, format);
    })
    .not_differentiable();
UMBRA_OPERATOR("_functional_assert_async.msg(Tensor self, str assert_msg, Tensor dep_token) -> Tensor")
    .all_backends([](const Tensor& self, const std::string& message, const Tensor& token) {
      _assert_async(self, message);
      return token.clone();
    });
UMBRA_OPERATOR("_functional_assert_scalar(Scalar self, str assert_msg, Tensor dep_token) -> Tensor")
    .all_backends([](const Scalar& self, const std::string& message, const Tensor& token) {
      _assert_scalar(self, message);
      return token.clone();
    });

// ---- ranges of numbers ----

using OptionalInt = std::optional<int64_t>;

void constrain(const Scalar& size, int64_t low, int64_t high) {
  check(low <= high, "Max must be greater than or equal to min. Got min=", low, " max=", high);
  if (size.is_symbolic()) {
    SymInt n = size.to_sym_int();
    check(sym_le(low, n).expect_true() && sym_le(n, high).expect_true(), "Invalid value range for ", n, " between [",
          low, ", ", high, "].");
    return;
  }
  int64_t n = size.to_int();
  check(low <= n && n <= high, "Invalid value range for ", n, " between [", low, ", ", high, "].");
}
std::tuple<> constrain_range(const Scalar& size, OptionalInt low, OptionalInt high) {
  constrain(size, low.value_or(INT64_MIN), high.value_or(INT64_MAX));
  return {};
}
std::tuple<> constrain_size(const Scalar& size, OptionalInt low, OptionalInt high) {
  check(!high || *high > 2, "Max value to constrain_range_for_size must be greater than 2. got: ", high.value_or(0));
  constrain(size, low.value_or(0), high.value_or(INT64_MAX));
  return {};
}

UMBRA_OPERATOR("sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()").all_backends(constrain_range);
UMBRA_OPERATOR("sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()")
    .all_backends(constrain_size);
UMBRA_OPERATOR("_functional_sym_constrain_range(Scalar size, int? min, int? max, Tensor dep_token) -> Tensor")
    .all_backends([](const Scalar& size, OptionalInt low, OptionalInt high, const Tensor& token) {
      sym_constrain_range(size, low, high);
      return token.clone();
    });
UMBRA_OPERATOR("_functional_sym_constrain_range_for_size(Scalar size, int? min, int? max, Tensor dep_token) -> Tensor")
    .all_backends([](const Scalar& size, OptionalInt low, OptionalInt high, const Tensor& token) {
      sym_constrain_range_for_size(size, low, high);
      return token.clone();
    });

}  // namespace
}  // namespace umbra::ops
