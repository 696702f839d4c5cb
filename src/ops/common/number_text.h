// Numbers in messages, as C++ streams print them ("0", "1e+06"): PyTorch's messages have them so, where Python's would
// have "0.0".
#pragma once

#include <cstdio>
#include <string>

namespace umbra::ops {

/// A piece of a message; its text is made when the message is.
struct NumberText {
  double value;
};
inline std::string to_string(NumberText number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number.value);
  return text;
}
inline NumberText number_text(double value) { return {value}; }

}  // namespace umbra::ops
