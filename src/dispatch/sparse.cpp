// Where a call ends that has a sparse tensor among its arguments: at what the definition says about them.
#include "umbra/core/sparse.h"

#include "umbra/dispatch/dispatcher.h"

namespace umbra {

namespace {

void sparse_layer(const Operator& op, DispatchKeySet, Value* frame) {
  if (const BoxedFunction& function = op.definition().sparse) return function(frame);
  const TensorImpl* sparse = nullptr;
  for (size_t i = 0; i < op.argument_count(); ++i)
    frame[i].each_tensor([&](TensorImpl* t) {
      if (t->keys().has(DispatchKey::Sparse)) sparse = t;
    });
  const char* device = sparse && sparse->device().type == DeviceType::Meta ? "Meta" : "CPU";
  fail<NotImplementedError>("Could not run '", op.name(), "' with arguments from the '",
                            sparse && sparse->layout() != Layout::SparseCoo ? "SparseCsr" : "Sparse", device,
                            "' backend: it is not defined for tensors of layout ",
                            to_string(sparse ? sparse->layout() : Layout::SparseCoo), " in Umbra yet");
}

const RegisterLayer kSparse(DispatchKey::Sparse, sparse_layer);

}  // namespace

}  // namespace umbra
