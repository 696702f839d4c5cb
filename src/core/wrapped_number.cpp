#include "umbra/core/wrapped_number.h"

namespace umbra {

namespace {
/// A symbolic number has no data; the tensor carries the expression.
struct SymbolicNumber final : RefCounted {
  explicit SymbolicNumber(const Scalar& value) : value(value) {}
  Scalar value;
};

Tensor symbolic_number(const Scalar& value) {
  Storage nothing = StorageImpl::without_data(item_size(value.dtype()), Device());
  auto impl = make_counted<TensorImpl>(std::move(nothing), value.dtype(), Device(), DispatchKey::CPU);
  impl->set_layer_state(make_counted<SymbolicNumber>(value));
  return Tensor(std::move(impl));
}

Tensor plain_number(const Scalar& value) {
  Tensor t = allocate_tensor({}, {}, value.dtype(), Device());
  switch (value.dtype()) {
    case DType::Bool: *t.data<bool>() = value.to_bool(); break;
    case DType::Int64: *t.data<int64_t>() = value.to_int(); break;
    case DType::UInt64: *t.data<uint64_t>() = value.to_uint(); break;
    case DType::Complex128: *t.data<std::complex<double>>() = value.to_complex(); break;
    default: *t.data<double>() = value.to_double();
  }
  return t;
}
}  // namespace

Tensor wrapped_number(const Scalar& value) {
  Tensor t = value.is_symbolic() ? symbolic_number(value) : plain_number(value);
  t.impl()->set_wrapped_number(true);
  return t;
}

Scalar wrapped_scalar(const Tensor& t) {
  check(t.impl()->is_wrapped_number(), "the tensor is no wrapped number");
  if (auto* symbolic = dynamic_cast<SymbolicNumber*>(t.impl()->layer_state().get())) return symbolic->value;
  switch (t.dtype()) {
    case DType::Bool: return *t.data<bool>();
    case DType::Int64: return *t.data<int64_t>();
    case DType::UInt64: return *t.data<uint64_t>();
    case DType::Float64: return *t.data<double>();
    default: return *t.data<std::complex<double>>();
  }
}

}  // namespace umbra
