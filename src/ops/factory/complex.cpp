// Complex tensors from their parts, or from length and angle.
#include "dispatch/layers.h"
#include "kernels/concatenate.h"
#include "ops/common/batching.h"
#include "ops/common/out_asks.h"
#include "ops/pointwise/family.h"

namespace umbra::ops {
namespace {

TensorSpec complex_spec(const Tensor& a, const Tensor& b) {
  auto fits = [](DType d) { return d == DType::Float32 || d == DType::Float64 || d == DType::Float16; };
  check<NotImplementedError>(fits(a.dtype()) && fits(b.dtype()),
                             "Expected both inputs to be Half, Float or Double tensors but got ",
                             kernel_name(a.dtype()), " and ", kernel_name(b.dtype()));
  check(a.dtype() == b.dtype(), "Expected object of scalar type ", kernel_name(a.dtype()), " but got scalar type ",
        kernel_name(b.dtype()), " for second argument");
  return pointwise_spec({&a, &b}, complex_type(a.dtype()));
}

/// The real or imaginary parts of a complex tensor, as a real one over the same memory.
Tensor parts(const Tensor& t, int64_t which) {
  SymShape strides;
  for (SymInt s : t.sym_strides()) strides.push_back(s * 2);
  Tensor view = alias_tensor(t, t.sym_sizes(), strides, t.sym_storage_offset() * 2 + which);
  view.impl()->set_dtype(real_type(t.dtype()));
  return view;
}

Tensor real_part(const Tensor& t) { return t.is_complex() ? umbra::real(t) : t; }

/// What out variants ask of their output, once the parts are known to fit each other.
void check_complex_out(const Tensor& first, const Tensor& second, const Tensor& out) {
  DType wanted = complex_spec(first, second).dtype;
  check(out.is_meta() || out.dtype() == wanted, "Expected object of scalar type ", kernel_name(wanted),
        " but got scalar type ", kernel_name(out.dtype()), " for argument 'out'");
}

UMBRA_OPERATOR("complex(Tensor real, Tensor imag) -> Tensor")
    .out("complex.out")
    .use(out_asks("complex.out",
                  [](const Tensor& real, const Tensor& imag, const Tensor& out) {
                    if (!only_metadata_is_asked()) check_complex_out(real, imag, out);
                  }))
    .meta([](const Tensor& real, const Tensor& imag) {
      for (auto [name, t] : {std::pair("real", &real), {"imag", &imag}})
        check<AssertionError>(!only_metadata_is_asked() || is_floating(t->dtype()), name,
                              " must be floating point, got ", t->dtype());
      return complex_spec(real, imag);
    })
    .cpu([](const Tensor& out, const Tensor& real, const Tensor& imag) { kernels::join_parts(out, real, imag); })
    .gradient("real", {"grad"}, [](const Tensor& grad) { return real_part(grad); })
    .gradient("imag", {"grad"}, [](const Tensor& grad) { return real_part(grad.mul(std::complex<double>(0, -1))); })
    .linear()
    .batch([](const Batched& real, const Batched& imag) {
      int64_t rank = std::max(real.rank(), imag.rank());
      return Batched(umbra::complex(batch_first(real, rank), batch_first(imag, rank)), 0);
    });

UMBRA_OPERATOR("polar(Tensor abs, Tensor angle) -> Tensor")
    .out("polar.out")
    .use(out_asks("polar.out", check_complex_out))
    .meta([](const Tensor& abs, const Tensor& angle) { return complex_spec(abs, angle); })
    .cpu([](const Tensor& out, const Tensor& abs, const Tensor& angle) {
      Tensor turned = angle.expand(out.sym_sizes());
      if (out.dtype() == DType::Complex32) {  // rounded once
        turned = turned.to(DType::Float32);
        return kernels::join_parts(out, turned.cos().mul(abs), turned.sin().mul(abs));
      }
      cos_out(parts(out, 0), turned).mul_(abs);
      sin_out(parts(out, 1), turned).mul_(abs);
    })
    .gradient("abs, angle", {"grad", "result"},
              [](const Tensor& grad, const Tensor& result) {
                Tensor mirrored = grad.conj();
                return std::tuple{real_part(mirrored.mul(result.sgn())),
                                  real_part(mirrored.mul(result.mul(std::complex<double>(0, 1))))};
              })
    .tangents_through([](const Tensor& abs, const Tensor& angle) {
      return umbra::complex(abs.mul(angle.cos()), abs.mul(angle.sin()));
    })
    .batch([](const Batched& abs, const Batched& angle) {
      int64_t rank = std::max(abs.rank(), angle.rank());
      return Batched(umbra::polar(batch_first(abs, rank), batch_first(angle, rank)), 0);
    });

}  // namespace
}  // namespace umbra::ops
