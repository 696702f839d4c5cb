// What a tensor knows of its history, and the members of Tensor that tell it.
#include <mutex>

#include "autograd/accumulate.h"
#include "autograd/meta.h"
#include "autograd/user_code.h"
#include "autograd/wrapper_views.h"
#include "umbra/autograd/running.h"
#include "umbra/core/print.h"
#include "umbra/core/sparse.h"
#include "umbra/generated/functions.h"

namespace umbra::autograd {

AutogradMeta::~AutogradMeta() { release_iteratively(std::move(grad_fn)); }

AutogradMeta& ensure_meta(TensorImpl* t) {
  if (!t->autograd_meta()) {
    t->set_autograd_meta(std::make_unique<AutogradMeta>());
    if (!t->keys().has(DispatchKey::Autograd)) t->add_key(DispatchKey::Autograd);
  }
  return *meta_of(t);
}

bool is_observed(const Tensor& tensor) {
  constexpr DispatchKeySet observers = DispatchKeySet(DispatchKey::Proxy) | DispatchKey::Functionalize |
                                       DispatchKey::UserMode | DispatchKey::Subclass | DispatchKey::Level;
  const DispatchState& state = dispatch_state();
  // What a transform tracks is a wrapper of its own: another one of the same value is no call.
  return !tensor.keys().has(DispatchKey::Tracked) &&
         !(((tensor.keys() | state.include) - state.exclude) & observers).empty();
}

Tensor share_data(const Tensor& tensor) {
  if (is_observed(tensor)) {
    ExcludeKeys guard(DispatchKey::Autograd);
    Tensor out = tensor.detach();
    bool made_by_class = out.keys().has(DispatchKey::Subclass) && !out.is_same(tensor);
    if (made_by_class && !out.impl()->is_inference()) count_writes_together(tensor.impl(), out.impl());
    return out;
  }
  Tensor out = alias_tensor(tensor, tensor.sym_sizes(), tensor.sym_strides(), tensor.sym_storage_offset());
  if (!out.impl()->is_inference()) out.impl()->remove_key(DispatchKey::Autograd);
  return out;
}

IntrusivePtr<Node> grad_fn(const Tensor& tensor) {
  if (tensor.impl()->view_base()) return view_history(tensor).node;
  const AutogradMeta* meta = meta_of(tensor.impl());
  return meta ? meta->grad_fn : nullptr;
}

uint32_t output_number(const Tensor& tensor) {
  if (tensor.impl()->view_base()) return view_history(tensor).input;
  const AutogradMeta* meta = meta_of(tensor.impl());
  return meta ? meta->output_number : 0;
}

namespace {

// Two threads may use the same parameter at once, and must find the same accumulator.
IntrusivePtr<Node> accumulator_of(const Tensor& leaf, AutogradMeta& meta) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  WeakPtr<Node>& kept = meta.rarely().accumulator;
  // One that was made before the leaf got other sizes (by set_, say) expects gradients of the old ones.
  if (IntrusivePtr<Node> existing = kept.lock(); existing && existing->inputs()[0].sizes == leaf.sym_sizes())
    return existing;
  IntrusivePtr<Node> made = make_counted<AccumulateGrad>(leaf);
  kept = WeakPtr<Node>(made);
  return made;
}

}  // namespace

Edge gradient_edge(const Tensor& tensor) {
  AutogradMeta* meta = meta_of(tensor.impl());
  if (tensor.impl()->view_base()) {
    if (Edge edge = view_history(tensor)) return edge;
    meta = meta_of(tensor.impl());
  } else if (meta && meta->grad_fn) {
    return {meta->grad_fn, meta->output_number};
  }
  return meta && meta->requires_grad ? Edge{accumulator_of(tensor, *meta), 0} : Edge();
}

void set_history(const Tensor& tensor, const IntrusivePtr<Node>& node) {
  note_recorded(*node);
  TensorImpl* impl = tensor.impl();
  AutogradMeta& meta = ensure_meta(impl);
  if (meta.retains_grad && meta.grad_fn) meta.grad_fn->stop_retaining(impl);
  meta.output_number = node->add_input(InputMetadata(tensor));
  release_iteratively(std::exchange(meta.grad_fn, node));
  meta.requires_grad = false;
  if (impl->view_base()) impl->set_view_version(impl->version());
  if (meta.retains_grad) node->retain_grad(meta.output_number, WeakPtr<TensorImpl>(tensor.pointer()));
}

void cut_history(const Tensor& tensor) {
  AutogradMeta* meta = meta_of(tensor.impl());
  if (!meta) return;
  if (meta->retains_grad && meta->grad_fn) meta->grad_fn->stop_retaining(tensor.impl());
  release_iteratively(std::move(meta->grad_fn));
  meta->grad_fn = nullptr;
  meta->requires_grad = meta->retains_grad = false;
  meta->output_number = 0;
  if (meta->rare) meta->rare->tangents.clear();
}

Tensor data_of(const Tensor& tensor) {
  // A tracer above autograd does not see what is saved there, but it has to see this.
  const DispatchState& state = dispatch_state();
  bool recorded_above = state.include.has(DispatchKey::PreProxy) && !state.exclude.has(DispatchKey::PreProxy);
  Tensor out = recorded_above ? tensor.detach() : share_data(tensor);
  auto counter = make_counted<VersionCounter>();
  out.impl()->set_version_counter(std::move(counter));
  return out;
}

void set_data(const Tensor& tensor, const Tensor& data) {
  TensorImpl* to = tensor.impl();
  TensorImpl* from = data.impl();
  AutogradMeta* meta = meta_of(to);
  bool same_layout = tensor.layout() == data.layout() || (!is_sparse(tensor.layout()) && !is_sparse(data.layout()));
  check(same_layout,
        "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type.");
  check(!requires_grad(to) || is_differentiable(data.dtype()),
        "data set to a tensor that requires gradients must be floating point or complex dtype");
  bool tracked = to->keys().has(DispatchKey::Autograd);
  if (!to->version_counter()) {  // the tensor's own writes are what it goes on counting
    auto counter = make_counted<VersionCounter>();
    counter->version = to->version();
    to->set_version_counter(std::move(counter));
  }
  to->set_storage(from->storage());
  to->set_geometry(from->sym_sizes(), from->sym_strides(), from->sym_storage_offset());
  to->set_dtype(from->dtype());
  to->set_device(from->device());
  to->set_conj(from->is_conj());
  to->set_neg(from->is_neg());
  to->set_layer_state(from->layer_state());
  DispatchKeySet own = to->keys() & DispatchKeySet(DispatchKey::Subclass);  // the object's class stays what it is
  to->set_keys((from->keys() - DispatchKey::Autograd) | own);
  if (tracked) to->add_key(DispatchKey::Autograd);
  // The accumulator expects gradients of the old shape.
  if (meta && meta->rare) meta->rare->accumulator = {};
}

std::optional<DType> grad_dtype(const Tensor& tensor) {
  const AutogradMeta* meta = meta_of(tensor.impl());
  if (!meta || !meta->rare || !meta->rare->grad_dtype) return tensor.dtype();
  DType set = *meta->rare->grad_dtype;
  return set == DType::Undefined ? std::nullopt : std::optional(set);
}

void set_grad_dtype(const Tensor& leaf, std::optional<DType> dtype) {
  check(leaf.is_leaf(), "grad_dtype can only be set on leaf tensors.");
  AutogradMeta& meta = ensure_meta(leaf.impl());
  AutogradMeta::Rare& rare = meta.rarely();
  rare.grad_dtype = dtype.value_or(DType::Undefined);
  if (IntrusivePtr<Node> accumulator = rare.accumulator.lock()) accumulator->expect_dtype(0, *rare.grad_dtype);
}

// ---- hooks ----

HookHandle register_hook(const Tensor& tensor, TensorHook hook) {
  note_user_code();
  check(tensor.requires_grad(), "cannot register a hook on a tensor that doesn't require gradient");
  if (IntrusivePtr<Node> node = grad_fn(tensor))
    return {node->add_tensor_hook(output_number(tensor), std::move(hook)), WeakPtr<Node>(node), {}};
  HookId id = next_hook_id();
  ensure_meta(tensor.impl()).rarely().hooks.add(id, std::move(hook));
  return {id, {}, WeakPtr<TensorImpl>(tensor.pointer())};
}

HookHandle register_post_accumulate_grad_hook(const Tensor& leaf, std::function<void(const Tensor&)> hook) {
  check(leaf.requires_grad(), "cannot register a hook on a tensor that doesn't require gradient");
  check(leaf.is_leaf(), "post accumulate grad hooks cannot be registered on non-leaf tensors");
  HookId id = next_hook_id();
  ensure_meta(leaf.impl()).rarely().post_accumulate.add(id, std::move(hook));
  return {id, {}, WeakPtr<TensorImpl>(leaf.pointer())};
}

void HookHandle::remove() const {
  if (IntrusivePtr<Node> n = node.lock()) n->remove_hook(id);
  if (IntrusivePtr<TensorImpl> t = leaf.lock())
    if (AutogradMeta* meta = meta_of(t.get()); meta && meta->rare) {
      meta->rare->hooks.remove(id);
      meta->rare->post_accumulate.remove(id);
    }
}

bool retains_grad(const Tensor& tensor) {
  const AutogradMeta* meta = meta_of(tensor.impl());
  return meta && meta->retains_grad && !tensor.is_leaf();
}

}  // namespace umbra::autograd

namespace umbra {

using autograd::AutogradMeta;

std::string grad_fact(const Tensor& tensor) {
  IntrusivePtr<autograd::Node> node;
  try {
    node = autograd::grad_fn(tensor);
  } catch (const Error&) {  // a view whose history was spoilt by a later write
    return "grad_fn=<Invalid>";
  }
  if (node) return "grad_fn=<" + node->name() + ">";
  return tensor.requires_grad() ? "requires_grad=True" : "";
}

bool Tensor::requires_grad() const { return autograd::requires_grad(&metadata()); }

bool Tensor::is_leaf() const {
  metadata();  // grad_fn presumes a tensor that is defined
  return !autograd::grad_fn(*this);
}

Tensor& Tensor::requires_grad_(bool value) {
  bool leaf = is_leaf();
  check(leaf || value,
        "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
        "subgraph that doesn't "
        "require differentiation use var_no_grad = var.detach().");
  check(!value || is_differentiable(dtype()), "only Tensors of floating point dtype can require gradients");
  check(!value || !impl()->is_inference() || is_inference_mode_enabled(),
        "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  if (!leaf) return *this;
  if (value || impl()->autograd_meta()) autograd::ensure_meta(impl()).requires_grad = value;
  return *this;
}

Tensor Tensor::grad() const {
  const AutogradMeta* meta = autograd::meta_of(&metadata());
  return meta ? meta->grad : Tensor();
}

void Tensor::set_grad(const Tensor& gradient) const {
  metadata();
  if (gradient.defined()) {
    check(!gradient.is_same(*this), "can't assign Variable as its own grad");
    std::optional<DType> expected = autograd::grad_dtype(*this);
    check(!expected || gradient.dtype() == *expected, "attempting to assign a gradient with dtype '", gradient.dtype(),
          "' to a tensor with grad_dtype '", expected.value_or(dtype()),
          "'. Please ensure that the gradient has the tensor's grad_dtype, which is its dtype unless it was set");
    check(gradient.device() == device(), "attempting to assign a gradient with device '", gradient.device(),
          "' to a tensor with device '", device(),
          "'. Please ensure that the gradient and the tensor are on the same device");
    check(gradient.sym_sizes() == sym_sizes(), "attempting to assign a gradient of size '", gradient.sym_sizes(),
          "' to a tensor of size '", sym_sizes(),
          "'. Please ensure that the gradient and the tensor are the same size");
  } else if (!impl()->autograd_meta()) {
    return;
  }
  autograd::ensure_meta(impl()).grad = gradient;
}

void Tensor::backward(const Tensor& gradient, bool retain_graph, bool create_graph) const {
  metadata();
  TensorList gradients = gradient.defined() ? TensorList(&gradient, 1) : TensorList();
  autograd::backward({this, 1}, gradients,
                     {.retain_graph = retain_graph || create_graph, .create_graph = create_graph});
}

void Tensor::retain_grad() const {
  check(requires_grad(), "can't retain_grad on Tensor that has requires_grad=False");
  IntrusivePtr<autograd::Node> node = autograd::grad_fn(*this);
  if (!node) return;  // leaves keep their gradients anyway
  AutogradMeta& meta = autograd::ensure_meta(impl());
  if (std::exchange(meta.retains_grad, true)) return;
  node->retain_grad(meta.output_number, WeakPtr<TensorImpl>(pointer()));
}

}  // namespace umbra
