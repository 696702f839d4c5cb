// Functional wrappers themselves: how a value becomes one, whose it is, and what it stands for.
#pragma once

#include "umbra/capture/functionalize.h"

namespace umbra::functional {

/// Whose wrappers the code means, for a scope: null are those of FunctionalMode, else those of a level of transforms.
class OfLevel {
 public:
  explicit OfLevel(IntrusivePtr<RefCounted> level);
  ~OfLevel();
  OfLevel(const OfLevel&) = delete;

 private:
  IntrusivePtr<RefCounted> before_;
};
const RefCounted* current_level();

/// How a tensor lies in memory.
inline TensorSpec spec_of(const Tensor& t) {
  return TensorSpec(t.sym_sizes(), t.sym_strides(), t.dtype(), t.device());
}
bool is_wrapper(const Tensor& t);
bool is_sparse_tensor(const Tensor& t);
/// After a write, or a change of another view's metadata, PyTorch makes a view once more, of what autograd has as its
/// base, for its history. No one reads the value, but it counts in the names of nodes.
void renew_history(const Tensor& t);
/// What a wrapper stands for; other tensors come back as they are.
Tensor unwrap(const Tensor& t);
Value unwrap_value(const Value& v);
Value wrap_value(const Value& v);

}  // namespace umbra::functional
