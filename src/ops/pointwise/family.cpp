#include "ops/pointwise/family.h"

#include <algorithm>

#include "ops/common/kernel_type.h"

namespace umbra::ops {

PointwiseTypes pointwise_types(ArrayRef<const Tensor*> inputs, Promotion promotion) {
  // One type everywhere is the usual case and needs no ranking.
  DType common = inputs[0]->dtype();
  bool same = !inputs[0]->impl()->is_wrapped_number();
  for (const Tensor* t : inputs) same &= t->dtype() == common && !t->impl()->is_wrapped_number();
  if (!same) {
    ResultType result;
    for (const Tensor* t : inputs) result.add(*t);
    common = result.get();
  }
  switch (promotion) {
    case Promotion::Default: return {common, common};
    case Promotion::IntToFloat:
      if (is_integral(common, true)) common = default_dtype();
      return {common, common};
    case Promotion::ToBool:
    case Promotion::AlwaysBoolOut: return {common, DType::Bool};
    case Promotion::ComplexToReal: return {common, real_type(common)};
  }
  return {common, common};
}

namespace {

bool same_shape(const Tensor& a, const Tensor& b) {
  if (a.is_same(b)) return true;
  if (a.dim() != b.dim()) return false;
  for (int64_t d = 0; d < a.dim(); ++d)
    if (!a.sym_sizes()[d].same(b.sym_sizes()[d])) return false;
  return true;
}
bool same_strides(const Tensor& a, const Tensor& b) {
  for (int64_t d = 0; d < a.dim(); ++d)
    if (!a.sym_strides()[d].same(b.sym_strides()[d])) return false;
  return true;
}

enum class Shared : uint8_t { Nothing, RowMajor, ChannelsLast, Strides };

// Whether all inputs have one shape and one dense layout, which the output takes as it is; and which.
Shared shared_layout(ArrayRef<const Tensor*> inputs) {
  const Tensor& first = *inputs[0];
  bool contiguous = true;
  for (const Tensor* t : inputs) {
    if (!same_shape(first, *t)) return Shared::Nothing;
    contiguous = contiguous && t->is_contiguous();
  }
  if (contiguous) return Shared::RowMajor;
  bool strides_equal = true;
  for (const Tensor* t : inputs) strides_equal = strides_equal && same_strides(first, *t);
  bool channels_last = first.dim() == 4;
  for (const Tensor* t : inputs) channels_last = channels_last && t->is_contiguous(MemoryFormat::ChannelsLast);
  if (channels_last) return Shared::ChannelsLast;
  return strides_equal && first.is_non_overlapping_and_dense() ? Shared::Strides : Shared::Nothing;
}

// The general case: the memory order that the inputs agree on.
SymShape merged_layout(SymIntArrayRef shape, ArrayRef<const Tensor*> inputs) {
  // Where nothing is computed PyTorch lays a tensor without elements out row-major, whatever its inputs look like.
  bool empty = std::any_of(shape.begin(), shape.end(), [](SymInt size) { return size.same(0); });
  bool described = std::any_of(inputs.begin(), inputs.end(), [](const Tensor* t) { return !has_elements(*t); });
  if (empty && described) return contiguous_strides(shape);
  std::vector<SymShape> strides;
  for (const Tensor* t : inputs) strides.push_back(expanded_strides(t->sym_sizes(), t->sym_strides(), shape));
  return dense_strides_like(shape, strides);
}

}  // namespace

const Tensor& number_of_type(DType dtype) {
  static const Tensor* numbers = [] {
    auto* all = new Tensor[5];
    Scalar values[] = {false, 0, 0.0, std::complex<double>(), uint64_t{1} << 63};
    for (int i = 0; i < 5; ++i) all[i] = wrapped_number(values[i]);
    return all;
  }();
  if (dtype == DType::UInt64) return numbers[4];
  return numbers[umbra::is_complex(dtype) ? 3 : is_floating(dtype) ? 2 : dtype == DType::Bool ? 0 : 1];
}

TensorSpec pointwise_spec(ArrayRef<const Tensor*> inputs, DType result) {
  const Tensor& first = *inputs[0];
  Device device = inputs.size() == 1 ? first.device() : common_device(inputs);
  // Made where it is to be: strides that are moved right after they were written make the processor wait.
  switch (shared_layout(inputs)) {
    case Shared::RowMajor: return TensorSpec(first.sym_sizes(), result, device);
    case Shared::ChannelsLast:
      return TensorSpec(first.sym_sizes(), strides_for(first.sym_sizes(), MemoryFormat::ChannelsLast), result, device);
    case Shared::Strides: return TensorSpec(first.sym_sizes(), first.sym_strides(), result, device);
    case Shared::Nothing: break;
  }
  SymShape sizes(first.sym_sizes());
  for (const Tensor* t : inputs.drop_front()) sizes = broadcast_shapes(sizes, t->sym_sizes());
  return TensorSpec(sizes, merged_layout(sizes, inputs), result, device);
}

TensorSpec pointwise_spec(ArrayRef<const Tensor*> inputs, Promotion promotion) {
  return pointwise_spec(inputs, pointwise_types(inputs, promotion).result);
}

}  // namespace umbra::ops
