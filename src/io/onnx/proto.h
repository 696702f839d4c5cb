// The wire format of protocol buffers, as far as ONNX models need it: fields by number, each a varint, four bytes or a
// length and bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace umbra::io::onnx {

/// A message under construction.
class Message {
 public:
  Message& number(int field, int64_t value) {
    key(field, 0);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& real(int field, float value) {
    key(field, 5);
    char bytes[4];
    std::memcpy(bytes, &value, 4);
    bytes_.append(bytes, 4);
    return *this;
  }
  Message& text(int field, std::string_view value) {
    key(field, 2);
    varint(value.size());
    bytes_.append(value);
    return *this;
  }
  Message& message(int field, const Message& value) { return text(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void key(int field, int wire) { varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire)); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

}  // namespace umbra::io::onnx
