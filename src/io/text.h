// Text from files, made fit for messages.
#pragma once

#include <string>
#include <string_view>

namespace umbra::io {

/// At most 200 characters of the text, with bytes that are not printable ASCII as \xNN: an error's text must be
/// readable.
inline std::string printable(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (char c : text.substr(0, 200)) {
    auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out.append("\\x").append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
    }
  }
  return out;
}

}  // namespace umbra::io
