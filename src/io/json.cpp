#include "umbra/io/json.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "io/text.h"
#include "umbra/core/error.h"

namespace umbra::io {
namespace {

/// Builds a Json from the events of nlohmann's parser, which keeps its own stack on the heap.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(const std::string& label, int max_depth) : label_(label), max_depth_(max_depth) {}

  bool null() override { return put(Json()); }
  bool boolean(bool value) override { return put(Json(value)); }
  bool number_integer(int64_t value) override { return put(Json(value)); }
  bool number_unsigned(uint64_t value) override {
    // Beyond 63 bits it is no integer of ours; as a float it is refused wherever an integer is wanted.
    bool fits = value <= static_cast<uint64_t>(INT64_MAX);
    return put(fits ? Json(static_cast<int64_t>(value)) : Json(static_cast<double>(value)));
  }
  bool number_float(double value, const std::string&) override { return put(Json(value)); }
  bool string(std::string& value) override { return put(Json(std::move(value))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Json(Json::Object())); }
  bool start_array(size_t) override { return open(Json(Json::Array())); }
  bool key(std::string& name) override {
    keys_.back() = std::move(name);
    return true;
  }
  bool end_object() override {
    check_members(stack_.back().object());
    return close();
  }
  bool end_array() override { return close(); }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    std::string_view reason = error.what();
    if (size_t colon = reason.find("column "); colon != std::string_view::npos) {
      size_t text = reason.find(": ", colon);
      if (text != std::string_view::npos) reason.remove_prefix(text + 2);
    }
    fail<ValueError>("'", label_, "' is not valid JSON at byte ", position, ": ", printable(reason));
  }

  Json take() { return std::move(result_); }

 private:
  bool put(Json value) {
    if (stack_.empty()) {
      result_ = std::move(value);
    } else if (stack_.back().is_array()) {
      stack_.back().array().push_back(std::move(value));
    } else {
      stack_.back().object().emplace_back(std::move(keys_.back()), std::move(value));
    }
    return true;
  }
  bool open(Json value) {
    if (static_cast<int>(stack_.size()) >= max_depth_)
      fail<ValueError>("'", label_, "' is nested deeper than ", max_depth_, " levels");
    stack_.push_back(std::move(value));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    Json value = std::move(stack_.back());
    stack_.pop_back();
    keys_.pop_back();
    return put(std::move(value));
  }
  void check_members(const Json::Object& members) {
    std::unordered_set<std::string_view> seen;
    for (const auto& member : members)
      if (!seen.insert(member.first).second)
        fail<ValueError>("'", label_, "' has the member '", printable(member.first), "' twice");
  }

  const std::string& label_;
  int max_depth_;
  std::vector<Json> stack_;
  std::vector<std::string> keys_;
  Json result_;
};

/// Puts quotation marks around Infinity, -Infinity and NaN where they stand outside of strings.
std::string quote_bare_words(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  bool in_string = false;
  for (size_t i = 0; i < text.size();) {
    if (in_string) {
      size_t step = text[i] == '\\' && i + 1 < text.size() ? 2 : 1;
      if (text[i] == '"') in_string = false;
      out += text.substr(i, step);
      i += step;
      continue;
    }
    std::string_view word;
    for (std::string_view candidate : {"-Infinity", "Infinity", "NaN"})
      if (text.substr(i).starts_with(candidate)) word = candidate;
    if (!word.empty()) {
      out.append("\"").append(word).append("\"");
      i += word.size();
      continue;
    }
    in_string = text[i] == '"';
    out += text[i++];
  }
  return out;
}

void write_escape(std::string& out, uint32_t unit) {
  constexpr char kDigits[] = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kDigits[(unit >> shift) & 15];
}

/// The code point at `i` of text that should be UTF-8; a byte that is not stands for itself. `i` moves past it.
uint32_t next_code_point(std::string_view text, size_t& i) {
  auto first = static_cast<unsigned char>(text[i]);
  size_t more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
  uint32_t point = first & (more == 0 ? 0xff : 0x3f >> more);
  for (size_t k = 1; k <= more; ++k) {
    if (i + k >= text.size() || (text[i + k] & 0xc0) != 0x80) {
      ++i;
      return first;
    }
    point = point << 6 | (text[i + k] & 0x3f);
  }
  i += more + 1;
  return point;
}

void write_string(std::string& out, std::string_view text) {
  out += '"';
  for (size_t i = 0; i < text.size();) {
    uint32_t point = next_code_point(text, i);
    switch (point) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      default:
        if (point >= 0x20 && point < 0x7f) {
          out += static_cast<char>(point);
        } else if (point < 0x10000) {
          write_escape(out, point);
        } else {
          write_escape(out, 0xd800 + ((point - 0x10000) >> 10));
          write_escape(out, 0xdc00 + ((point - 0x10000) & 0x3ff));
        }
    }
  }
  out += '"';
}

void write(std::string& out, const Json& value) {
  if (value.is_null()) {
    out += "null";
  } else if (value.is_bool()) {
    out += value.as_bool() ? "true" : "false";
  } else if (value.is_int()) {
    out += std::to_string(value.as_int());
  } else if (value.is_float()) {
    double number = value.as_float();
    // Python's own spelling of what JSON has no word for.
    out += std::isnan(number)   ? "NaN"
           : std::isinf(number) ? (number < 0 ? "-Infinity" : "Infinity")
                                : float_repr(number);
  } else if (value.is_string()) {
    write_string(out, value.as_string());
  } else if (value.is_array()) {
    out += '[';
    for (const char* separator = ""; const Json& element : value.array()) {
      out += std::exchange(separator, ", ");
      write(out, element);
    }
    out += ']';
  } else {
    out += '{';
    for (const char* separator = ""; const auto& [name, member] : value.object()) {
      out += std::exchange(separator, ", ");
      write_string(out, name);
      out += ": ";
      write(out, member);
    }
    out += '}';
  }
}

}  // namespace

const char* Json::kind() const {
  constexpr const char* kNames[] = {"null", "a boolean", "an integer", "a float", "a string", "an array", "an object"};
  return kNames[value_.index()];
}

namespace {
template <class T, class Variant> const T& get(const Variant& value, const char* expected, const char* kind) {
  const T* found = std::get_if<T>(&value);
  if (!found) fail<ValueError>("expected ", expected, ", found ", kind);
  return *found;
}
}  // namespace

bool Json::as_bool() const { return get<bool>(value_, "a boolean", kind()); }
int64_t Json::as_int() const { return get<int64_t>(value_, "an integer", kind()); }
double Json::as_float() const {
  return is_int() ? static_cast<double>(as_int()) : get<double>(value_, "a number", kind());
}
const std::string& Json::as_string() const { return get<std::string>(value_, "a string", kind()); }
const Json::Array& Json::array() const { return get<Array>(value_, "an array", kind()); }
const Json::Object& Json::object() const { return get<Object>(value_, "an object", kind()); }

const Json* Json::find(std::string_view name) const {
  for (const auto& member : object())
    if (member.first == name) return &member.second;
  return nullptr;
}

Json parse_json(std::string_view text, const std::string& label, int max_depth) {
  check<ValueError>(!text.empty(), "'", label, "' is not valid JSON: it has no bytes");
  std::string quoted;
  if (text.find("Infinity") != std::string_view::npos || text.find("NaN") != std::string_view::npos) {
    quoted = quote_bare_words(text);
    text = quoted;
  }
  Builder builder(label, max_depth);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

std::string write_json(const Json& value) {
  std::string out;
  write(out, value);
  return out;
}

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  auto scientific = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  std::string_view text(buffer, static_cast<size_t>(scientific.ptr - buffer));
  int exponent = 0;
  size_t e = text.find('e');
  const char* digits = text.data() + e + 1;
  std::from_chars(*digits == '+' ? digits + 1 : digits, text.data() + text.size(), exponent);
  // Python changes to an exponent outside of these bounds; its spelling is then that of to_chars.
  if (exponent < -4 || exponent >= 16) return std::string(text);
  auto fixed = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed);
  std::string out(buffer, fixed.ptr);
  if (out.find('.') == std::string::npos) out += ".0";
  return out;
}

}  // namespace umbra::io
