#include "capture/functional_wrappers.h"

#include "capture/functional_values.h"
#include "dispatch/layers.h"
#include "umbra/generated/functions.h"

namespace umbra {

using namespace functional;

namespace {
constexpr DispatchKeySet kKey = DispatchKey::Functionalize;

thread_local IntrusivePtr<RefCounted> g_level;
}  // namespace

namespace functional {

OfLevel::OfLevel(IntrusivePtr<RefCounted> level) : before_(std::exchange(g_level, std::move(level))) {}
OfLevel::~OfLevel() { g_level = std::move(before_); }
const RefCounted* current_level() { return g_level.get(); }

bool is_wrapper(const Tensor& t) {
  if (!t.defined()) return false;
  return g_level ? functional_level::owns(t.impl(), g_level.get()) : is_functional(t);
}

void renew_history(const Tensor& t) {
  FunctionalState& state = state_of(t.impl());
  if (state.history == t.version()) return;
  state.history = t.version();
  if (g_level || !t.is_view() || !is_grad_enabled() || !t.requires_grad()) return;
  Tensor root(t.impl()->view_base());
  if (!is_wrapper(root)) return;
  FunctionalState& from = state_of(root.impl());
  if (from.base != state.base || from.views.size() >= state.views.size()) return;
  std::vector<ViewStep> steps(state.views.begin() + static_cast<ptrdiff_t>(from.views.size()), state.views.end());
  const Tensor& value = current_value(from);
  if (lies_as_shown(*from.base)) replay_views(value, steps);
}

Tensor unwrap(const Tensor& t) {
  if (!is_wrapper(t)) return t;
  renew_history(t);
  return current_value(state_of(t.impl()));
}

Value unwrap_value(const Value& v) {
  if (v.is_tensor()) return Value(unwrap(v.tensor_ref()));
  if (v.is_tensor_list()) {
    std::vector<Tensor> list = v.tensor_list().vec();
    for (Tensor& t : list) t = unwrap(t);
    return Value(std::move(list));
  }
  return v;
}

bool is_sparse_tensor(const Tensor& t) { return t.defined() && t.keys().has(DispatchKey::Sparse); }

Value wrap_value(const Value& v) {
  if (v.is_tensor()) return Value(to_functional(v.tensor_ref()));
  if (v.is_tensor_list()) {
    std::vector<Tensor> list = v.tensor_list().vec();
    for (Tensor& t : list)
      if (t.defined()) t = to_functional(t);
    return Value(std::move(list));
  }
  return v;
}

}  // namespace functional

bool is_functional(const Tensor& tensor) {
  return tensor.defined() && tensor.impl()->keys().has(DispatchKey::Functionalize);
}

void FunctionalBase::show(const Tensor& wrapper, const Tensor& first_value) {
  origin = first_value;
  shown = spec_of(wrapper);
  offset = wrapper.sym_storage_offset();
  conj = wrapper.is_conj();
  neg = wrapper.is_neg();
}

// A wrapper shows the geometry of its first value. Views of it share its empty storage: aliasing can be told as for any
// tensor.
Tensor to_functional(const Tensor& value) {
  if (is_sparse_tensor(value)) return value;  // its parts are never written, so it is its own value
  auto impl = make_counted<TensorImpl>(
      StorageImpl::without_data(value.storage()->bytes(), value.device()), value.dtype(), value.device(),
      (g_level ? DispatchKeySet(DispatchKey::Level) : kKey) | backend_key(value.device()));
  impl->set_geometry(value.sym_sizes(), value.sym_strides(), value.sym_storage_offset());
  impl->set_conj(value.is_conj());
  impl->set_neg(value.is_neg());
  Tensor wrapper(std::move(impl));
  auto state = make_counted<FunctionalState>();
  state->base = make_counted<FunctionalBase>(value);
  state->base->show(wrapper, value);
  state->value = value;
  state->level = g_level;
  wrapper.impl()->set_layer_state(std::move(state));
  return wrapper;
}

/// What is inside a wrapper is computed below the layer that would put the wrapper in its place.
constexpr DispatchKeySet kOutside = DispatchKeySet(kKey) | DispatchKey::Lift;

Tensor from_functional(const Tensor& wrapper) {
  ExcludeKeys off(kOutside);
  return unwrap(wrapper);
}

Tensor from_functional_as_shown(const Tensor& wrapper) {
  ExcludeKeys off(kOutside);
  Tensor value = unwrap(wrapper);
  if (value.sym_strides() == wrapper.sym_strides() || !wrapper.is_non_overlapping_and_dense()) return value;
  return value.new_empty_strided(wrapper.sym_sizes(), wrapper.sym_strides()).copy(value);
}

void set_contents(const Tensor& wrapper, const Tensor& value) {
  ExcludeKeys off(kOutside);
  write_value(wrapper, value);
}

bool was_written(const Tensor& wrapper) {
  return is_functional(wrapper) && state_of(wrapper.impl()).base->generation > 0;
}

const FunctionalState& functional_state(const Tensor& wrapper) {
  check(is_functional(wrapper), "not a functional tensor");
  return state_of(wrapper.impl());
}

namespace functional_level {

Tensor wrap(const Tensor& value, const IntrusivePtr<RefCounted>& level) {
  OfLevel scope(level);
  return to_functional(value);
}

bool owns(const TensorImpl* tensor, const RefCounted* level) {
  if (!tensor->keys().has(DispatchKey::Level) || tensor->keys().has(DispatchKey::Tracked)) return false;
  auto* state = dynamic_cast<const FunctionalState*>(tensor->layer_state().get());
  return state && state->level.get() == level;
}

Tensor unwrap(const Tensor& tensor, const IntrusivePtr<RefCounted>& level) {
  OfLevel scope(level);
  return functional::unwrap(tensor);
}

// A sparse tensor is its own value and has no state of a wrapper.
bool was_written(const Tensor& wrapper) {
  return !is_sparse_tensor(wrapper) && state_of(wrapper.impl()).base->generation > 0;
}
bool became_view(const Tensor& wrapper) {
  return !is_sparse_tensor(wrapper) && !state_of(wrapper.impl()).views.empty();
}

}  // namespace functional_level

}  // namespace umbra
