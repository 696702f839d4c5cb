// What a batching rule sees: tensors with the place of their batch dimension.
//
//     UMBRA_OPERATOR("mm(Tensor self, Tensor mat2) -> Tensor")
//         ...
//         .batch([](const Batched& self, const Batched& mat2) {
//           return Batched(matmul(batch_first(self), batch_first(mat2)), 0);
//         });
//
// A rule takes the operator's arguments, `Batched` where they are tensors, and runs with its vmap off the stack. At
// least one of its tensors has a batch dimension. Without a rule it follows from what the operator is: elementwise, or
// made of other operators; else the operator is called once for each element of the batch.
#pragma once

#include "umbra/dispatch/boxing.h"

namespace UMBRA_API umbra {

/// What vmap does with operators that draw random numbers.
enum class Randomness : uint8_t { Error, Different, Same };

/// What a batched tensor keeps: its layer state.
class BatchedState final : public RefCounted {
 public:
  BatchedState(Tensor value, int64_t dim, IntrusivePtr<RefCounted> level)
      : value(std::move(value)), dim(dim), level(std::move(level)) {}
  Tensor value;
  int64_t dim;  // of the value: which one is hidden
  IntrusivePtr<RefCounted> level;
};

/// The vmap whose rules are running on this thread.
struct BatchScope {
  IntrusivePtr<RefCounted> level;
  SymInt size = 0;  // of the batch dimension
  Randomness randomness = Randomness::Error;
};
const BatchScope& batch_scope();
/// Makes a scope the thread's, for as long as the guard stands.
class EnterBatchScope {
 public:
  explicit EnterBatchScope(BatchScope scope);
  ~EnterBatchScope();
  EnterBatchScope(const EnterBatchScope&) = delete;

 private:
  BatchScope before_;
};

/// The state of a tensor that is batched at `level`, or null.
const BatchedState* batched_state(const TensorImpl* tensor, const RefCounted* level);
/// A tensor that shows all dimensions of `value` but one. It has no data: every call on it goes to its level.
Tensor make_batched(const Tensor& value, int64_t dim, IntrusivePtr<RefCounted> level);

/// A tensor and its batch dimension; -1 where it has none.
struct Batched {
  Tensor value;
  int64_t dim = -1;

  Batched() = default;
  Batched(Tensor value, int64_t dim) : value(std::move(value)), dim(dim) {}
  /// What an argument is in the scope that is running.
  static Batched of(const Tensor& argument);

  bool is_batched() const { return dim >= 0; }
  bool defined() const { return value.defined(); }
  /// How many dimensions the function under vmap sees.
  int64_t rank() const { return value.dim() - (is_batched() ? 1 : 0); }
  /// As the function under vmap sees it.
  Tensor wrap() const;
  explicit operator Value() const { return Value(wrap()); }
};

namespace boxing {
template <> struct Unbox<Batched> {
  static Batched from(const Value& v) { return Batched::of(v.tensor_ref()); }
};
template <> struct Unbox<std::vector<Batched>> {
  static std::vector<Batched> from(const Value& v) {
    std::vector<Batched> out;
    for (const Tensor& t : v.tensor_list()) out.push_back(t.defined() ? Batched::of(t) : Batched());
    return out;
  }
};
}  // namespace boxing

}  // namespace umbra
