#include "umbra/transform/tracked.h"

#include <optional>

#include "autograd/forward_state.h"
#include "dispatch/layers.h"
#include "umbra/autograd/autocast.h"
#include "umbra/autograd/forward.h"
#include "umbra/autograd/grad_mode.h"
#include "umbra/core/sparse.h"
#include "umbra/dispatch/batching.h"

namespace umbra::transform {

namespace {

TrackedState& state_of(const TensorImpl* t) { return static_cast<TrackedState&>(*t->layer_state()); }

/// The wrapper shows what its value shows, after the value's metadata may have changed.
void copy_metadata(TensorImpl* to, const TensorImpl* from) {
  to->set_storage(from->storage());
  to->set_geometry(from->sym_sizes(), from->sym_strides(), from->sym_storage_offset());
  to->set_dtype(from->dtype());
  to->set_conj(from->is_conj());
  to->set_neg(from->is_neg());
  to->set_version_counter(from->version_counter());
}

}  // namespace

bool is_tracked(const TensorImpl* t) { return t->keys().has(DispatchKey::Tracked); }
Tensor value_behind(const Tensor& tensor) {
  if (const BatchedState* batched = batched_state(tensor.impl(), nullptr)) return batched->value;
  return is_tracked(tensor.impl()) ? state_of(tensor.impl()).value : Tensor();
}

bool is_ended(const TensorImpl* t) { return is_tracked(t) && state_of(t).level->ended(); }

Tensor value_if_ended(const Tensor& tensor) {
  Tensor t = tensor;
  while (is_ended(t.impl())) t = Tensor(state_of(t.impl()).value);
  return t;
}

// ---- the level ----

void TrackedLevel::on_begin() {
  grad_before_ = is_grad_enabled();
  visible_before_ = autograd::visible_level();
  inference_before_ = is_inference_mode_enabled();
  if (kind_ == Kind::Reverse) set_grad_enabled(true);
  else dual_level_ = autograd::enter_dual_level() + 1;
}

void TrackedLevel::on_end() {
  if (kind_ == Kind::Reverse) set_grad_enabled(grad_before_);
  else autograd::exit_dual_level(dual_level_ - 1);
}

bool TrackedLevel::in_inference() const { return is_inference_mode_enabled() && !inference_before_; }

bool TrackedLevel::owns(const TensorImpl* t) const { return is_tracked(t) && state_of(t).level.get() == this; }

bool TrackedLevel::differentiates(const TensorImpl* t) const {
  if (kind_ == Kind::Forward) return autograd::tangent_at(t, dual_level_) != nullptr;
  return Tensor(IntrusivePtr<TensorImpl>(const_cast<TensorImpl*>(t))).requires_grad();
}

Tensor TrackedLevel::unwrap(const Tensor& tensor) const {
  if (has_stand_ins() && tensor.defined()) {
    const Tensor& here = stand_in(tensor);
    if (!here.is_same(tensor)) return unwrap(here);
  }
  if (!tensor.defined() || !owns(tensor.impl())) return tensor;
  note(tensor);
  return state_of(tensor.impl()).value;
}

Tensor TrackedLevel::wrap(const Tensor& value, bool captured) const {
  if (has_stand_ins())
    if (const Tensor& here = stand_in(value); !here.is_same(value)) return here;
  require_strided(value, "a derivative");
  auto impl = make_counted<TensorImpl>(
      value.storage(), value.dtype(), value.device(),
      DispatchKeySet(DispatchKey::Level) | DispatchKey::Autograd | DispatchKey::Tracked | backend_key(value.device()));
  copy_metadata(impl.get(), value.impl());
  impl->set_inference(false);
  impl->set_wrapped_number(value.impl()->is_wrapped_number());
  impl->set_layer_state(
      make_counted<TrackedState>(value, IntrusivePtr<Level>(const_cast<TrackedLevel*>(this)), captured));
  return Tensor(std::move(impl));
}

namespace {

/// Whether the level differentiates any of the arguments.
bool is_differentiated(const Operator& op, const TrackedLevel& level, const Value* frame) {
  bool any = false;
  for (size_t i = 0; i < op.argument_count(); ++i)
    frame[i].each_tensor([&](const TensorImpl* t) { any |= level.owns(t) && level.differentiates(t); });
  return any;
}

/// An alias of a captured tensor may get contents that have no derivative (the statistics of a norm): others would be
/// lost to those who read the tensor.
void refuse_captured_write(const Operator& op, const TrackedLevel& level, const Value* frame) {
  if (!op.is_inplace() || !frame[0].is_tensor()) return;
  const TensorImpl* self = frame[0].tensor_ref().impl();
  bool may_be_written =
      level.owns(self) && !state_of(self).captured && (!state_of(self).alias || !is_differentiated(op, level, frame));
  check(may_be_written,
        "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation (",
        op.name(),
        ") that would mutate a captured Tensor. This is not supported; please rewrite the function being transformed "
        "to explicitly accept the mutated Tensor(s) as inputs.");
}

/// Puts a member back when a scope ends.
template <class T> struct Restore {
  T& place;
  T before;
  ~Restore() { place = before; }
};

}  // namespace

TrackedLevel::Outside TrackedLevel::outside_now() const {
  bool forward = kind_ == Kind::Forward;
  int visible = autograd::visible_level();
  return {dispatch_state(), is_grad_enabled() && (forward || grad_before_),
          forward ? std::min(visible_before_, visible) : visible};
}

void TrackedLevel::call(const Operator& op, Value* frame) {
  // Autocast stands below the levels, where its casts would be no part of the derivative.
  std::optional<ExcludeKeys> is_cast;
  if (dispatch_state().include.has(DispatchKey::Autocast) && autocast_ahead(op, frame))
    is_cast.emplace(DispatchKey::Autocast);
  refuse_captured_write(op, *this, frame);
  for (size_t i = 0; i < op.argument_count(); ++i) {
    bool foreign = false;
    frame[i].each_tensor([&](const TensorImpl* t) { foreign |= !owns(t); });
    bool captured = !op.has_tag(Tag::LiftsData);  // what a program makes of numbers is the function's own
    if (foreign)
      frame[i] = map_tensors(frame[i], [&](const Tensor& t) { return owns(t.impl()) ? t : wrap(t, captured); });
  }
  Restore<Outside> restore{outside_, outside_};
  outside_ = outside_now();
  std::optional<autograd::ShowLevels> without_tangents;
  if (kind_ == Kind::Forward && in_inference()) without_tangents.emplace(dual_level_ - 1);
  op.redispatch(DispatchKeySet(DispatchKey::Autograd) | DispatchKey::Tracked, frame);
}

// ---- the layer below autograd ----

namespace {

/// Runs with the level off the stack and the thread as it was when the call came to the level.
class LeaveLevel {
 public:
  explicit LeaveLevel(const TrackedLevel::Outside& outside)
      : outside_(outside), visible_(outside.visible_level), grad_(outside.grad) {}

 private:
  struct AsOutside {
    explicit AsOutside(const TrackedLevel::Outside& outside) { dispatch_state() = outside.state; }
  };
  SaveDispatchState save_;
  AsOutside outside_;
  WithoutLevel without_;
  autograd::ShowLevels visible_;
  SetGradEnabled grad_;
};

}  // namespace

void run_outside(const TrackedLevel::Outside& outside, const std::function<void()>& function) {
  LeaveLevel scope(outside);
  function();
}

namespace {

/// One call on the values behind wrappers.
class ValueCall {
 public:
  ValueCall(const Operator& op, const TrackedLevel& level, Value* frame) : op_(op), level_(level), frame_(frame) {}

  void run() {
    std::vector<Value> wrappers(op_.argument_count());
    for (size_t i = 0; i < op_.argument_count(); ++i) wrappers[i] = std::move(frame_[i]);
    arguments_ = std::move(wrappers);
    Frame inner(op_);
    for (size_t i = 0; i < op_.argument_count(); ++i)
      inner[i] = map_tensors(arguments_[i], [&](const Tensor& t) { return level_.unwrap(t); });
    {
      LeaveLevel outside(level_.outside());
      op_.call(inner.data());
    }
    for (size_t i = 0; i < op_.return_count(); ++i)
      frame_[i] = map_tensors(inner[i], [&](const Tensor& t) { return wrap_result(t); });
    if (op_.is_mutable()) show_writes();
    if (op_.is_view() && !op_.definition().not_differentiable && arguments_[0].is_tensor())
      note_view(arguments_[0].tensor_ref(), frame_[0]);
  }

 private:
  /// What was written, or given back as it is, keeps its wrapper.
  Tensor wrap_result(const Tensor& value) const {
    static const Operator& alias_of = get_operator("aten::alias");
    Tensor wrapper;
    bool captured = false, alias = false;
    for (const Value& v : arguments_)
      v.each_tensor([&](TensorImpl* t) {
        const TrackedState& state = state_of(t);
        if (state.value.is_same(value)) wrapper = Tensor(IntrusivePtr<TensorImpl>(t));
        captured |= op_.is_view() && state.captured;
        alias |= op_.is_view() && state.alias;
      });
    if (wrapper.defined()) return wrapper;
    bool apart = &op_ == &alias_of;
    wrapper = level_.wrap(value, captured && !apart);
    state_of(wrapper.impl()).alias = alias || (captured && apart);
    bool of_inference = op_.is_view() && arguments_[0].is_tensor() ? arguments_[0].tensor_ref().impl()->is_inference()
                                                                   : level_.in_inference();
    if (of_inference) wrapper.impl()->set_inference(true);
    return wrapper;
  }

  void show_writes() const {
    for (size_t i = 0; i < op_.argument_count(); ++i)
      if (op_.schema().arguments[i].alias.write)
        arguments_[i].each_tensor([](TensorImpl* t) { copy_metadata(t, state_of(t).value.impl()); });
  }

  const Operator& op_;
  const TrackedLevel& level_;
  Value* frame_;
  std::vector<Value> arguments_;
};

void tracked_layer(const Operator& op, DispatchKeySet, Value* frame) {
  const auto& stack = level_stack();
  auto* level = stack.empty() ? nullptr : dynamic_cast<const TrackedLevel*>(stack.back().get());
  check<AssertionError>(level, op.name(), ": a tensor of a transform is used where the transform does not run");
  ValueCall(op, *level, frame).run();
}

const RegisterLayer kTracked(DispatchKey::Tracked, tracked_layer);
const bool kEnded = (value_of_ended = value_if_ended, true);

}  // namespace

}  // namespace umbra::transform
