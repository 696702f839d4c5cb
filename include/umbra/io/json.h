// JSON as plain data: objects keep the order of their members, integers keep all 64 bits, hostile text gives an error.
//
//     Json value = parse_json(R"({"sizes": [2, 3], "name": "x"})", "config.json");
//     value.find("sizes")->array()[1].as_int();     // 3
//     write_json(value);                            // as Python's json.dumps writes it
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "umbra/core/export.h"

namespace UMBRA_API umbra {
namespace io {

class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  Json() = default;
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  Json(int64_t value) : value_(value) {}
  Json(int value) : value_(static_cast<int64_t>(value)) {}
  Json(double value) : value_(value) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_int() const { return std::holds_alternative<int64_t>(value_); }
  bool is_float() const { return std::holds_alternative<double>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // Access; an error names the kind that was expected and the one that is there.
  bool as_bool() const;
  int64_t as_int() const;
  /// A float or an integer.
  double as_float() const;
  const std::string& as_string() const;
  const Array& array() const;
  const Object& object() const;
  Array& array() { return const_cast<Array&>(std::as_const(*this).array()); }
  Object& object() { return const_cast<Object&>(std::as_const(*this).object()); }
  /// The member of that name, or null.
  const Json* find(std::string_view name) const;
  /// "an object", "a string": for messages.
  const char* kind() const;
  bool operator==(const Json&) const = default;

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> value_;
};

/// Parses text that may be hostile: at most `max_depth` levels, no member twice, valid UTF-8, nothing after the value.
/// The bare words Infinity, -Infinity and NaN, which Python's writer leaves in files of older PyTorch, come as strings
/// of that name: the form in which newer files have them. `label` is what errors call the text.
Json parse_json(std::string_view text, const std::string& label, int max_depth = 512);

/// The text that Python's json.dumps gives: `{"a": [1, 2.0]}`, ASCII only.
std::string write_json(const Json& value);

/// The shortest text that reads back as the same float, in Python's spelling: 5.0, 1e-05, 1e+16, inf.
std::string float_repr(double value);

}  // namespace io
}  // namespace umbra
