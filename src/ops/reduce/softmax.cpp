// Softmax and log_softmax.
#include "kernels/softmax.h"

#include "kernels/copy.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/out_variant.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

TensorSpec softmax_spec(const Tensor& self, int64_t dim, bool half_to_float, bool logarithm = false) {
  check<AssertionError>(!only_metadata_is_asked() || !logarithm || !half_to_float || self.dtype() == DType::Float16,
                        "half_to_float is True but x.dtype is ", self.dtype(), ", expected torch.half");
  if (logarithm || !only_metadata_is_asked()) wrap_dim(dim, self.dim());
  bool accelerator = self.device().type == DeviceType::CUDA;
  check(!half_to_float || accelerator, "softmax with half to float conversion is not supported on CPU");
  check<AssertionError>(!half_to_float || is_reduced_floating(self.dtype()), "half_to_float is True but x.dtype is ",
                        self.dtype(), ", expected half or bfloat16");
  return TensorSpec(self.sym_sizes(), half_to_float ? DType::Float32 : self.dtype(), self.device());
}
/// An accelerator's kernel takes a half and gives a float.
bool widens(const Tensor& self, std::optional<DType> dtype) {
  return self.device().type == DeviceType::CUDA && self.dtype() == DType::Float16 && dtype == DType::Float32;
}
/// Of no elements any type will do.
void check_softmax_type(const char* kernel, const char* last_kernel, const Tensor& self, int64_t dim) {
  bool last = wrap_dim(dim, self.dim()) >= self.dim() - 1;
  bool fits = is_floating(self.dtype()) && !is_float8(self.dtype());
  check_kernel_type(fits || self.sym_numel() == 0, last ? last_kernel : kernel, self);
}
void check_log_backward_type(const Tensor& grad, int64_t dim) {
  check_softmax_type("log_softmax_backward_kernel_impl", "log_softmax_backward_lastdim_kernel_impl", grad, dim);
}
/// A gradient without elements is looked at where there is an output that has some.
void check_log_backward_of_nothing(const Tensor& grad, const Tensor& output, int64_t dim) {
  if (output.sym_numel() == 0) return;
  bool last = wrap_dim(dim, grad.dim()) == grad.dim() - 1;
  check_kernel_type(is_floating(grad.dtype()),
                    last ? "log_softmax_backward_lastdim_kernel_impl" : "log_softmax_backward_kernel_impl", grad);
  check_read_as(grad.dtype(), output);
}
TensorSpec backward_spec(const Tensor& grad, const Tensor& output, int64_t dim, DType input_dtype) {
  check(grad.sym_sizes() == output.sym_sizes(),
        "Expected tensor for argument #1 'grad' to have same size as tensor for argument #2 'output'; but ",
        grad.sym_sizes(), " does not equal ", output.sym_sizes(), " (while checking arguments for softmax_backward)");
  wrap_dim(dim, grad.dim());
  check(grad.dtype() == output.dtype(), "expected scalar type ", kernel_name(output.dtype()), " but found ",
        kernel_name(grad.dtype()));
  bool accelerator = grad.device().type == DeviceType::CUDA;  // which alone takes a half and gives a float
  check(accelerator || grad.is_meta() || grad.dtype() != DType::Float32 || !is_reduced_floating(input_dtype),
        "expected scalar type Float but found ", kernel_name(input_dtype));
  return TensorSpec(grad.sym_sizes(), strides_in_format(grad, MemoryFormat::Preserve),
                    accelerator || grad.is_meta() ? input_dtype : grad.dtype(), grad.device());
}

TensorSpec contiguous(const TensorSpec& spec) { return TensorSpec(spec.sizes, spec.dtype, spec.device); }

UMBRA_OPERATOR("_softmax(Tensor self, int dim, bool half_to_float) -> Tensor")
    .out("_softmax.out")
    .meta([](const Tensor& self, int64_t dim, bool half_to_float) { return softmax_spec(self, dim, half_to_float); })
    .cpu([](const Tensor& out, const Tensor& self, int64_t dim, bool) {
      check_softmax_type("softmax_kernel_impl", "softmax_lastdim_kernel_impl", self, dim);
      if (out.numel() != 0) kernels::softmax(out, self, wrap_dim(dim, self.dim()));
    })
    .gradient("self", {"grad", "result", "dim", "self.dtype"},
              [](const Tensor& grad, const Tensor& result, int64_t dim, DType dtype) {
                return _softmax_backward_data(grad, result, dim, dtype);
              })
    .tags({Tag::Core})
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

UMBRA_OPERATOR("_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor")
    .out("_softmax_backward_data.out", {"grad_input"})
    .meta([](const Tensor& grad, const Tensor& output, int64_t dim, DType input_dtype) {
      return contiguous(backward_spec(grad, output, dim, input_dtype));
    })
    .cpu([](const Tensor& out, const Tensor& grad, const Tensor& output, int64_t dim, DType) {
      kernels::softmax_backward(out, grad, output, wrap_dim(dim, grad.dim()));
    })
    .gradient("grad_output", {"grad", "output", "dim", "input_dtype"},
              [](const Tensor& grad, const Tensor& output, int64_t dim, DType dtype) {
                return _softmax_backward_data(grad, output, dim, dtype);
              })
    .gradient("output", {"grad", "grad_output", "output", "dim"},
              [](const Tensor& grad, const Tensor& grad_output, const Tensor& output, int64_t dim) {
                Tensor inner = grad_output.mul(output).sum(IntArrayRef{dim}, true);
                return grad_output.mul(grad)
                    .sub(inner.mul(grad))
                    .sub(grad_output.mul(output.mul(grad).sum(IntArrayRef{dim}, true)));
              })
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

UMBRA_OPERATOR("_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor")
    .out("_log_softmax.out")
    .meta([](const Tensor& self, int64_t dim, bool half_to_float) {
      return softmax_spec(self, dim, half_to_float, true);
    })
    .cpu([](const Tensor& out, const Tensor& self, int64_t dim, bool) {
      check_softmax_type("log_softmax_kernel_impl", "log_softmax_lastdim_kernel_impl", self, dim);
      if (out.numel() != 0) kernels::log_softmax(out, self, wrap_dim(dim, self.dim()));
    })
    .gradient("self", {"grad", "result", "dim", "self.dtype"},
              [](const Tensor& grad, const Tensor& result, int64_t dim, DType dtype) {
                return _log_softmax_backward_data(grad, result, dim, dtype);
              })
    .tags({Tag::Core})
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

UMBRA_OPERATOR(
    "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor")
    .out("_log_softmax_backward_data.out")
    .meta([](const Tensor& grad, const Tensor& output, int64_t dim, DType input_dtype) {
      wrap_dim(dim, grad.dim());
      if (has_elements(grad) && grad.sym_numel() == 0) {  // nothing is read that could fit or not
        if (!outputs_are_given()) check_log_backward_of_nothing(grad, output, dim);
        return contiguous(backward_spec(grad, grad, dim, input_dtype));
      }
      // An output of another type is refused before the kernel is asked.
      if (!outputs_are_given()) check_log_backward_type(grad, dim);
      return backward_spec(grad, output, dim, input_dtype);
    })
    .cpu([](const Tensor& out, const Tensor& grad, const Tensor& output, int64_t dim, DType) {
      if (grad.numel() == 0) return check_log_backward_of_nothing(grad, output, dim);
      check_log_backward_type(grad, dim);
      kernels::log_softmax_backward(out, grad, output, wrap_dim(dim, grad.dim()));
    })
    .gradient("grad_output", {"grad", "output", "dim"},
              [](const Tensor& grad, const Tensor& output, int64_t dim) {
                return grad.sub(grad.mul(output.exp()).sum(IntArrayRef{dim}, true));
              })
    .gradient("output", {"grad", "grad_output", "output", "dim"},
              [](const Tensor& grad, const Tensor& grad_output, const Tensor& output, int64_t dim) {
                return grad.mul(grad_output.sum(IntArrayRef{dim}, true)).mul(output.exp()).neg();
              })
    .use(BatchInFront{.dims = {"dim"}, .scalars = true});

UMBRA_OPERATOR("softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
    .out("softmax.int_out")
    .composite([](const Tensor& self, int64_t dim, std::optional<DType> dtype) {
      if (widens(self, dtype)) return _softmax(self, dim, true);
      return _softmax(dtype ? self.to(*dtype) : self, dim, false);
    })
    .use(out_parts([](const Tensor& self, int64_t dim, std::optional<DType> dtype, const Tensor& out) {
      return _softmax_out(out, dtype ? self.to(*dtype) : self, dim, false);
    }));

UMBRA_OPERATOR("log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
    .out("log_softmax.int_out")
    .composite([](const Tensor& self, int64_t dim, std::optional<DType> dtype) {
      if (widens(self, dtype)) return _log_softmax(self, dim, true);
      return _log_softmax(dtype ? self.to(*dtype) : self, dim, false);
    })
    .use(out_parts([](const Tensor& self, int64_t dim, std::optional<DType> dtype, const Tensor& out) {
      return _log_softmax_out(out, dtype ? self.to(*dtype) : self, dim, false);
    }));

UMBRA_OPERATOR("special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")
    .composite([](const Tensor& self, int64_t dim, std::optional<DType> dtype) { return softmax(self, dim, dtype); });
UMBRA_OPERATOR("special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor")
    .composite([](const Tensor& self, int64_t dim, std::optional<DType> dtype) {
      return log_softmax(self, dim, dtype);
    });
UMBRA_OPERATOR("special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor")
    .out("special_logsumexp.out")
    .composite([](const Tensor& self, std::vector<int64_t> dim, bool keepdim) {
      for (int64_t d : dim) wrap_dim(d, self.dim());
      return self.logsumexp(dim, keepdim);
    })
    .use(out_parts([](const Tensor& self, std::vector<int64_t> dim, bool keepdim, const Tensor& out) {
      return logsumexp_out(out, self, dim, keepdim);
    }));

}  // namespace
}  // namespace umbra::ops
