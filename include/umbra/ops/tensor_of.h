// Tensors of values that stand in the program.
#pragma once

#include <initializer_list>
#include <optional>
#include <type_traits>
#include <vector>

#include "umbra/core/tensor.h"

namespace umbra {

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
}  // namespace detail

/// A tensor of the values, row by row where sizes are given:
///
///     Tensor x = tensor({1.0, 2.0, 3.0});
///     Tensor m = tensor({1, 2, 3, 4}, {2, 2});
///     Tensor w = tensor(std::vector<float>(...), {}, DType::Float64);
template <class T>
Tensor tensor(std::initializer_list<T> values, IntArrayRef sizes = {}, std::optional<DType> dtype = std::nullopt) {
  return detail::tensor_of(std::data(values), values.size(), dtype_of<T>, dtype.value_or(detail::literal_type<T>()),
                           sizes);
}
template <class T>
requires(!std::is_same_v<T, bool>) Tensor
    tensor(const std::vector<T>& values, IntArrayRef sizes = {}, std::optional<DType> dtype = std::nullopt) {
  return detail::tensor_of(values.data(), values.size(), dtype_of<T>, dtype.value_or(detail::literal_type<T>()), sizes);
}

}  // namespace umbra
