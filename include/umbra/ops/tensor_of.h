// Tensors of values that stand in the program, or in memory that it has.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <type_traits>
#include <vector>

#include "umbra/core/tensor.h"

namespace UMBRA_API umbra {

namespace detail {
/// Copies `count` elements of type `stored`; no sizes mean one dimension.
Tensor tensor_of(const void* values, size_t count, DType stored, DType wanted, IntArrayRef sizes);

/// As torch.tensor chooses: bool stays bool, integers are int64, floating-point numbers of the default type.
template <class T> DType literal_type() {
  static_assert(dtype_of<T> != DType::Undefined, "tensor() takes numbers");
  if constexpr (std::is_same_v<T, bool>) return DType::Bool;
  else if constexpr (std::is_integral_v<T>) return DType::Int64;
  else if constexpr (std::is_floating_point_v<T>) return default_dtype();
  else return dtype_of<T>;
}

/// A number, or a list of such: what the braces of `tensor({{1, 2}, {3, 4}})` hold.
class Literal {
 public:
  template <std::convertible_to<Scalar> T>
  requires(!std::is_pointer_v<T>) Literal(const T& number) : number_(number) {}
  Literal(std::initializer_list<Literal> items);
  Literal(const Literal& other);
  ~Literal();

  bool is_list() const { return is_list_; }
  const Scalar& number() const { return number_; }
  const std::vector<Literal>& items() const { return items_; }

 private:
  Scalar number_;
  std::vector<Literal> items_;
  bool is_list_ = false;
};
}  // namespace detail

/// A tensor of the numbers between the braces, as torch.tensor has it:
///
///     tensor(2.5);                                        // of no dimension
///     tensor({1.0, 2.0, 3.0});
///     tensor({{1, 2}, {3, 4}}, {.dtype = DType::Float64});
Tensor tensor(const detail::Literal& values, const TensorOptions& options = {});
template <std::same_as<DType> D> Tensor tensor(const detail::Literal& values, D dtype) {
  return tensor(values, TensorOptions{.dtype = dtype});
}

/// A tensor of the values, row by row where sizes are given:
///
///     Tensor m = tensor({1, 2, 3, 4}, {2, 2});
///     Tensor w = tensor(std::vector<float>(...), {}, DType::Float64);
template <class T>
Tensor tensor(std::initializer_list<T> values, IntArrayRef sizes, std::optional<DType> dtype = std::nullopt) {
  return detail::tensor_of(std::data(values), values.size(), dtype_of<T>, dtype.value_or(detail::literal_type<T>()),
                           sizes);
}
template <class T>
requires(!std::is_same_v<T, bool>) Tensor
    tensor(const std::vector<T>& values, IntArrayRef sizes = {}, std::optional<DType> dtype = std::nullopt) {
  return detail::tensor_of(values.data(), values.size(), dtype_of<T>, dtype.value_or(detail::literal_type<T>()), sizes);
}

template <class T, std::same_as<DType> D>
requires(!std::is_same_v<T, bool>) Tensor tensor(const std::vector<T>& values, D dtype) {
  return tensor(values, {}, dtype);
}

/// A tensor over memory that the caller has, of float32 where the options say nothing else. Nothing is copied: the
/// memory has to stay as long as the tensor and its views do; `release` is called when they are gone.
///
///     std::vector<float> pixels = ...;
///     Tensor image = from_blob(pixels.data(), {3, 224, 224});
Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {});
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options = {});
Tensor from_blob(void* data, IntArrayRef sizes, std::function<void(void*)> release, const TensorOptions& options = {});
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, std::function<void(void*)> release,
                 const TensorOptions& options = {});
template <std::same_as<DType> D> Tensor from_blob(void* data, IntArrayRef sizes, D dtype) {
  return from_blob(data, sizes, TensorOptions{.dtype = dtype});
}
template <std::same_as<DType> D> Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, D dtype) {
  return from_blob(data, sizes, strides, TensorOptions{.dtype = dtype});
}
template <std::same_as<DType> D>
Tensor from_blob(void* data, IntArrayRef sizes, std::function<void(void*)> release, D dtype) {
  return from_blob(data, sizes, std::move(release), TensorOptions{.dtype = dtype});
}

}  // namespace umbra
