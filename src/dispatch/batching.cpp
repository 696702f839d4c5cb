#include "umbra/dispatch/batching.h"

#include "umbra/core/sparse.h"

namespace umbra {

namespace {
thread_local BatchScope g_scope;
}

const BatchScope& batch_scope() { return g_scope; }

EnterBatchScope::EnterBatchScope(BatchScope scope) : before_(std::exchange(g_scope, std::move(scope))) {}
EnterBatchScope::~EnterBatchScope() { g_scope = std::move(before_); }

const BatchedState* batched_state(const TensorImpl* tensor, const RefCounted* level) {
  // Tensors that a transform differentiates have the key too, and another state.
  if (!tensor->keys().has(DispatchKey::Level) || tensor->keys().has(DispatchKey::Tracked)) return nullptr;
  auto* state = dynamic_cast<const BatchedState*>(tensor->layer_state().get());
  return state && (!level || state->level.get() == level) ? state : nullptr;
}

Tensor make_batched(const Tensor& value, int64_t dim, IntrusivePtr<RefCounted> level) {
  require_strided(value, "vmap");
  const Device device = value.device();
  auto impl = make_counted<TensorImpl>(StorageImpl::without_data(value.storage()->bytes(), device), value.dtype(),
                                       device, DispatchKeySet(DispatchKey::Level) | backend_key(device));
  SymShape sizes(value.sym_sizes()), strides(value.sym_strides());
  sizes.erase(static_cast<size_t>(dim));
  strides.erase(static_cast<size_t>(dim));
  impl->set_geometry(sizes, strides, value.sym_storage_offset());
  impl->set_conj(value.is_conj());
  impl->set_neg(value.is_neg());
  impl->set_layer_state(make_counted<BatchedState>(value, dim, std::move(level)));
  return Tensor(std::move(impl));
}

Batched Batched::of(const Tensor& argument) {
  const BatchedState* state = argument.defined() ? batched_state(argument.impl(), g_scope.level.get()) : nullptr;
  return state ? Batched(state->value, state->dim) : Batched(argument, -1);
}

Tensor Batched::wrap() const { return is_batched() && defined() ? make_batched(value, dim, g_scope.level) : value; }

}  // namespace umbra
