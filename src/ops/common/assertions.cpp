// Checks that exported programs carry: they give nothing and fail where a promise does not hold.
#include "umbra/dispatch/define.h"

namespace umbra::ops {
namespace {

std::tuple<> assert_tensor_metadata(const Tensor& a, const std::optional<std::vector<SymInt>>& size,
                                    const std::optional<std::vector<SymInt>>& stride, std::optional<DType> dtype,
                                    std::optional<Device> device, std::optional<Layout> layout) {
  if (size)
    check(SymIntArrayRef(*size) == a.sym_sizes(), "Tensor sizes mismatch! Expected: ", to_string(SymIntArrayRef(*size)),
          ", Got: ", to_string(a.sym_sizes()));
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

}  // namespace
}  // namespace umbra::ops
