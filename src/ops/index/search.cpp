// Where numbers belong among sorted ones (searchsorted, bucketize), and whether they are among others (isin).
#include "kernels/search.h"

#include <cmath>

#include "dispatch/layers.h"
#include "kernels/copy.h"
#include "ops/common/batching.h"
#include "ops/common/kernel_type.h"
#include "ops/common/needs_data.h"
#include "ops/common/out_asks.h"
#include "ops/common/promotion.h"
#include "ops/common/shape.h"
#include "umbra/dispatch/define.h"
#include "umbra/generated/functions.h"

namespace umbra::ops {
namespace {

using OptionalText = std::optional<std::string>;

// ---- searchsorted ----

DType position_dtype(bool int32) { return int32 ? DType::Int32 : DType::Int64; }

/// What an output has to be, which is asked before anything of the inputs.
void check_position_type(bool int32, const Tensor& out) {
  check(only_metadata_is_asked() || out.dtype() == position_dtype(int32),
        "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on "
        "whether out_int32 flag is True, but we got output tensor's dtype ",
        kernel_name(out.dtype()), " and out_int32 flag is ", int32 ? "True" : "False");
}

bool goes_right(bool right, const OptionalText& side) { return right || side == "right"; }

void check_side(bool right, const OptionalText& side) {
  if (!side) return;
  check(*side == "left" || *side == "right", "torch.searchsorted(): side can only be 'left' or 'right' but got ",
        *side);
  check(*side == "right" || !right,
        "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True");
}

void check_sorter(const Tensor& sorted, const Tensor& sorter) {
  if (!sorter.defined()) return;
  check(sorter.device() == sorted.device(),
        "torch.searchsorted(): sorter and boundary tensors should have same device type, but got sorter tensor device "
        "type ",
        sorter.device(), " and input value tensor device type ", sorted.device());
  check(sorter.sym_sizes() == sorted.sym_sizes(),
        "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor ",
        sorted.sym_sizes(), "and got sorter tensor ", sorter.sym_sizes());
  check(sorter.dtype() == DType::Int64, "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype ",
        kernel_name(sorter.dtype()));
}

void check_searched(DType dtype) {
  check<NotImplementedError>(!is_complex(dtype) && dtype != DType::Bool,
                             "\"searchsorted_out_cpu\" not implemented for '", kernel_name(dtype), "'");
}

void check_rows(const Tensor& sorted, const Tensor& values) {
  check(values.dim() > 0 || sorted.dim() == 1,
        "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
        "boundaries tensor dim(",
        sorted.dim(), ") and input value's dim(", values.dim(), ") numel(", values.sym_numel(), ")");
  check(sorted.dim() != 0,
        "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension");
  bool fits = sorted.dim() == 1 || sorted.dim() == values.dim();
  for (int64_t d = 0; fits && sorted.dim() > 1 && d + 1 < sorted.dim(); ++d)
    fits = sorted.sym_sizes()[d] == values.sym_sizes()[d];
  check(
      fits,
      "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
      "and input value tensor must match, but we got boundaries tensor ",
      sorted.sym_sizes(), " and input value tensor ", values.sym_sizes());
}

TensorSpec search_spec(const Tensor& sorted, const Tensor& values, bool int32, bool right, const OptionalText& side,
                       const Tensor& sorter) {
  if (only_metadata_is_asked()) {  // few words, and none about devices and types
    bool fits = sorted.dim() <= 1 || sorted.sym_sizes().drop_back() == values.sym_sizes().drop_back();
    check(fits && (!sorter.defined() || sorter.sym_sizes() == sorted.sym_sizes()),
          "torch.searchsorted(): boundaries, values and sorter do not fit each other");
    check(side != "left" || !right,
          "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True");
    return TensorSpec(values.sym_sizes(), position_dtype(int32),
                      values.impl()->is_wrapped_number() ? sorted.device() : values.device());
  }
  check_side(right, side);
  check(values.dim() == 0 || values.device() == sorted.device(),
        "torch.searchsorted(): boundaries and input value tensors should have same device type, but got boundaries "
        "tensor device type ",
        sorted.device(), " and input value tensor device type ", values.device());
  check_sorter(sorted, sorter);
  check_rows(sorted, values);
  if (!values.sym_numel().same(0)) check_searched(ResultType().add(sorted).add(values).get());
  return TensorSpec(values.sym_sizes(), position_dtype(int32), sorted.device());
}

void run_search(const Tensor& out, const Tensor& sorted, const Tensor& values, bool right, const Tensor& sorter) {
  if (values.numel() == 0) return;  // of any type
  if (sorter.defined() && sorter.numel() > 0) {
    Tensor places = kernels::contiguous(sorter);
    const int64_t n = sorted.sizes().back();
    for (int64_t place : ArrayRef<int64_t>(places.data<int64_t>(), static_cast<size_t>(places.numel())))
      check(place >= 0 && place < n, "torch.searchsorted(): sorter index out of range");
  }
  DType common = ResultType().add(sorted).add(values).get();
  kernels::search_sorted(out, kernels::cast(sorted, common), kernels::cast(values, common), sorter, right);
}

UMBRA_OPERATOR(
    "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? "
    "side=None, Tensor? sorter=None) -> Tensor")
    .out("searchsorted.Tensor_out")
    .use(out_asks("searchsorted.Tensor_out", [](const Tensor&, const Tensor&, bool int32, bool, const OptionalText&,
                                                const Tensor&, const Tensor& out) { check_position_type(int32, out); }))
    .meta(search_spec)
    .cpu([](const Tensor& out, const Tensor& sorted, const Tensor& values, bool, bool right, const OptionalText& side,
            const Tensor& sorter) { run_search(out, sorted, values, goes_right(right, side), sorter); })
    .not_differentiable()
    .batch([](const Batched& sorted, const Batched& values, bool int32, bool right, const OptionalText& side,
              const Batched& sorter) {
      // Every row of numbers gets a row to search in.
      bool own_rows = sorted.is_batched() || sorted.rank() > 1 || (sorter.defined() && sorter.is_batched());
      if (!own_rows)
        return Batched(searchsorted(sorted.value, batch_first(values), int32, right, side, sorter.value), 0);
      Tensor rows = batch_all(sorted), order = sorter.defined() ? batch_all(sorter) : Tensor();
      if (sorted.rank() > 1) return Batched(searchsorted(rows, batch_all(values), int32, right, side, order), 0);
      Tensor numbers = batch_all(values), flat = numbers.reshape({numbers.sym_size(0), SymInt(-1)});
      return Batched(searchsorted(rows, flat, int32, right, side, order).reshape(numbers.sym_sizes()), 0);
    });

UMBRA_OPERATOR(
    "searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? "
    "side=None, Tensor? sorter=None) -> Tensor")
    .out("searchsorted.Scalar_out")
    .use(out_asks("searchsorted.Scalar_out", [](const Tensor&, const Scalar&, bool int32, bool, const OptionalText&,
                                                const Tensor&, const Tensor& out) { check_position_type(int32, out); }))
    .meta([](const Tensor& sorted, const Scalar& value, bool int32, bool right, const OptionalText& side,
             const Tensor& sorter) { return search_spec(sorted, wrapped_number(value), int32, right, side, sorter); })
    .cpu([](const Tensor& out, const Tensor& sorted, const Scalar& value, bool, bool right, const OptionalText& side,
            const Tensor& sorter) { run_search(out, sorted, wrapped_number(value), goes_right(right, side), sorter); })
    .not_differentiable()
    .use(batch_through([](const Tensor& sorted, const Scalar& value, bool int32, bool right, const OptionalText& side,
                          const Tensor& sorter) {
      return searchsorted(sorted, wrapped_number(value), int32, right, side, sorter);
    }));

// ---- bucketize ----

TensorSpec bucket_spec(const Tensor& self, const Tensor& boundaries, bool int32, bool right) {
  if (only_metadata_is_asked())
    return TensorSpec(self.sym_sizes(), position_dtype(int32),
                      self.is_meta() ? self.device() : common_device({&self, &boundaries}));
  check(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim(", boundaries.dim(), ")");
  return search_spec(boundaries, self, int32, right, std::nullopt, Tensor());
}

UMBRA_OPERATOR("bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor")
    .out("bucketize.Tensor_out")
    .use(out_asks("bucketize.Tensor_out", [](const Tensor&, const Tensor&, bool int32, bool,
                                             const Tensor& out) { check_position_type(int32, out); }))
    .meta(bucket_spec)
    .cpu([](const Tensor& out, const Tensor& self, const Tensor& boundaries, bool, bool right) {
      run_search(out, boundaries, self, right, Tensor());
    })
    .not_differentiable()
    .use(batch_through([](const Tensor& self, const Tensor& boundaries, bool int32, bool right) {
      return searchsorted(boundaries, self, int32, right);
    }));
UMBRA_OPERATOR("bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor")
    .generated_out("bucketize.Scalar_out")
    .use(NoOutputsOnMeta{"bucketize.Scalar_out"})
    .meta([](const Scalar& self, const Tensor& boundaries, bool int32, bool right) {
      if (only_metadata_is_asked()) return TensorSpec({}, position_dtype(int32), boundaries.device());
      return bucket_spec(wrapped_number(self), boundaries, int32, right);
    })
    .cpu([](const Tensor& out, const Scalar& self, const Tensor& boundaries, bool, bool right) {
      run_search(out, boundaries, wrapped_number(self), right, Tensor());
    })
    .not_differentiable()
    .use(batch_through([](const Scalar& self, const Tensor& boundaries, bool int32, bool right) {
      return searchsorted(boundaries, self, int32, right);
    }));

// ---- isin ----

TensorSpec isin_spec(const Tensor& elements, const Tensor& others) {
  auto unsupported = [](const Tensor* t) {
    return t->dtype() == DType::Bool || t->dtype() == DType::Complex64 || t->dtype() == DType::Complex128;
  };
  for (const Tensor* t : {&elements, &others})
    check(!only_metadata_is_asked() || !unsupported(t), "Unsupported input type encountered for isin(): ", t->dtype());
  for (const Tensor* t : {&elements, &others})
    check<NotImplementedError>(!unsupported(t),
                               "Unsupported input type encountered for isin(): ", kernel_name(t->dtype()));
  bool meta = elements.is_meta() && !elements.is_fake();  // then it matters nowhere where the others are
  return TensorSpec(elements.sym_sizes(), DType::Bool, meta ? elements.device() : common_device({&elements, &others}));
}
void run_isin(const Tensor& out, const Tensor& elements, const Tensor& others, bool invert) {
  DType common = ResultType().add(elements).add(others).get();
  kernels::is_in(out, kernels::cast(elements, common), kernels::cast(others, common), invert);
}

UMBRA_OPERATOR(
    "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> "
    "Tensor")
    .out("isin.Tensor_Tensor_out")
    .meta([](const Tensor& elements, const Tensor& others, bool, bool) { return isin_spec(elements, others); })
    .cpu([](const Tensor& out, const Tensor& elements, const Tensor& others, bool, bool invert) {
      // Few elements are compared each with each, by a kernel that has fewer types than sorting has.
      bool few = others.numel() < static_cast<int64_t>(10 * std::pow(static_cast<double>(elements.numel()), 0.145));
      DType common = ResultType().add(elements).add(others).get();
      if (few && is_wide_unsigned(common)) kernels::unsupported_dtype("isin_default_cpu", common);
      if (few) others.view({-1});  // which the kernel takes them as, or refuses
      run_isin(out, elements, others, invert);
    })
    .not_differentiable()
    .batch([](const Batched& elements, const Batched& others, bool unique, bool invert) {
      if (!others.is_batched()) return Batched(isin(batch_first(elements), others.value, unique, invert), 0);
      // Every element against every other one of its batch.
      Tensor wide = batch_all(elements).unsqueeze(-1), among = batch_flat({batch_all(others), 0});
      SymShape sizes(wide.sym_sizes().size(), 1);
      sizes[0] = among.sym_size(0);
      sizes.back() = among.sym_size(1);
      Tensor found = wide.eq(among.view(sizes)).any(-1);
      return Batched(invert ? found.logical_not() : found, 0);
    });
UMBRA_OPERATOR(
    "isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> "
    "Tensor")
    .out("isin.Tensor_Scalar_out")
    .meta([](const Tensor& elements, const Scalar& other, bool, bool) {
      return isin_spec(elements, wrapped_number(other));
    })
    .cpu([](const Tensor& out, const Tensor& elements, const Scalar& other, bool, bool invert) {
      run_isin(out, elements, wrapped_number(other), invert);
    })
    .not_differentiable()
    .use(BatchInPlace{});
UMBRA_OPERATOR(
    "isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> "
    "Tensor")
    .out("isin.Scalar_Tensor_out")
    .meta([](const Scalar& element, const Tensor& others, bool, bool) {
      return isin_spec(wrapped_number(element), others);
    })
    .cpu([](const Tensor& out, const Scalar& element, const Tensor& others, bool, bool invert) {
      if (others.numel() < 10) others.view({-1});
      run_isin(out, wrapped_number(element), others, invert);
    })
    .not_differentiable()
    .use(batch_through([](const Scalar& element, const Tensor& others, bool, bool invert) {
      Tensor found = others.eq(element).any();
      return invert ? found.logical_not() : found;
    }));

}  // namespace
}  // namespace umbra::ops
