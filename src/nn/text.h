// Pieces of what layers print of themselves.
#pragma once

#include "umbra/core/error.h"
#include "umbra/nn/sizes.h"

namespace umbra::nn {

/// "(3, 3)", and of one number "(3,)".
template <size_t N> std::string tuple_text(const std::array<int64_t, N>& numbers) {
  std::string text = "(";
  for (size_t i = 0; i < N; ++i) text += concat(i ? ", " : "", numbers[i]);
  return text + (N == 1 ? ",)" : ")");
}

/// One number where all are the same.
template <size_t N> std::string number_or_tuple(const Sizes<N>& numbers) {
  return numbers == Sizes<N>(numbers[0]) ? concat(numbers[0]) : tuple_text(numbers);
}

/// A number as Python prints a float: "2.0".
inline std::string float_text(double number) {
  std::string text = concat(number);
  return text.find_first_of(".einf") == std::string::npos ? text + ".0" : text;
}

// Stands in an instance of a layer that programs may use: `template class UMBRA_INSTANCE MaxPool<2>;`, where no
// compiler but GCC takes an attribute in brackets.
#define UMBRA_INSTANCE __attribute__((visibility("default")))

/// "torch.nn.modules.conv.Conv2d" of the three names.
template <size_t N> const char* by_dimensions(const char* one, const char* two, const char* three) {
  return N == 1 ? one : N == 2 ? two : three;
}
#define UMBRA_LAYER_NAME(N, file, name)                                                            \
  by_dimensions<N>("torch.nn.modules." file "." name "1d", "torch.nn.modules." file "." name "2d", \
                   "torch.nn.modules." file "." name "3d")

}  // namespace umbra::nn
