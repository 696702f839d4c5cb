#include "umbra/fake/fake_mode.h"

#include "fake/state.h"
#include "umbra/core/sparse.h"
#include "umbra/generated/functions.h"

namespace umbra {

namespace {
// "cuda" means the current device, and a tensor always says which one it lies on.
Device with_index(Device device) {
  if (device.index < 0 && device.type != DeviceType::CPU && device.type != DeviceType::Meta) device.index = 0;
  return device;
}

/// Null of tensors that are not fake, and of sparse ones: those are as fake as their parts.
FakeState* state_of(const Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_fake() || tensor.keys().has(DispatchKey::Sparse)) return nullptr;
  return static_cast<FakeState*>(tensor.impl()->layer_state().get());
}
}  // namespace

Tensor fake_over(FakeModeImpl& mode, Storage storage, DType dtype, Device device) {
  check<AssertionError>(device.type != DeviceType::Meta || mode.options().allow_meta,
                        "device.type must not be 'meta' when allow_meta is False");
  auto impl = make_counted<TensorImpl>(std::move(storage), dtype, device,
                                       DispatchKeySet(DispatchKey::Fake) | backend_key(device));
  impl->set_layer_state(IntrusivePtr<RefCounted>(&mode));
  return Tensor(std::move(impl));
}

FakeModeImpl::FakeModeImpl(FakeOptions options)
    : options_(std::move(options)), converter_(make_counted<FakeConverter>()) {}
FakeModeImpl::~FakeModeImpl() = default;
FakeMode::FakeMode(FakeOptions options) : impl_(make_counted<FakeModeImpl>(std::move(options))) {}

Tensor FakeModeImpl::make(const TensorSpec& spec) {
  Device device = with_index(spec.device);
  for (SymInt s : spec.sizes)
    if (!s.is_symbolic() && s.value() < 0)
      fail("Trying to create tensor with negative dimension ", s, ": ", to_string(spec.sizes));
  SymInt bytes = storage_bytes(spec.sizes, spec.strides, 0, item_size(spec.dtype));
  Tensor out = fake_over(*this, StorageImpl::without_data(bytes, device), spec.dtype, device);
  out.impl()->set_geometry(spec.sizes, spec.strides);
  return out;
}

FakeModeImpl* fake_mode_of(const Tensor& tensor) {
  if (FakeState* state = state_of(tensor)) return state->mode();
  bool sparse = tensor.defined() && tensor.keys().has(DispatchKey::Sparse);
  return sparse ? fake_mode_of(sparse_parts(tensor).values) : nullptr;
}

const Tensor* fake_constant(const Tensor& tensor) {
  FakeState* state = state_of(tensor);
  return state ? state->constant() : nullptr;
}

const Tensor* fake_real(const Tensor& tensor) {
  FakeState* state = state_of(tensor);
  return state ? state->real() : nullptr;
}

FakeModeImpl* detect_fake_mode(ArrayRef<Tensor> tensors) {
  for (const Tensor& t : tensors)
    if (FakeModeImpl* mode = fake_mode_of(t)) return mode;
  return static_cast<FakeModeImpl*>(active_mode(DispatchKey::Fake));
}

Tensor fake_with_constant(FakeModeImpl& mode, const Tensor& value) {
  Tensor fake = mode.make(TensorSpec(value.sym_sizes(), value.sym_strides(), value.dtype(), value.device()));
  remember_constant(mode, fake, value);
  return fake;
}

void remember_constant(FakeModeImpl& mode, const Tensor& fake, const Tensor& value) {
  fake.impl()->set_layer_state(make_counted<ConstantFakeState>(IntrusivePtr<FakeModeImpl>(&mode),
                                                               make_counted<KnownMemory>(fake.storage()), value));
}

}  // namespace umbra
