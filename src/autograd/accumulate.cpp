#include "autograd/accumulate.h"

#include <limits>

#include "umbra/generated/functions.h"

namespace umbra::autograd {

// Before all other nodes: the sooner a gradient has been added, the sooner its memory is free.
AccumulateGrad::AccumulateGrad(const Tensor& leaf) : Node(std::numeric_limits<uint64_t>::max()), leaf_(leaf) {
  add_input(InputMetadata(leaf));
}

void AccumulateGrad::release_resources() {
  leaf_ = Tensor();
  Node::release_resources();
}

void AccumulateGrad::run_tensor_hooks(Gradients& incoming) {
  AutogradMeta* meta = meta_of(leaf_.impl());
  if (!meta || !meta->rare) return;
  meta->rare->hooks.each([&](const TensorHook& hook) { run_hook(hook, incoming[0]); });
}

namespace {

bool has_layout_of(const Tensor& gradient, const Tensor& leaf) {
  if (!leaf.is_non_overlapping_and_dense()) return gradient.is_contiguous();
  for (int64_t d = 0; d < leaf.dim(); ++d)  // the stride of a single element says nothing
    if (!leaf.sym_sizes()[d].same(1) && !(gradient.sym_strides()[d] == leaf.sym_strides()[d])) return false;
  return true;
}

// A new `grad` takes the leaf's strides, so that optimisers walk both alike.
Tensor copy_in_layout(const Tensor& gradient, const Tensor& leaf) {
  if (!leaf.is_non_overlapping_and_dense()) return gradient.clone(MemoryFormat::Contiguous);
  Tensor copy = gradient.new_empty_strided(leaf.sym_sizes(), leaf.sym_strides());
  return copy.copy_(gradient);
}

// Held here alone, so that it may become the leaf's own.
bool is_ours_alone(const Tensor& gradient) {
  return gradient.impl()->use_count() == 1 && gradient.storage()->use_count() == 1;
}

}  // namespace

void accumulate_grad(const Tensor& tensor, Tensor gradient) {
  Tensor& sum = ensure_meta(tensor.impl()).grad;
  bool same_layout = !sum.defined() && has_layout_of(gradient, tensor);
  if (sum.defined() && is_grad_enabled()) sum = sum.add(gradient);
  else if (sum.defined()) sum.add_(gradient);
  else if (same_layout && !is_grad_enabled() && is_ours_alone(gradient))
    sum = is_observed(gradient) ? share_data(gradient) : std::move(gradient);
  else sum = copy_in_layout(gradient, tensor);
}

Gradients AccumulateGrad::apply(Gradients incoming) {
  AutogradMeta& meta = ensure_meta(leaf_.impl());
  if (!incoming[0].defined() || !meta.requires_grad) return {};
  {
    std::lock_guard lock(mutex_);
    accumulate_grad(leaf_, std::move(incoming[0]));
  }
  if (meta.rare) meta.rare->post_accumulate.each([&](auto& hook) { hook(leaf_); });
  return {};
}

}  // namespace umbra::autograd
