#include "annotations.h"

#include "umbra/graph/print.h"
#include "umbra/io/json.h"

namespace umbra::io {

namespace {

/// As Python's `repr` has it.
std::string python_text(const Json& value) {
  if (value.is_null()) return "None";
  if (value.is_bool()) return value.as_bool() ? "True" : "False";
  if (value.is_int()) return std::to_string(value.as_int());
  if (value.is_float()) return fx::python_repr(Value(value.as_float()));
  if (value.is_string()) return fx::python_repr(Value(value.as_string()));
  std::string out;
  auto add = [&](const std::string& text) {
    if (!out.empty()) out += ", ";
    out += text;
  };
  if (value.is_array()) {
    for (const Json& item : value.array()) add(python_text(item));
    return "[" + out + "]";
  }
  for (const auto& [key, item] : value.object()) add(fx::python_repr(Value(key)) + ": " + python_text(item));
  return "{" + out + "}";
}

class FileAnnotations final : public fx::Annotations {
 public:
  explicit FileAnnotations(Json notes) : notes_(std::move(notes)) {}

  std::string json() const override { return write_json(notes_); }
  IntrusivePtr<fx::Annotations> copy() const override { return make_counted<FileAnnotations>(notes_); }
  std::string shown() const override {
    if (!notes_.is_object()) return python_text(notes_);
    constexpr size_t kLongest = 40;
    std::string out;
    for (const auto& [key, value] : notes_.object()) {
      std::string text = value.is_string() ? value.as_string() : python_text(value);
      if (text.size() > kLongest)
        text = fx::python_repr(Value(concat(std::string_view(text).substr(0, kLongest), "...")));
      else text = python_text(value);
      out += concat(out.empty() ? "" : ", ", fx::python_repr(Value(key)), ": ", text);
    }
    return "{" + out + "}";
  }

 private:
  Json notes_;
};

}  // namespace

IntrusivePtr<fx::Annotations> read_annotations(const std::string& text) {
  return make_counted<FileAnnotations>(parse_json(text, "custom metadata of a node"));
}

}  // namespace umbra::io
