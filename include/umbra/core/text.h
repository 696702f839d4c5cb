// Text as an argument of operators: `gelu(x, "tanh")`.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace umbra {

/// Made of anything that is text already, and of nothing else: a braced list such as {1, 1} is no text, so that
/// `conv2d(x, w, {}, {1, 1}, {1, 1})` is not mistaken for the overload whose padding is a word.
struct Text {
  template <std::convertible_to<std::string_view> T> Text(const T& text) : string(std::string_view(text)) {}
  std::string string;
};

}  // namespace umbra
