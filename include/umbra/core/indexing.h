// What stands between the brackets of Python's x[...], for Tensor::index and Tensor::index_put_.
//
//     using namespace umbra::indexing;
//     x.index({0, Slice(1, None), Ellipsis, mask})        // x[0, 1:, ..., mask]
//     x.index({"...", None, Slice(None, None, 2)})        // x[..., None, ::2]
//     x.index_put_({mask}, 0.5)                           // x[mask] = 0.5
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "umbra/core/tensor.h"

namespace UMBRA_API umbra {
namespace indexing {

struct EllipsisIndex {};
/// As many whole dimensions as are left.
inline constexpr EllipsisIndex Ellipsis{};
/// A new dimension of size one; in a Slice, an end that is left out.
inline constexpr std::nullopt_t None = std::nullopt;

/// start:stop:step.
struct Slice {
  Slice(std::optional<SymInt> start = None, std::optional<SymInt> stop = None, std::optional<SymInt> step = None)
      : start(start), stop(stop), step(step) {}
  std::optional<SymInt> start, stop, step;
};

/// One of the items. An undefined tensor stands for a whole dimension, as in `aten::index`.
class TensorIndex {
 public:
  enum class Kind : uint8_t { NewDimension, Ellipsis, Integer, Bool, Slice, Tensor };
  TensorIndex(std::nullopt_t) : kind_(Kind::NewDimension) {}
  TensorIndex(EllipsisIndex) : kind_(Kind::Ellipsis) {}
  TensorIndex(const char* text);  // "..."
  template <std::same_as<bool> B> TensorIndex(B value) : kind_(Kind::Bool), integer_(int{value}) {}
  TensorIndex(SymInt integer) : kind_(Kind::Integer), integer_(integer) {}
  template <std::integral I>
  requires(!std::same_as<I, bool>) TensorIndex(I integer) : TensorIndex(SymInt(integer)) {}
  TensorIndex(const Slice& slice) : kind_(Kind::Slice), slice_(slice) {}
  TensorIndex(const umbra::Tensor& tensor) : kind_(Kind::Tensor), tensor_(tensor) {
    if (!tensor.defined()) kind_ = Kind::Slice;
  }

  Kind kind() const { return kind_; }
  SymInt integer() const { return integer_; }
  bool boolean() const { return !integer_.same(0); }
  const Slice& slice() const { return slice_; }
  const umbra::Tensor& tensor() const { return tensor_; }

 private:
  Kind kind_;
  SymInt integer_ = 0;
  Slice slice_;
  umbra::Tensor tensor_;
};

/// All of them: a braced list, or a list of tensors.
class Indices {
 public:
  Indices(std::initializer_list<TensorIndex> items);
  Indices(std::vector<TensorIndex> items);
  Indices(TensorList tensors);
  Indices(const std::vector<Tensor>& tensors);

  const std::vector<TensorIndex>& items() const { return items_; }

 private:
  std::vector<TensorIndex> items_;
};

/// A tensor after integers, slices and new dimensions have been applied, and the tensors that index what is left.
struct Prepared {
  Tensor result;
  std::vector<Tensor> indices;  // by dimension of result, a mask counting as one; undefined where there is none
};

Prepared prepare(const Tensor& self, const std::vector<TensorIndex>& items);
/// x[items].
Tensor get(const Tensor& self, const std::vector<TensorIndex>& items);
/// x[items] = values. Leading dimensions of size one do not count.
void set(const Tensor& self, const std::vector<TensorIndex>& items, const Tensor& values);
void set(const Tensor& self, const std::vector<TensorIndex>& items, const Scalar& value);

}  // namespace indexing
}  // namespace umbra
