// Views and in-place changes. A change of a view is a change of its base: the base's history becomes "what it was, with
// this part replaced", and every other view of it finds its own history anew from there.
#include <array>
#include <mutex>

#include "autograd/meta.h"
#include "autograd/operator_node.h"
#include "autograd/wrapper_views.h"
#include "umbra/autograd/running.h"
#include "umbra/generated/functions.h"

namespace umbra::autograd {

namespace {

/// A tensor's place in its storage and how its elements are read; no memory is held.
struct Geometry {
  SymShape sizes, strides;
  SymInt offset;
  DType dtype;
  bool conj, neg;

  explicit Geometry(const Tensor& t)
      : sizes(t.sym_sizes()),
        strides(t.sym_strides()),
        offset(t.sym_storage_offset()),
        dtype(t.dtype()),
        conj(t.is_conj()),
        neg(t.is_neg()) {}
};

/// Takes the view of a tensor that `view` was of `base`. The tensor has the base's sizes and strides, maybe another
/// offset.
Tensor replay_view(const Tensor& on, const Geometry& base, const Geometry& view) {
  Tensor t = on;
  if (view.conj != base.conj && is_complex(base.dtype)) t = _conj(t);
  SymInt scale = 1;
  if (is_complex(base.dtype) && !is_complex(view.dtype)) {
    t = view_as_real(t);
    scale = 2;
  }
  if (view.neg != base.neg) t = _neg_view(t);
  SymShape sizes = view.sizes, strides = view.strides;
  SymInt offset = view.offset;
  bool to_complex = !is_complex(base.dtype) && is_complex(view.dtype);
  if (to_complex) {
    for (SymInt& s : strides) s *= 2;
    sizes.push_back(2);
    strides.push_back(1);
    offset *= 2;
  }
  t = as_strided(t, sizes, strides, offset - base.offset * scale + t.sym_storage_offset());
  if (!to_complex) return t;
  t = view_as_complex(t);
  return view.conj ? _conj(t) : t;
}

/// The history of a base of which a part was written through a view.
class CopySlices final : public Node {
 public:
  CopySlices(const Tensor& base, const Tensor& view, IntrusivePtr<Node> change)
      : base_(base), view_(view), replay_(replay_of(view)), change_(std::move(change)) {
    std::vector<Edge> edges = change_->next_edges();
    edges.at(0) = gradient_edge(base);
    change_->set_next_edges(edges);  // it asks its own edges what is wanted
    set_next_edges(std::move(edges));
  }

  std::string name() const override { return "CopySlices"; }
  const Geometry& base() const { return base_; }

  Gradients apply(Gradients incoming) override {
    Gradients out(next_edges().size());
    const Tensor& gradient = incoming[0];
    if (!gradient.defined()) return out;
    Tensor result = gradient.new_empty_strided(base_.sizes, base_.strides);
    result.copy_(gradient);
    Tensor part = replay_ ? replay_(result) : replay_view(result, base_, view_);
    out = change_->apply({part.clone()});
    if (!needs(0)) return out;
    if (out[0].defined()) part.copy_(out[0]);
    else part.zero_();
    out[0] = result;
    return out;
  }

  void release_saved() override { change_->release_saved(); }

 protected:
  void release_resources() override {
    release_iteratively(std::move(change_));
    Node::release_resources();
  }

 private:
  Geometry base_, view_;
  ViewReplay replay_;
  IntrusivePtr<Node> change_;
};

/// The node of as_strided from a base to a view, made without running it: what runs is recorded by the layers below.
IntrusivePtr<Node> strided_node(Edge base_edge, const Geometry& base, const Tensor& view) {
  static const Operator& op = get_operator("aten::as_strided");
  auto node = make_counted<OperatorNode>(op, plan_for(op));
  node->set_needed(1);
  node->add_edge(std::move(base_edge));
  Tensor stand_in = alias_tensor(view, base.sizes, base.strides, base.offset);
  Value frame[4] = {Value::borrow(stand_in), Value::borrow(view.sym_sizes()), Value::borrow(view.sym_strides()),
                    Value(view.sym_storage_offset())};
  node->save_arguments(frame);
  node->add_input(InputMetadata(view));
  return node;
}

/// The node that leads from a view to its base; `base_tensor` is only used where strides alone do not say what the view
/// is.
IntrusivePtr<Node> node_to_base(Edge base_edge, const Tensor& base_tensor, const Geometry& base, const Tensor& view) {
  if (const ViewReplay& replay = replay_of(view)) {
    EnableGrad guard;
    return grad_fn(replay(base_tensor));
  }
  if (base.dtype == view.dtype() && base.conj == view.is_conj() && base.neg == view.is_neg())
    return strided_node(std::move(base_edge), base, view);
  EnableGrad guard;
  return grad_fn(replay_view(base_tensor, base, Geometry(view)));
}

/// What a view's history is from now on; a gradient that the tensor keeps is that of the new one. Gives the old one
/// back.
IntrusivePtr<Node> exchange_history(TensorImpl* view, const IntrusivePtr<Node>& node) {
  AutogradMeta& meta = ensure_meta(view);
  if (meta.retains_grad) {
    if (meta.grad_fn) meta.grad_fn->stop_retaining(view);
    node->retain_grad(0, WeakPtr<TensorImpl>(IntrusivePtr<TensorImpl>(view)));
  }
  meta.output_number = 0;
  view->set_view_version(view->version());
  return std::exchange(meta.grad_fn, node);
}

/// Views are many and disputes rare: a few locks serve them all.
std::mutex& mutex_of(const TensorImpl* view) {
  static std::array<std::mutex, 16> mutexes;
  return mutexes[reinterpret_cast<uintptr_t>(view) / alignof(std::max_align_t) % mutexes.size()];
}

[[noreturn]] void refuse_view(const Tensor& view, bool indirect) {
  const char* happened =
      indirect ? "its base or another view of its base has been modified inplace" : "is being modified inplace";
  ViewKind kind = view.impl()->view_kind();
  const AutogradMeta* meta = meta_of(view.impl());
  std::string text;
  const char* origin = kind == ViewKind::NoGrad      ? "no_grad mode"
                       : kind == ViewKind::Inference ? "inference mode"
                                                     : nullptr;
  const char* now = kind == ViewKind::Inference ? " in normal mode" : " with grad mode enabled";
  if (meta && meta->grad_fn && origin)
    text = concat("Output ", meta->output_number, " of ", forward_name(*meta->grad_fn),
                  " is a view of a view which was created in ", origin, " and ", happened, now, ". ");
  else if (meta && meta->grad_fn)
    text =
        concat("Output ", meta->output_number, " of ", forward_name(*meta->grad_fn), " is a view and ", happened, ". ");
  else text = concat("A view was created in ", origin ? origin : "no_grad mode", " and ", happened, now, ". ");
  if (kind == ViewKind::MultiOutput)
    fail(text,
         "This view is the output of a function that returns multiple views. Such functions do not allow the output "
         "views to be "
         "modified inplace. You should replace the inplace operation by an out-of-place one.");
  if (kind == ViewKind::CustomFunction)
    fail(text,
         "This view was created inside a custom Function (or because an input was returned as-is) and the autograd "
         "logic to handle "
         "view+inplace would override the custom backward associated with the custom Function, leading to incorrect "
         "gradients. This "
         "behavior is forbidden. You can fix this by cloning the output of the custom Function.");
  const char* mode = kind == ViewKind::Inference ? "inference_mode" : "no_grad";
  fail(text,
       "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving "
       "both the view "
       "and the inplace either both inside the ",
       mode,
       " block (if you don't want the inplace to be tracked) or both outside (if you want "
       "the inplace to be tracked).");
}

}  // namespace

Tensor same_view(const Tensor& on, const Tensor& base, const Tensor& view) {
  if (const ViewReplay& replay = replay_of(view)) return replay(on);
  return replay_view(on, Geometry(base), Geometry(view));
}

Edge view_history(const Tensor& view) {
  TensorImpl* impl = view.impl();
  const Tensor base(impl->view_base());
  // Both the first look and the result are under the lock; what lies between may call users' code, which must not be.
  std::mutex& mutex = mutex_of(impl);
  auto known = [&]() -> Edge {
    const AutogradMeta* meta = meta_of(impl);
    return meta ? Edge{meta->grad_fn, meta->output_number} : Edge();
  };
  {
    std::lock_guard lock(mutex);
    if (impl->view_version() == impl->version() || !has_own_history(base.impl())) return known();
    if (impl->view_kind() != ViewKind::Plain) refuse_view(view, true);
  }
  IntrusivePtr<Node> found = node_to_base(gradient_edge(base), base, Geometry(base), view), before;
  {
    std::lock_guard lock(mutex);
    if (impl->view_version() == impl->version()) return known();  // another thread was first
    before = exchange_history(impl, found);
  }
  release_iteratively(std::move(before));
  return {std::move(found), 0};
}

IntrusivePtr<Node> view_node_of(const IntrusivePtr<Node>& base_node, const Tensor& view) {
  check<NotImplementedError>(!view.impl()->keys().has(DispatchKey::Subclass),
                             "a second derivative through an in-place change of a view of a tensor subclass");
  const Geometry& geometry = static_cast<const CopySlices&>(*base_node).base();
  Tensor base = alias_tensor(view, geometry.sizes, geometry.strides, geometry.offset);
  base.impl()->set_dtype(geometry.dtype);
  base.impl()->set_conj(geometry.conj);
  base.impl()->set_neg(geometry.neg);
  AutogradMeta& meta = ensure_meta(base.impl());
  meta.grad_fn = base_node;
  return node_to_base({base_node, 0}, base, geometry, view);
}

void write_once(Tensor to, Tensor contents) {
  for (int64_t d = 0; d < to.dim(); ++d) {
    if (!(to.sym_strides()[d] == SymInt(0)) || to.sym_sizes()[d] == SymInt(0)) continue;
    to = to.narrow(d, 0, 1);
    contents = contents.narrow(d, 0, 1);
  }
  to.copy_(contents);
}

void check_inplace(const Tensor& tensor) {
  TensorImpl* impl = tensor.impl();
  if (impl->view_base()) {
    if (impl->view_kind() != ViewKind::Plain) refuse_view(tensor, false);
    // A view of what requires nothing may be a leaf itself; so then is what its own views would write to.
    const AutogradMeta* base = meta_of(impl->view_base().get());
    check((base && base->grad_fn) || !requires_grad(impl),
          "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  }
  const AutogradMeta* meta = meta_of(impl);
  check(!meta || !meta->requires_grad, "a leaf Variable that requires grad is being used in an in-place operation.");
}

void rebase_history(const Tensor& tensor, const IntrusivePtr<Node>& node) {
  TensorImpl* impl = tensor.impl();
  if (!impl->view_base()) return set_history(tensor, node);
  Tensor base(impl->view_base());
  node->add_input(InputMetadata(tensor));
  note_recorded(*node);
  set_history(base, make_counted<CopySlices>(base, tensor, node));
  // The version tells the other views; this one need not wait until someone asks.
  release_iteratively(exchange_history(impl, node_to_base(gradient_edge(base), base, Geometry(base), tensor)));
}

}  // namespace umbra::autograd
