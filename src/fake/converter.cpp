#include "umbra/fake/converter.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "fake/state.h"
#include "umbra/autograd/autograd.h"
#include "umbra/core/sparse.h"
#include "umbra/dispatch/batching.h"
#include "umbra/generated/functions.h"

namespace umbra {

namespace {

// Strides of a tensor whose sizes became symbols: expressions where they follow from a size and a smaller stride, what
// `other(dim)` gives elsewhere, and where `own(dim)` says so.
template <class Own, class Other>
SymShape symbolic_strides(const Tensor& real, SymIntArrayRef sizes, const Own& own, const Other& other) {
  SymShape strides(real.sym_strides());
  std::vector<int64_t> order(real.dim());
  for (int64_t d = 0; d < real.dim(); ++d) order[d] = d;
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return real.strides()[a] != real.strides()[b] ? real.strides()[a] < real.strides()[b] : a > b;
  });
  std::unordered_map<int64_t, SymInt> following;  // what strides may be, by value
  for (int64_t d : order) {
    int64_t stride = real.strides()[d];
    auto found = following.find(stride);
    if (stride > 1) strides[d] = found != following.end() && !own(d) ? found->second : other(d);
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

namespace {

/// A real object and what it became; neither is kept alive.
template <class T> struct Converted { WeakPtr<T> real, fake; };
template <class T> using Memo = std::unordered_map<const void*, Converted<T>>;

/// Forgets what is gone, now and then: an entry keeps the memory of the objects it knows, though not their contents.
template <class T> void sweep(Memo<T>& memo, size_t& limit) {
  if (memo.size() < limit) return;
  std::erase_if(memo, [](const auto& entry) { return entry.second.real.expired() || entry.second.fake.expired(); });
  limit = 1024 + 2 * memo.size();
}

template <class T> std::vector<std::pair<IntrusivePtr<T>, IntrusivePtr<T>>> in_use(const Memo<T>& memo) {
  std::vector<std::pair<IntrusivePtr<T>, IntrusivePtr<T>>> out;
  for (const auto& [_, entry] : memo) {
    IntrusivePtr<T> real = entry.real.lock(), fake = entry.fake.lock();
    if (real && fake) out.emplace_back(std::move(real), std::move(fake));
  }
  return out;
}

}  // namespace

struct FakeConverter::Memos final : RefCounted {
  std::recursive_mutex mutex;  // of what follows; a view's base is converted on the way
  size_t tensor_limit = 1024, storage_limit = 1024, copy_limit = 1024;
  Memo<TensorImpl> tensors;
  Memo<StorageImpl> storages, copies;
};

FakeConverter::FakeConverter() : memos_(make_counted<Memos>()) {}
FakeConverter::~FakeConverter() = default;

std::vector<std::pair<Tensor, Tensor>> FakeConverter::tensors() {
  std::lock_guard lock(memos_->mutex);
  std::vector<std::pair<Tensor, Tensor>> out;
  for (auto& [real, fake] : in_use(memos_->tensors)) out.emplace_back(Tensor(std::move(real)), Tensor(std::move(fake)));
  return out;
}

std::vector<std::pair<Storage, Storage>> FakeConverter::storages() {
  std::lock_guard lock(memos_->mutex);
  return in_use(memos_->storages);
}

void FakeConverter::remember(const Tensor& real, const Tensor& fake) {
  std::lock_guard lock(memos_->mutex);
  sweep(memos_->tensors, memos_->tensor_limit);
  memos_->tensors.insert_or_assign(real.impl(),
                                   Converted<TensorImpl>{WeakPtr(real.pointer()), WeakPtr(fake.pointer())});
}

Tensor FakeConverter::find(const Tensor& real) {
  std::lock_guard lock(memos_->mutex);
  auto found = memos_->tensors.find(real.impl());
  if (found == memos_->tensors.end() || found->second.real.lock() != real.pointer()) return {};
  return Tensor(found->second.fake.lock());
}

void FakeConverter::clear() {
  std::lock_guard lock(memos_->mutex);
  memos_->tensors.clear();
  memos_->storages.clear();
  memos_->copies.clear();
}

Storage FakeConverter::fake_storage(const Storage& real, SymInt bytes, Device device) {
  auto found = memos_->storages.find(real.get());
  if (found != memos_->storages.end() && found->second.real.lock() == real)
    if (Storage fake = found->second.fake.lock()) return fake;
  Storage fake = StorageImpl::without_data(bytes, device);
  sweep(memos_->storages, memos_->storage_limit);
  memos_->storages.insert_or_assign(real.get(), Converted<StorageImpl>{WeakPtr(real), WeakPtr(fake)});
  return fake;
}

Tensor FakeConverter::copy_with_storage(const Tensor& real) {
  RunOnData scope;
  const Storage& original = real.storage();
  auto found = memos_->copies.find(original.get());
  Storage copy =
      found != memos_->copies.end() && found->second.real.lock() == original ? found->second.fake.lock() : nullptr;
  if (!copy) {
    copy = StorageImpl::allocate(original->bytes().guard_int(), real.device());
    std::memcpy(copy->data(), original->data(), static_cast<size_t>(original->bytes().guard_int()));
    sweep(memos_->copies, memos_->copy_limit);
    memos_->copies.insert_or_assign(original.get(), Converted<StorageImpl>{WeakPtr(original), WeakPtr(copy)});
  }
  Tensor out(make_counted<TensorImpl>(copy, real.dtype(), real.device(), DispatchKeySet(backend_key(real.device()))));
  out.impl()->set_geometry(real.sym_sizes(), real.sym_strides(), real.sym_storage_offset());
  out.impl()->set_conj(real.is_conj());
  out.impl()->set_neg(real.is_neg());
  return out;
}

Tensor FakeConverter::from_tensor(FakeModeImpl& mode, const Tensor& real, const SymbolicContext* context) {
  if (fake_mode_of(real) == &mode) return real;
  std::lock_guard lock(memos_->mutex);
  if (Tensor known = find(real); known.defined()) return known;
  if (const BatchedState* state = batched_state(real.impl(), nullptr)) {
    Tensor fake = make_batched(from_tensor(mode, state->value), state->dim, state->level);
    remember(real, fake);
    return fake;
  }
  if (real.keys().has(DispatchKey::Sparse)) return convert_sparse(mode, real);
  check<NotImplementedError>(real.layout() != Layout::Jagged, "a fake tensor of layout ", to_string(real.layout()),
                             " is not in Umbra yet");
  SymShape sizes(real.sym_sizes());
  // Another mode's tensor has metadata to go by, as a real one has; symbols are understood only where they were made.
  FakeModeImpl* other = real.is_symbolic() ? fake_mode_of(real) : &mode;
  check(other && (other == &mode || other->shape_env() == mode.shape_env()), "Mixing fake modes NYI");
  if (!context || !mode.shape_env() || real.is_symbolic())
    return convert(mode, real, sizes, real.sym_strides(), real.sym_storage_offset());
  auto symbol = [&](int64_t value, const std::string& place, const sym::SymbolOptions& options) {
    return mode.shape_env()->create_symbol(value, context->source + place, options);
  };
  auto at = [](const char* what, int64_t d) { return "." + std::string(what) + "()[" + std::to_string(d) + "]"; };
  for (int64_t d = 0; d < real.dim(); ++d) {
    bool given = !context->given.empty() && context->given.at(d);
    sizes[d] = given ? *context->given[d] : symbol(real.sizes()[d], at("size", d), context->dims.at(d));
  }
  if (context->strides.empty()) return from_tensor_with_sizes(mode, real, sizes);
  SymShape strides = symbolic_strides(
      real, sizes, [&](int64_t d) { return context->strides.at(d).has_value(); },
      [&](int64_t d) {
        return symbol(real.strides()[d], at("stride", d), context->strides[d].value_or(sym::SymbolOptions()));
      });
  bool fixed = std::all_of(sizes.begin(), sizes.end(), [](SymInt size) { return !size.is_symbolic(); });
  SymInt offset = real.sym_storage_offset();
  if (!fixed) offset = symbol(real.storage_offset(), ".storage_offset()", {.policy = sym::Policy::Dynamic});
  return convert(mode, real, sizes, strides, offset);
}

Tensor FakeConverter::from_tensor_with_sizes(FakeModeImpl& mode, const Tensor& real, SymIntArrayRef sizes) {
  SymShape strides = symbolic_strides(
      real, sizes, [](int64_t) { return false; }, [&](int64_t d) { return SymInt(real.strides()[d]); });
  return convert(mode, real, sizes, strides, real.sym_storage_offset());
}

Tensor FakeConverter::convert_sparse(FakeModeImpl& mode, const Tensor& real) {
  SparseParts parts = sparse_parts(real);
  for (Tensor* part : {&parts.indices, &parts.compressed, &parts.values})
    if (part->defined()) *part = from_tensor(mode, *part);
  Tensor fake = make_sparse(real.layout(), real.sym_sizes(), std::move(parts));
  if (real.requires_grad() && real.is_leaf()) fake.requires_grad_();
  remember(real, fake);
  return fake;
}

Tensor FakeConverter::convert(FakeModeImpl& mode, const Tensor& real, SymIntArrayRef sizes, SymIntArrayRef strides,
                              SymInt offset) {
  std::lock_guard lock(memos_->mutex);
  SymInt bytes =
      any_symbolic(sizes) ? storage_bytes(sizes, strides, offset, real.item_size()) : real.storage()->bytes();
  Tensor fake;
  {
    InferenceMode as_real(real.impl()->is_inference());
    fake = fake_over(mode, fake_storage(real.storage(), bytes, real.device()), real.dtype(), real.device());
  }
  fake.impl()->set_geometry(sizes, strides, offset);
  fake.impl()->set_conj(real.is_conj());
  fake.impl()->set_neg(real.is_neg());
  fake.impl()->set_wrapped_number(real.impl()->is_wrapped_number());
  if (const IntrusivePtr<TensorImpl>& base = real.impl()->view_base()) {
    fake.impl()->set_view_base(from_tensor(mode, Tensor(base)).pointer());
    fake.impl()->add_key(DispatchKey::Autograd);
  }
  if (real.requires_grad()) {
    if (real.is_leaf()) fake.requires_grad_();
    else if (real.impl()->view_base())
      fake.impl()->set_view_version(fake.impl()->version() - 1);  // it leads to the base
    else autograd::set_history(fake, make_counted<UnknownHistory>());
  }
  if (!mode.shape_env())
    if (std::optional<Scalar> number = readable_number(real)) make_data_state(mode, fake)->number = number;
  if (mode.options().propagate_real_tensors && real.storage()->has_data()) carry(mode, fake, copy_with_storage(real));
  remember(real, fake);
  if (Tensor gradient = real.grad(); gradient.defined()) fake.set_grad(from_tensor(mode, gradient));
  return fake;
}

}  // namespace umbra
