// Numbers in messages, as C++ streams print them ("0", "1e+06"): PyTorch's messages have them so, where Python's would
// have "0.0".
#pragma once

#include <cstdio>
#include <string>

namespace umbra::ops {

inline std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

}  // namespace umbra::ops
