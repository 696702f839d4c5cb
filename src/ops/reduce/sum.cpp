// Sums and means.
#include "core/cpp_name.h"
#include "kernels/reductions.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/out_asks.h"
#include "ops/common/out_variant.h"
#include "ops/reduce/reduced_shape.h"
#include "ops/sparse/reduce.h"

namespace umbra::ops {
namespace {

DType mean_dtype(const Tensor& self, std::optional<DType> dtype) {
  DType t = dtype.value_or(self.dtype());
  check(is_floating(t) || is_complex(t) || !only_metadata_is_asked(), "mean(): could not infer output dtype. ",
        dtype ? "Optional" : "Input", " dtype must be either a floating point or complex dtype. Got: ", t);
  check<NotImplementedError>(is_floating(t) || is_complex(t), "mean(): could not infer output dtype. ",
                             dtype ? "Optional" : "Input",
                             " dtype must be either a floating point or complex dtype. Got: ", kernel_name(t));
  return t;
}

UMBRA_OPERATOR("sum(Tensor self, *, ScalarType? dtype=None) -> Tensor")
    .generated_out("sum.out")
    .meta([](const Tensor& self, std::optional<DType> dtype) {
      return TensorSpec({}, accumulated_dtype(self, dtype), self.device());
    })
    .cpu([](const Tensor& out, const Tensor& self, std::optional<DType>) {
      kernels::sum(out, in_type(self, out.dtype()), masked_dims(all_dims(self)));
    })
    .sparse(sparse::sum)
    .gradient("self", {"grad", "self.sym_sizes"},
              [](const Tensor& grad, SymIntArrayRef sizes) { return grad.expand(sizes); })
    .linear()
    .tags({Tag::Reduction})
    .batch([](const Batched& self, std::optional<DType> dtype) {
      return self.rank() == 0 ? Batched(batch_flat(self).sum(IntArrayRef{1}, false, dtype), 0)
                              : Batched(batch_first(self).sum(inner_dims(self), false, dtype), 0);
    });

UMBRA_OPERATOR("sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
    .out("sum.IntList_out")
    .use(OutDecidesType{"sum.IntList_out"})
    .meta([](const Tensor& self, OptionalDims dims, bool keepdim, std::optional<DType> dtype) {
      return reduced_spec(self, reduced_dims(self, dims), keepdim, accumulated_dtype(self, dtype));
    })
    .cpu([](const Tensor& out, const Tensor& self, OptionalDims dims, bool, std::optional<DType>) {
      kernels::sum(out, in_type(self, out.dtype()), masked_dims(reduced_dims(self, dims)));
    })
    .sparse([](const Tensor& self, OptionalDims dims, bool keepdim, std::optional<DType> dtype) {
      return sparse::sum_over(self, dims.value_or(std::vector<int64_t>()), keepdim, dtype);
    })
    .gradient("self", {"grad", "self.sym_sizes", "dim", "keepdim"},
              [](const Tensor& grad, SymIntArrayRef sizes, OptionalDims dims, bool keepdim) {
                return restore_dims(grad, sizes, dims, keepdim).expand(sizes);
              })
    .linear()
    .node("SumBackward1")
    .tags({Tag::Core, Tag::Reduction})
    .use(BatchInFront{.dims = {"dim"}, .none_is_all = true, .empty_is_all = true, .scalars = true});

/// An output is of the type that the mean is told to have.
void check_told_type(const Tensor& self, std::optional<DType> dtype, const Tensor& out) {
  mean_dtype(self, dtype);
  if (dtype && has_elements(out)) check_out_dtype(*dtype, out.dtype());
}

UMBRA_OPERATOR("mean(Tensor self, *, ScalarType? dtype=None) -> Tensor")
    .out("mean.dtype_out")
    .use(out_asks("mean.dtype_out",
                  [](const Tensor& self, std::optional<DType> dtype, const Tensor& out) {
                    check(can_cast(self.dtype(), out.dtype()) || !has_elements(out),
                          "mean.dtype_out(): input types can't be cast to the desired output type ",
                          kernel_name(out.dtype()));
                    check_told_type(self, dtype, out);
                  }))
    .meta([](const Tensor& self, std::optional<DType> dtype) {
      return TensorSpec({}, mean_dtype(self, dtype), self.device());
    })
    .cpu([](const Tensor& out, const Tensor& self, std::optional<DType>) {
      kernels::mean(out, in_type(self, out.dtype()), masked_dims(all_dims(self)));
    })
    .gradient("self", {"grad", "self.sym_sizes"},
              [](const Tensor& grad, SymIntArrayRef sizes) { return grad.expand(sizes).div(Scalar(product(sizes))); })
    .linear()
    .tags({Tag::Core, Tag::Reduction, Tag::CastsToOut})
    .batch([](const Batched& self, std::optional<DType> dtype) {
      return self.rank() == 0 ? Batched(batch_flat(self).mean(IntArrayRef{1}, false, dtype), 0)
                              : Batched(batch_first(self).mean(inner_dims(self), false, dtype), 0);
    });

UMBRA_OPERATOR("mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
    .out("mean.out")
    .use(out_asks("mean.out", [](const Tensor& self, OptionalDims, bool, std::optional<DType> dtype,
                                 const Tensor& out) { check_told_type(self, dtype, out); }))
    .meta([](const Tensor& self, OptionalDims dims, bool keepdim, std::optional<DType> dtype) {
      return reduced_spec(self, reduced_dims(self, dims), keepdim, mean_dtype(self, dtype));
    })
    .cpu([](const Tensor& out, const Tensor& self, OptionalDims dims, bool, std::optional<DType>) {
      kernels::mean(out, in_type(self, out.dtype()), masked_dims(reduced_dims(self, dims)));
    })
    .gradient("self", {"grad", "self.sym_sizes", "dim", "keepdim"},
              [](const Tensor& grad, SymIntArrayRef sizes, OptionalDims dims, bool keepdim) {
                Tensor whole = restore_dims(grad, sizes, dims, keepdim).expand(sizes);
                return whole.div(Scalar(reduced_count(sizes, dims)));
              })
    .linear()
    .node("MeanBackward1")
    .tags({Tag::Core, Tag::Reduction, Tag::CastsToOut})
    .use(BatchInFront{.dims = {"dim"}, .none_is_all = true, .empty_is_all = true, .scalars = true});

// ---- without numbers that are none ----

UMBRA_OPERATOR("nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
    .out("nansum.out")
    .use(OutDecidesType{"nansum.out"})
    .meta([](const Tensor& self, OptionalDims dims, bool keepdim, std::optional<DType> dtype) {
      if (!outputs_are_given()) reduced_dims(self, dims);
      check<NotImplementedError>(!self.is_complex(), "nansum on CPU does not support complex inputs");
      return reduced_spec(self, reduced_dims(self, dims), keepdim, accumulated_dtype(self, dtype));
    })
    .cpu([](const Tensor& out, const Tensor& self, OptionalDims dims, bool, std::optional<DType>) {
      auto over = masked_dims(reduced_dims(self, dims));
      if (is_integral(self.dtype(), true)) return kernels::sum(out, in_type(self, out.dtype()), over);
      if (is_integral(out.dtype(), true)) {  // an output may not ask for what the caller can
        if (outputs_are_given()) kernels::unsupported_dtype("nansum_cpu", out.dtype());
        return kernels::sum(out, in_type(where(self.isnan(), 0, self), out.dtype()), over);
      }
      kernels::nansum(out, in_type(self, out.dtype()), over);
    })
    .gradient("self", {"grad", "self", "dim", "keepdim"},
              [](const Tensor& grad, const Tensor& self, OptionalDims dims, bool keepdim) {
                return restore_dims(grad, self.sym_sizes(), dims, keepdim)
                    .expand(self.sym_sizes())
                    .mul(self.isnan().logical_not())
                    .to(self.dtype());
              })
    .tangents_through([](const Tensor& self, OptionalDims dims, bool keepdim, std::optional<DType> dtype) {
      Tensor counted = where(self.isnan(), 0, self);
      return dims ? counted.sum(IntArrayRef(*dims), keepdim, dtype)
                  : counted.sum(IntArrayRef(masked_dims(all_dims(self))), keepdim, dtype);
    })
    .tags({Tag::Reduction})
    .use(BatchInFront{.dims = {"dim"}, .none_is_all = true, .empty_is_all = true, .scalars = true});

/// How many elements are numbers.
Tensor count_numbers(const Tensor& values, const OptionalDims& dims, bool keepdim) {
  check<NotImplementedError>(values.is_floating_point() || values.is_complex(),
                             "nanmean(): expected input to have floating point or complex dtype but got ",
                             kernel_name(values.dtype()));
  std::vector<int64_t> over = dims.value_or(std::vector<int64_t>());
  return values.ne(values).logical_not_().sum(IntArrayRef(over), keepdim);
}

UMBRA_OPERATOR("nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
    .out("nanmean.out")
    .composite([](const Tensor& self, OptionalDims dims, bool keepdim, std::optional<DType> dtype) {
      bool told_well = !is_floating(self.dtype()) || !dtype || is_floating(*dtype) || is_complex(*dtype);
      check(told_well, "nanmean(): could not infer output dtype. Optional dtype must be either a floating point or ",
            "complex dtype. Got: ", kernel_name(dtype.value_or(self.dtype())));
      Tensor count = count_numbers(self.detach(), dims, keepdim);
      return nansum(self, dims, keepdim, dtype).div(count);
    })
    .use(out_parts([](const Tensor& self, OptionalDims dims, bool keepdim, std::optional<DType> dtype,
                      const Tensor& out) {
      Tensor count = count_numbers(self, dims, keepdim);
      return nansum_out(out, self, dims, keepdim, dtype).div_(count);
    }));

}  // namespace
}  // namespace umbra::ops
