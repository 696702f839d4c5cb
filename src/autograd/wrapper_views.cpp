#include "autograd/wrapper_views.h"

#include "dispatch/layers.h"
#include "umbra/dispatch/dispatcher.h"

namespace umbra::autograd {

namespace {

bool has_handler(const TensorImpl* t) { return t->keys().has(DispatchKey::Subclass); }

/// The same call again, on another base.
struct Replay {
  const Operator& op;
  std::vector<Value> arguments;
  int output;
  ViewReplay parent;  // how the tensor that the view was taken of comes from the base

  Tensor operator()(const Tensor& base) const {
    Frame frame(op);
    for (size_t i = 1; i < arguments.size(); ++i) frame[i] = Value::borrow(arguments[i]);
    frame[0] = Value(parent ? parent(base) : base);
    op.call(frame.data());
    return frame[0].is_tensor_list() ? frame[0].tensor_list()[output] : frame[0].tensor();
  }
};

}  // namespace

void count_writes_together(TensorImpl* tensor, TensorImpl* other) {
  if (!tensor->version_counter()) {
    auto counter = make_counted<VersionCounter>();
    counter->version = tensor->version();
    tensor->set_version_counter(std::move(counter));
  }
  other->set_version_counter(tensor->version_counter());
}

const ViewReplay& replay_of(const Tensor& view) {
  static const ViewReplay none;
  const AutogradMeta* meta = meta_of(view.impl());
  return meta && meta->rare ? meta->rare->replay : none;
}

WrapperEffects::WrapperEffects(const Operator& op, const Value* frame) : op_(op) {
  if (op.is_view() && frame[0].is_tensor() && has_handler(frame[0].tensor_ref().impl())) {
    self_ = frame[0].tensor_ref().pointer();
    arguments_.assign(frame, frame + op.argument_count());
    arguments_[0] = Value();
  }
  for (size_t i = 0; i < op.argument_count(); ++i)
    if (op.schema().arguments[i].alias.write)
      frame[i].each_tensor([&](TensorImpl* t) {
        if (has_handler(t)) written_.push_back({IntrusivePtr<TensorImpl>(t), t->version()});
      });
}

void WrapperEffects::note(const Value* frame) const {
  for (const Written& w : written_)
    if (w.tensor->version() == w.version) w.tensor->bump_version();
  if (!self_ || self_->is_inference()) return;
  bool made_by_class = true;
  frame[0].each_tensor([&](TensorImpl* t) { made_by_class &= t != self_.get() && has_handler(t) && !t->view_base(); });
  if (!made_by_class) return;
  frame[0].each_tensor([&](TensorImpl* t) { count_writes_together(self_.get(), t); });
  if (op_.definition().not_differentiable) return;  // detach: the memory is shared, and nothing of the history
  note_view(Tensor(self_), frame[0]);
  int output = 0;
  frame[0].each_tensor([&](TensorImpl* t) {
    ensure_meta(t).rarely().replay = Replay{op_, arguments_, output++, replay_of(Tensor(self_))};
  });
}

}  // namespace umbra::autograd
