#include "umbra/capture/functionalize.h"

#include "umbra/generated/functions.h"

namespace umbra {

namespace {

constexpr DispatchKeySet kKey = DispatchKey::Functionalize;

// Whose wrappers the code means: null are those of FunctionalMode, else those of a level of transforms.
thread_local IntrusivePtr<RefCounted> g_level;
class OfLevel {
 public:
  explicit OfLevel(IntrusivePtr<RefCounted> level) : before_(std::exchange(g_level, std::move(level))) {}
  ~OfLevel() { g_level = std::move(before_); }
  OfLevel(const OfLevel&) = delete;

 private:
  IntrusivePtr<RefCounted> before_;
};

bool is_wrapper(const Tensor& t) {
  if (!t.defined()) return false;
  return g_level ? functional_level::owns(t.impl(), g_level.get()) : is_functional(t);
}

FunctionalState& state_of(const TensorImpl* impl) { return *static_cast<FunctionalState*>(impl->layer_state().get()); }

// A wrapper shows the geometry of its value. Wrappers of one base share an empty storage: aliasing can be told as for
// any tensor.
Tensor make_wrapper(const Tensor& value, Storage storage, IntrusivePtr<FunctionalState> state) {
  DispatchKeySet key = g_level ? DispatchKey::Level : DispatchKey::Functionalize;
  auto impl =
      make_counted<TensorImpl>(std::move(storage), value.dtype(), value.device(), key | backend_key(value.device()));
  state->level = g_level;
  impl->set_geometry(value.sym_sizes(), value.sym_strides(), value.sym_storage_offset());
  impl->set_conj(value.is_conj());
  impl->set_neg(value.is_neg());
  impl->set_layer_state(std::move(state));
  return Tensor(std::move(impl));
}

Tensor apply_view(const ViewStep& step, const Tensor& to) {
  Frame frame(*step.op);
  frame[0] = Value::borrow(to);
  for (size_t i = 1; i < step.op->argument_count(); ++i) frame[i] = Value::borrow(step.arguments[i]);
  step.op->call(frame.data());
  return step.output < 0 ? frame[0].take_tensor() : frame[0].tensor_list()[step.output];
}

Tensor invert_view(const ViewStep& step, const Tensor& base, const Tensor& written) {
  const BoxedFunction& inverse = step.op->definition().view_inverse;
  if (!inverse) {
    Tensor view = apply_view(step, base);
    return as_strided_scatter(base, written, view.sym_sizes(), view.sym_strides(), view.sym_storage_offset());
  }
  std::vector<Value> frame{Value(base), Value(written), Value(std::max<int64_t>(step.output, 0))};
  for (size_t i = 1; i < step.op->argument_count(); ++i) frame.push_back(step.arguments[i]);
  inverse(frame.data());
  return frame[0].take_tensor();
}

const Tensor& current_value(FunctionalState& state) {
  if (state.generation != state.base->generation) {
    Tensor value = state.base->value;
    for (const ViewStep& step : state.views) value = apply_view(step, value);
    state.value = std::move(value);
    state.generation = state.base->generation;
  }
  return state.value;
}

// Carries new contents of a view back into its base.
void write_value(const Tensor& wrapper, Tensor value) {
  FunctionalState& state = state_of(wrapper.impl());
  if (value.dtype() != wrapper.dtype()) value = _to_copy(value, {.dtype = wrapper.dtype()});
  std::vector<Tensor> bases{state.base->value};
  for (const ViewStep& step : state.views)
    if (bases.size() < state.views.size()) bases.push_back(apply_view(step, bases.back()));
  Tensor written = value;
  for (size_t i = state.views.size(); i-- > 0;) written = invert_view(state.views[i], bases[i], written);
  state.base->value = std::move(written);
  state.generation = ++state.base->generation;
  state.value = std::move(value);
}

Tensor unwrap(const Tensor& t) { return is_wrapper(t) ? current_value(state_of(t.impl())) : t; }

Value unwrap_value(const Value& v) {
  if (v.is_tensor()) return Value(unwrap(v.tensor_ref()));
  if (v.is_tensor_list()) {
    std::vector<Tensor> list = v.tensor_list().vec();
    for (Tensor& t : list) t = unwrap(t);
    return Value(std::move(list));
  }
  return v;
}

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

// ---- the three kinds of calls ----

Tensor wrap_view(const Tensor& self, const Tensor& value, ViewStep step) {
  FunctionalState& from = state_of(self.impl());
  auto state = make_counted<FunctionalState>();
  state->base = from.base;
  state->views = from.views;
  state->views.push_back(std::move(step));
  state->value = value;
  state->generation = from.base->generation;
  Tensor out = make_wrapper(value, self.storage(), std::move(state));
  const IntrusivePtr<TensorImpl>& base = self.impl()->view_base() ? self.impl()->view_base() : self.pointer();
  if (value.is_view()) {
    out.impl()->set_view_base(base, value.impl()->view_kind());
    out.impl()->add_key(DispatchKey::Autograd);
  }
  return out;
}

void call_view(const Operator& op, Value* frame) {
  Tensor self = frame[0].tensor();
  if (!is_wrapper(self))
    return op.call(frame);  // of a tensor outside the program, and outside it as well: writing it is refused
  std::vector<Value> arguments(op.argument_count());
  for (size_t i = 1; i < op.argument_count(); ++i) arguments[i] = frame[i];
  Frame inner(op);
  for (size_t i = 0; i < op.argument_count(); ++i) inner[i] = unwrap_value(frame[i]);
  op.call(inner.data());
  if (inner[0].is_tensor()) {
    frame[0] = Value(wrap_view(self, inner[0].tensor_ref(), {&op, std::move(arguments), -1}));
  } else {
    std::vector<Tensor> parts;
    int64_t which = 0;
    for (const Tensor& part : inner[0].tensor_list()) parts.push_back(wrap_view(self, part, {&op, arguments, which++}));
    frame[0] = Value(std::move(parts));
  }
}

void call_mutable(const Operator& op, Value* frame) {
  const Operator* functional = op.functional_form();
  check<NotImplementedError>(functional, op.name(),
                             " writes its arguments and has no functional form: it cannot be captured");
  std::vector<Tensor> written;
  const auto& arguments = op.schema().arguments;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].alias.write)
      frame[i].each_tensor([&](TensorImpl* t) { written.emplace_back(IntrusivePtr<TensorImpl>(t)); });
  for (const Tensor& t : written)
    check(is_wrapper(t), op.name(),
          ": a tensor that is not part of the captured program (a constant) is written; make it an input");
  Frame inner(std::max(op.frame_size(), functional->frame_size()));
  for (size_t i = 0; i < functional->argument_count(); ++i) inner[i] = unwrap_value(frame[i]);
  functional->call(inner.data());
  // First the results that are values of their own, then the new contents of what is written.
  size_t own = functional->return_count() - written.size();
  std::vector<Value> results;
  for (size_t i = 0; i < own; ++i) results.push_back(wrap_value(inner[i]));
  for (size_t i = 0; i < written.size(); ++i) {
    write_value(written[i], inner[own + i].take_tensor());
    // As with data: batch_norm, which returns values of its own, changes its running statistics without counting.
    if (own == 0) written[i].impl()->bump_version();
    if (results.size() < op.return_count()) results.push_back(Value(written[i]));
  }
  for (size_t i = 0; i < results.size(); ++i) frame[i] = std::move(results[i]);
}

void call_plain(const Operator& op, Value* frame) {
  Frame inner(op);
  for (size_t i = 0; i < op.argument_count(); ++i) inner[i] = unwrap_value(frame[i]);
  op.call(inner.data());
  for (size_t i = 0; i < op.return_count(); ++i) frame[i] = wrap_value(inner[i]);
}

void call_functional(const Operator& op, Value* frame) {
  if (op.is_view() && !op.has_tag(Tag::LiftsData)) call_view(op, frame);
  else if (op.is_mutable()) call_mutable(op, frame);
  else call_plain(op, frame);
}

void functionalize_layer(const Operator& op, DispatchKeySet keys, Value* frame) {
  // A user's tensor class is taken apart by its own handler, whose calls come back here.
  if (keys.has(DispatchKey::Subclass)) return pass_to_subclass(op, keys, frame);
  ExcludeKeys off(kKey | DispatchKey::Autograd);
  OfLevel mode(nullptr);
  call_functional(op, frame);
}

const RegisterLayer kFunctionalize(DispatchKey::Functionalize, functionalize_layer);

}  // namespace

bool is_functional(const Tensor& tensor) {
  return tensor.defined() && tensor.impl()->keys().has(DispatchKey::Functionalize);
}

Tensor to_functional(const Tensor& value) {
  auto state = make_counted<FunctionalState>();
  state->base = make_counted<FunctionalBase>(value);
  state->value = value;
  return make_wrapper(value, StorageImpl::without_data(value.storage()->bytes(), value.device()), std::move(state));
}

Tensor from_functional(const Tensor& wrapper) {
  ExcludeKeys off(kKey);
  return unwrap(wrapper);
}

bool was_written(const Tensor& wrapper) {
  return is_functional(wrapper) && state_of(wrapper.impl()).base->generation > 0;
}

Tensor replay_views(const Tensor& base, const std::vector<ViewStep>& steps) {
  Tensor value = base;
  for (const ViewStep& step : steps) value = apply_view(step, value);
  return value;
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
  return umbra::unwrap(tensor);
}

void call(const Operator& op, Value* frame, const IntrusivePtr<RefCounted>& level) {
  OfLevel scope(level);
  call_functional(op, frame);
}

bool was_written(const Tensor& wrapper) { return state_of(wrapper.impl()).base->generation > 0; }

}  // namespace functional_level

}  // namespace umbra
