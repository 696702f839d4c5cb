// Text from files, made fit for messages.
#pragma once

#include <cstdint>
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

/// Whether the text is UTF-8: no stray or missing byte, no longer form than need be, no half of a surrogate pair.
inline bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    auto lead = static_cast<unsigned char>(text[i++]);
    if (lead < 0x80) continue;
    size_t more = lead >= 0xc2 && lead < 0xe0   ? 1
                  : lead >= 0xe0 && lead < 0xf0 ? 2
                  : lead >= 0xf0 && lead < 0xf5 ? 3
                                                : 0;
    if (more == 0 || text.size() - i < more) return false;
    uint32_t point = lead & (0x3fu >> more);
    for (size_t end = i + more; i < end; ++i) {
      auto byte = static_cast<unsigned char>(text[i]);
      if ((byte & 0xc0) != 0x80) return false;
      point = point << 6 | (byte & 0x3fu);
    }
    constexpr uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
    if (point < kLeast[more] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return false;
  }
  return true;
}

}  // namespace umbra::io
