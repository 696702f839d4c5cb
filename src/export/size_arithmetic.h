// The arithmetic on sizes that PyTorch's composites do, whose calls take names in a graph.
#pragma once

#include <unordered_map>

#include "umbra/capture/tracer.h"

namespace umbra {

/// PyTorch records what its composites ask of symbolic sizes, and removes most of these calls later; the names that
/// they took stay taken. It is told here by general steps: numbers of elements, whether a tensor is contiguous, how a
/// view lies. Composites that are not told of take no names.
class SizeArithmetic {
 public:
  using Sizes = std::vector<SymInt>;

  explicit SizeArithmetic(Tracer& tracer) : tracer_(tracer) {}
  /// What a composite asks before it comes apart. Whether `end` is to be told of its result.
  bool begin(const Operator& op, const Value* frame);
  /// What is asked afterwards, of a product that is a view of rows.
  void end(const Operator& op, fx::Node* result);
  /// Of a call that stays or comes apart by a table.
  void stack(ArrayRef<Tensor> tensors, int64_t dim);

 private:
  bool linear(const Tensor& input, const Tensor& bias);
  bool product(const Tensor& left, const Tensor& right);
  void batched_product(const Tensor& left, const Tensor& right);

  void take(const char* name) { tracer_.graph().names().create(name); }
  void read(SymInt size);
  void ask(const char* name, SymInt a, SymInt b);
  /// A product that is asked for, and one that an argument becomes.
  SymInt times(SymInt a, SymInt b, bool stays = false);
  SymInt product_of(const Sizes& sizes, bool stays = false);
  bool asks_contiguous(const Tensor& tensor);
  bool asks_contiguous(const Sizes& sizes, const Sizes& strides);
  bool asks_foldable(const Sizes& sizes, const Sizes& strides);
  void asks_order(const Tensor& tensor);
  void asks_attention(const Tensor& query, const Tensor& key, const Tensor& value);
  void asks_strided(const Tensor& tensor, SymIntArrayRef shape);
  Sizes asks_shape(SymInt count, SymIntArrayRef shape);
  void asks_rows(const Sizes& from, const Sizes& strides, const Sizes& to);
  bool asks_view(const Sizes& from, const Sizes& strides, const Sizes& to);

  Tracer& tracer_;
  bool counted_ = false;  // inside of attention numbers of elements are known
  std::unordered_map<const TensorImpl*, std::pair<Tensor, bool>> contiguous_;  // what is known of tensors
};

}  // namespace umbra
