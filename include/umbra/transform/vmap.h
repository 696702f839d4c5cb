// The level of vmap: calls on batched tensors become calls on the whole batch, by the operators' batching rules.
#pragma once

#include "umbra/dispatch/batching.h"
#include "umbra/transform/level.h"

namespace UMBRA_API umbra {
namespace transform {

class VmapLevel final : public Level {
 public:
  VmapLevel(SymInt size, Randomness randomness) : size_(size), randomness_(randomness) {}

  void call(const Operator& op, Value* frame) override;
  bool call_functions(const Operator& op, Value* frame) override;
  Tensor unwrap(const Tensor& tensor) const override { return value(tensor).value; }
  /// The tensor's value and its batch dimension at this level.
  Batched value(const Tensor& tensor) const;
  /// A tensor that hides `dim`; negative ones count from the end.
  Tensor wrap(const Tensor& value, int64_t dim);
  /// A result of the function as the caller of vmap sees it, with the batch at `out_dim`; the level has ended.
  Tensor result(const Tensor& tensor, std::optional<int64_t> out_dim) const;
  SymInt size() const { return size_; }
  Randomness randomness() const { return randomness_; }

 private:
  bool is_batched(const Operator& op, const Value* frame) const;
  void call_outside(const Operator& op, Value* frame) const;
  void call_by_rule(const Operator& op, Value* frame);
  void call_inplace(const Operator& op, Value* frame);
  void become_size(const Operator& op, Value* frame);
  void become_view(const Operator& op, const Operator& view, Value* frame);
  void call_random(const Operator& op, Value* frame, bool batched);
  void draw_inplace(const Operator& op, Value* frame);
  void call_one_by_one(const Operator& op, Value* frame);
  void write(const Tensor& self, const Tensor& result);

  SymInt size_;
  Randomness randomness_;
};

/// Whether the tensor is batched at any level: its elements cannot be read.
bool is_batched_inside(const Tensor& tensor);

/// How an operator is batched: by a rule of its definition or its kind, through the operators it is made of, or not
/// at all but by a loop.
enum class Batching : uint8_t { Rule, Parts, Loop };
Batching batching_of(const Operator& op);

}  // namespace transform
}  // namespace umbra
