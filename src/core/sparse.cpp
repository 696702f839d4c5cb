#include "umbra/core/sparse.h"

namespace umbra {

namespace {
struct SparseState final : RefCounted {
  explicit SparseState(SparseParts parts) : parts(std::move(parts)) {}
  SparseParts parts;

 protected:
  void release_resources() override { parts = {}; }
};
}  // namespace

Tensor make_sparse(Layout layout, SymIntArrayRef sizes, SparseParts parts) {
  const Tensor& values = parts.values;
  auto impl = make_counted<TensorImpl>(StorageImpl::without_data(0, values.device()), values.dtype(), values.device(),
                                       DispatchKeySet(DispatchKey::Sparse) | backend_key(values.device()) |
                                           (values.keys() & DispatchKeySet(DispatchKey::Fake)));
  impl->set_geometry(sizes, SymShape(sizes.size(), 0), 0);
  impl->set_layout(layout);
  impl->set_layer_state(make_counted<SparseState>(std::move(parts)));
  return Tensor(std::move(impl));
}

void set_sparse(const Tensor& sparse, SymIntArrayRef sizes, SparseParts parts) {
  TensorImpl* impl = sparse.impl();
  impl->set_geometry(sizes, SymShape(sizes.size(), 0), 0);
  impl->set_layer_state(make_counted<SparseState>(std::move(parts)));
  impl->bump_version();
}

const SparseParts& sparse_parts(const Tensor& tensor) {
  auto* state = dynamic_cast<const SparseState*>(tensor.impl()->layer_state().get());
  if (!state) fail("expected a sparse tensor but got layout ", short_name(tensor.layout()));
  return state->parts;
}

Tensor with_values(const Tensor& sparse, Tensor values) {
  SparseParts parts = sparse_parts(sparse);
  parts.values = std::move(values);
  return make_sparse(sparse.layout(), sparse.sym_sizes(), std::move(parts));
}

void require_strided(const Tensor& tensor, const char* who) {
  check<NotImplementedError>(!tensor.defined() || !tensor.keys().has(DispatchKey::Sparse), who,
                             " of a tensor of layout ", to_string(tensor.layout()), " is not in Umbra yet");
}

}  // namespace umbra
