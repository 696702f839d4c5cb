// Numbers for each dimension of a signal, an image or a volume: kernels, strides, margins.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>

#include "umbra/core/export.h"

namespace UMBRA_API umbra {
namespace nn {

/// One number for each of N dimensions; one number stands for all of them.
template <size_t N> struct Sizes : std::array<int64_t, N> {
  Sizes(int64_t all) { this->fill(all); }
  Sizes(int all) : Sizes(int64_t{all}) {}
  template <std::integral... Numbers>
  requires(N > 1 && sizeof...(Numbers) == N) Sizes(Numbers... numbers)
      : std::array<int64_t, N>{static_cast<int64_t>(numbers)...} {}
};

/// Height and width.
using Pair = Sizes<2>;

}  // namespace nn
}  // namespace umbra
