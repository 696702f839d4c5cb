#include "autograd/accumulate.h"

#include <limits>

#include "umbra/core/sparse.h"
#include "umbra/generated/functions.h"

namespace umbra::autograd {

// Before all other nodes: the sooner a gradient has been added, the sooner its memory is free.
AccumulateGrad::AccumulateGrad(const Tensor& leaf) : Node(std::numeric_limits<uint64_t>::max()), leaf_(leaf) {
  add_input(InputMetadata(leaf));
  expect_dtype(0, grad_dtype(leaf).value_or(DType::Undefined));
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

Tensor copy_with_strides(const Tensor& gradient, SymIntArrayRef strides) {
  return gradient.new_empty_strided(gradient.sym_sizes(), strides).copy_(gradient);
}

// A new `grad` takes the leaf's strides, so that optimisers walk both alike.
Tensor copy_in_layout(const Tensor& gradient, const Tensor& leaf) {
  if (!leaf.is_non_overlapping_and_dense()) return gradient.clone(MemoryFormat::Contiguous);
  return copy_with_strides(gradient, leaf.sym_strides());
}

/// Whether the gradient is all of a tensor that is there for its sake alone: a product, say, that it is transposed
/// from.
bool is_whole_of_its_base(const Tensor& gradient) {
  const IntrusivePtr<TensorImpl>& base = gradient.impl()->view_base();
  const StorageImpl& storage = *gradient.storage();
  return base && base->use_count() == 1 && storage.use_count() == 2 &&
         storage.bytes().same(gradient.sym_numel() * static_cast<int64_t>(gradient.item_size()));
}

// A view of what others hold is not taken over as in PyTorch, where writes to one then reach the other; the strides
// that its copy has are those that it would have there.
Tensor copy_or_keep(Tensor gradient, const Tensor& leaf, size_t holders) {
  if (gradient.impl()->use_count() > holders) return copy_in_layout(gradient, leaf);
  if (is_whole_of_its_base(gradient)) return share_data(gradient);
  if (gradient.storage()->use_count() > 1) return copy_with_strides(gradient, gradient.sym_strides());
  return holders > 1 || is_observed(gradient) ? share_data(gradient) : std::move(gradient);
}

bool is_sparse_tensor(const Tensor& t) { return t.keys().has(DispatchKey::Sparse); }

/// A sparse gradient that nobody else holds becomes `grad` without a copy of its elements; PyTorch then forgets whether
/// they are in order.
Tensor keep_sparse(const Tensor& gradient) {
  SparseParts parts = sparse_parts(gradient);
  bool whole = gradient.layout() == Layout::SparseCoo && parts.indices.is_contiguous() && parts.values.is_contiguous();
  if (is_grad_enabled() || gradient.impl()->use_count() > 1 || !whole) return gradient.clone();
  parts.coalesced = parts.values.size(0) < 2;
  return make_sparse(gradient.layout(), gradient.sym_sizes(), std::move(parts));
}

/// Sums in which one side is sparse: with a strided one they are strided.
void accumulate_sparse(Tensor& sum, const Tensor& gradient) {
  if (!sum.defined()) sum = keep_sparse(gradient);
  else if (is_sparse_tensor(sum) && !is_sparse_tensor(gradient)) sum = gradient.add(sum);
  else if (is_grad_enabled()) sum = sum.add(gradient);
  else sum.add_(gradient);
}

}  // namespace

void accumulate_grad(const Tensor& tensor, Tensor gradient, size_t holders) {
  Tensor& sum = ensure_meta(tensor.impl()).grad;
  if (is_sparse_tensor(gradient) || (sum.defined() && is_sparse_tensor(sum))) return accumulate_sparse(sum, gradient);
  if (is_sparse_tensor(tensor) && !sum.defined()) {  // a strided gradient of a sparse tensor has strides of its own
    sum = gradient.clone(MemoryFormat::Contiguous);
    return;
  }
  bool same_layout = !sum.defined() && has_layout_of(gradient, tensor);
  if (sum.defined() && is_grad_enabled()) sum = sum.add(gradient);
  else if (sum.defined()) sum.add_(gradient);
  else if (same_layout && !is_grad_enabled()) sum = copy_or_keep(std::move(gradient), tensor, holders);
  else sum = copy_in_layout(gradient, tensor);
}

Gradients AccumulateGrad::apply(Gradients incoming) {
  AutogradMeta& meta = ensure_meta(leaf_.impl());
  if (!incoming[0].defined() || !meta.requires_grad) return {};
  {
    std::lock_guard lock(mutex_);
    accumulate_grad(leaf_, std::move(incoming[0]), has_post_hooks() ? 2 : 1);  // the engine keeps it for those
  }
  if (meta.rare) meta.rare->post_accumulate.each([&](auto& hook) { hook(leaf_); });
  return {};
}

}  // namespace umbra::autograd
