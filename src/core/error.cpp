#include "umbra/core/error.h"

#include <charconv>
#include <cmath>

namespace umbra::detail {

// Floats as Python's repr writes them: the shortest text that reads back the same, with ".0" where nothing shows a float.
void append(std::string& out, double value) {
  if (std::isnan(value)) return void(out += "nan");
  if (std::isinf(value)) return void(out += value > 0 ? "inf" : "-inf");
  char buffer[40];
  double size = std::fabs(value);
  bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  auto end = std::to_chars(buffer, buffer + sizeof(buffer), value,
                           plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(buffer, end.ptr);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  out += text;
}

}  // namespace umbra::detail
