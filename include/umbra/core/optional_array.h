// A list that may be left out, as an argument of operators: `x.sum({0, 1})`, `x.sum(std::nullopt, true)`.
#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>

#include "umbra/core/array_ref.h"

namespace umbra {

/// Like std::optional<ArrayRef<T>>, and a braced list converts to it. Borrowed: for arguments, never for variables.
template <class T> class OptionalArrayRef : public std::optional<ArrayRef<T>> {
 public:
  OptionalArrayRef(std::initializer_list<T> list)
      : std::optional<ArrayRef<T>>(ArrayRef<T>(list.begin(), list.size())) {}
  template <std::convertible_to<std::optional<ArrayRef<T>>> U>
  OptionalArrayRef(const U& list) : std::optional<ArrayRef<T>>(list) {}
};

}  // namespace umbra
