#include "umbra/fake/fake_mode.h"

#include "fake/state.h"
#include "umbra/autograd/autograd.h"
#include "umbra/core/sparse.h"
#include "umbra/generated/functions.h"

namespace umbra {

namespace {
// "cuda" means the current device, and a tensor always says which one it lies on.
Device with_index(Device device) {
  if (device.index < 0 && device.type != DeviceType::CPU && device.type != DeviceType::Meta) device.index = 0;
  return device;
}

Tensor fake_over(FakeModeImpl& mode, Storage storage, DType dtype, Device device) {
  auto impl = make_counted<TensorImpl>(std::move(storage), dtype, device,
                                       DispatchKeySet(DispatchKey::Fake) | backend_key(device));
  impl->set_layer_state(IntrusivePtr<RefCounted>(&mode));
  return Tensor(std::move(impl));
}
}  // namespace

FakeModeImpl::FakeModeImpl(FakeOptions options) : options_(std::move(options)) {}
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

template <class Memo> void FakeModeImpl::sweep(Memo& memo, size_t& limit) {
  if (memo.size() < limit) return;
  std::erase_if(memo, [](const auto& entry) { return !entry.second.real.lock() || !entry.second.fake.lock(); });
  limit = 1024 + 2 * memo.size();
}

Storage FakeModeImpl::fake_storage(const Storage& real, SymInt bytes, Device device) {
  auto found = storages_.find(real.get());
  if (found != storages_.end() && found->second.real.lock() == real)
    if (Storage fake = found->second.fake.lock()) return fake;
  Storage fake = StorageImpl::without_data(bytes, device);
  sweep(storages_, storage_limit_);
  storages_.insert_or_assign(real.get(),
                             Converted<StorageImpl>{WeakPtr<StorageImpl>(real), WeakPtr<StorageImpl>(fake)});
  return fake;
}

namespace {

// Strides of a tensor whose sizes became symbols: expressions where they follow from a size and a smaller stride,
// numbers elsewhere.
SymShape symbolic_strides(const Tensor& real, SymIntArrayRef sizes) {
  SymShape strides(real.sym_strides());
  std::vector<int64_t> order(real.dim());
  for (int64_t d = 0; d < real.dim(); ++d) order[d] = d;
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return real.strides()[a] != real.strides()[b] ? real.strides()[a] < real.strides()[b] : a > b;
  });
  std::unordered_map<int64_t, SymInt> following;  // what strides may be, by value
  for (int64_t d : order) {
    int64_t stride = real.strides()[d];
    if (auto found = following.find(stride); stride > 1 && found != following.end()) strides[d] = found->second;
    following.insert_or_assign(stride * real.sizes()[d], strides[d] * sizes[d]);
  }
  return strides;
}

/// The history of a converted tensor that is no leaf: a gradient does not get further.
class UnknownHistory final : public autograd::Node {
 public:
  std::string name() const override { return "Error"; }
  autograd::Gradients apply(autograd::Gradients) override {
    fail("a gradient has reached a tensor whose history stayed behind when it was converted to a fake one");
  }
};

// The number that item() gives of a converted tensor: of 0-d CPU tensors of the types that Python's own numbers have,
// and of narrower signed integers, as in PyTorch.
std::optional<Scalar> readable_number(const Tensor& real) {
  if (real.dim() != 0 || real.device().type != DeviceType::CPU || !real.storage()->has_data() || real.is_neg())
    return std::nullopt;
  switch (real.dtype()) {
    case DType::Int64: return Scalar(*real.data<int64_t>());
    case DType::Int32: return Scalar(static_cast<int64_t>(*real.data<int32_t>()));
    case DType::Int16: return Scalar(static_cast<int64_t>(*real.data<int16_t>()));
    case DType::Int8: return Scalar(static_cast<int64_t>(*real.data<int8_t>()));
    case DType::Float64: return Scalar(*real.data<double>());
    default: return std::nullopt;
  }
}

}  // namespace

Tensor FakeModeImpl::from_tensor(const Tensor& real, const SymbolicContext* context) {
  if (fake_mode_of(real) == this) return real;
  require_strided(real, "a fake tensor");
  std::lock_guard lock(mutex_);
  auto found = tensors_.find(real.impl());
  if (found != tensors_.end() && found->second.real.lock() == real.pointer())
    if (IntrusivePtr<TensorImpl> fake = found->second.fake.lock()) return Tensor(std::move(fake));
  SymShape sizes(real.sym_sizes());
  // Another mode's tensor has metadata to go by, as a real one has; symbols are understood only where they were made.
  check(!real.is_symbolic() || fake_mode_of(real)->shape_env() == shape_env(), "Mixing fake modes NYI");
  if (!context || !shape_env() || real.is_symbolic()) return convert(real, sizes, real.sym_strides());
  for (int64_t d = 0; d < real.dim(); ++d)
    sizes[d] = shape_env()->create_symbol(real.sizes()[d], context->source + ".size()[" + std::to_string(d) + "]",
                                          context->dims.at(d));
  return from_tensor_with_sizes(real, sizes);
}

Tensor FakeModeImpl::from_tensor_with_sizes(const Tensor& real, SymIntArrayRef sizes) {
  return convert(real, sizes, symbolic_strides(real, sizes));
}

Tensor FakeModeImpl::convert(const Tensor& real, SymIntArrayRef sizes, SymIntArrayRef strides) {
  std::lock_guard lock(mutex_);
  SymInt offset = real.sym_storage_offset();
  SymInt bytes =
      any_symbolic(sizes) ? storage_bytes(sizes, strides, offset, real.item_size()) : real.storage()->bytes();
  Tensor fake;
  {
    InferenceMode as_real(real.impl()->is_inference());
    fake = fake_over(*this, fake_storage(real.storage(), bytes, real.device()), real.dtype(), real.device());
  }
  fake.impl()->set_geometry(sizes, strides, offset);
  fake.impl()->set_conj(real.is_conj());
  fake.impl()->set_neg(real.is_neg());
  fake.impl()->set_wrapped_number(real.impl()->is_wrapped_number());
  if (const IntrusivePtr<TensorImpl>& base = real.impl()->view_base()) {
    fake.impl()->set_view_base(from_tensor(Tensor(base)).pointer());
    fake.impl()->add_key(DispatchKey::Autograd);
  }
  if (real.requires_grad() && (!real.impl()->view_base() || real.is_leaf())) {
    if (real.is_leaf()) fake.requires_grad_();
    else autograd::set_history(fake, make_counted<UnknownHistory>());
  }
  if (!shape_env())
    if (std::optional<Scalar> number = readable_number(real))
      fake.impl()->set_layer_state(make_counted<DataFakeState>(IntrusivePtr<FakeModeImpl>(this), fake, *number));
  sweep(tensors_, tensor_limit_);
  tensors_.insert_or_assign(
      real.impl(), Converted<TensorImpl>{WeakPtr<TensorImpl>(real.pointer()), WeakPtr<TensorImpl>(fake.pointer())});
  if (Tensor gradient = real.grad(); gradient.defined()) fake.set_grad(from_tensor(gradient));
  return fake;
}

void FakeModeImpl::clear_memo() {
  std::lock_guard lock(mutex_);
  tensors_.clear();
  storages_.clear();
}

FakeModeImpl* fake_mode_of(const Tensor& tensor) {
  return tensor.defined() && tensor.is_fake() ? static_cast<FakeState*>(tensor.impl()->layer_state().get())->mode()
                                              : nullptr;
}

const Tensor* fake_constant(const Tensor& tensor) {
  return tensor.is_fake() ? static_cast<FakeState*>(tensor.impl()->layer_state().get())->constant() : nullptr;
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

}  // namespace umbra
