// The JSON of a .pt2 file as the structs of its schema; errors say where in the JSON they are.
#include <limits>

#include "io/pt2_fields.h"
#include "umbra/core/error.h"
#include "umbra/io/json.h"

namespace umbra::io::pt2 {
namespace {

/// Fills structs from JSON, and knows at any time where in the JSON it is.
class Reader {
 public:
  explicit Reader(std::string label) : label_(std::move(label)) {}

  /// Reads the whole text; errors say where.
  template <class T> void run(const Json& json, T& out) {
    try {
      read(json, out);
    } catch (const Error& error) {
      std::string where;
      for (const Step& step : path_)
        where += step.name.empty() ? concat("[", step.index, "]") : concat(where.empty() ? "" : ".", step.name);
      fail<ValueError>("'", label_, "' is not a valid program", where.empty() ? "" : ": " + where, ": ", error.what());
    }
  }

 private:
  /// A member by name, or an element by number.
  struct Step {
    std::string_view name;
    size_t index = 0;
  };

  /// What `fields` calls for a struct.
  struct Fields {
    Reader& reader;
    const Json& json;
    template <class T> void operator()(const char* name, T& out) { get(name, out, true); }
    template <class T> void operator()(const char* name, std::optional<T>& out) { get(name, out, false); }
    template <class T> void defaulted(const char* name, T& out) { get(name, out, false); }
    template <class T> void get(const char* name, T& out, bool required) {
      const Json* value = json.find(name);
      if (!value || (value->is_null() && !required)) {
        check<ValueError>(!required, "the field '", name, "' is missing");
        return;
      }
      reader.at({name}, [&] { reader.read(*value, out); });
    }
  };

  /// The path keeps a step when what is below it fails, so that run() can tell it.
  template <class F> void at(Step step, F&& action) {
    path_.push_back(step);
    action();
    path_.pop_back();
  }

  template <class T> void read(const Json& json, T& out) {
    json.object();  // an error where it is none
    Fields visitor{*this, json};
    fields(visitor, out);
  }
  void read(const Json& json, bool& out) { out = json.as_bool(); }
  void read(const Json& json, int64_t& out) { out = json.as_int(); }
  void read(const Json& json, std::string& out) { out = json.as_string(); }
  void read(const Json& json, double& out) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (!json.is_string()) {
      out = json.as_float();
    } else if (json.as_string() == "Infinity" || json.as_string() == "-Infinity") {
      out = json.as_string()[0] == '-' ? -kInfinity : kInfinity;
    } else {
      check<ValueError>(json.as_string() == "NaN", "expected a number, found the string '", json.as_string(), "'");
      out = std::numeric_limits<double>::quiet_NaN();
    }
  }

  template <class E, size_t N>
  void read_enum(const Json& json, E& out, const std::pair<int64_t, E> (&table)[N], const char* what) {
    int64_t number = json.as_int();
    for (const auto& [known, value] : table)
      if (known == number) {
        out = value;
        return;
      }
    fail<ValueError>(what, " number ", number, " is not known");
  }
  void read(const Json& json, DType& out) { read_enum(json, out, kDTypes, "dtype"); }
  void read(const Json& json, Layout& out) { read_enum(json, out, kLayoutNumbers, "layout"); }
  void read(const Json& json, MemoryFormat& out) { read_enum(json, out, kMemoryFormats, "memory format"); }
  void read(const Json& json, ArgumentKind& out) { read_enum(json, out, kArgumentKinds, "argument kind"); }

  void read(const Json& json, Device& out) {
    std::string type;
    std::optional<int64_t> index;
    Fields visitor{*this, json};
    visitor("type", type);
    visitor("index", index);
    check<ValueError>(type.find(':') == std::string::npos, "'", type, "' is no device type");
    out = Device(type);
    if (!index) return;
    check<ValueError>(*index >= 0 && *index < 128, "device index ", *index, " is out of range");
    out.index = static_cast<int8_t>(*index);
  }
  void read(const Json& json, std::complex<double>& out) {
    double real = 0, imaginary = 0;
    Fields visitor{*this, json};
    visitor("real", real);
    visitor("imag", imaginary);
    out = {real, imaginary};
  }
  /// `true`, and `[]` in older files: what stands there says nothing.
  void read(const Json&, std::monostate&) {}
  void read(const Json& json, OperatorArgument& out) { out.target = json.as_string(); }
  void read(const Json& json, GraphArgument& out) {
    out.graph = std::make_shared<Graph>();
    Fields visitor{*this, json};
    fields(visitor, out);
  }

  template <class T> void read(const Json& json, std::vector<T>& out) {
    const Json::Array& array = json.array();
    out.reserve(array.size());
    for (size_t i = 0; i < array.size(); ++i) {
      T value{};
      at({{}, i}, [&] { read(array[i], value); });
      out.push_back(std::move(value));
    }
  }
  template <class T> void read(const Json& json, Named<T>& out) {
    out.clear();
    for (const auto& [name, member] : json.object()) {
      T value{};
      at({name}, [&] { read(member, value); });
      out.emplace_back(name, std::move(value));
    }
  }
  template <class T> void read(const Json& json, std::optional<T>& out) {
    if (json.is_null()) return;
    T value{};
    read(json, value);
    out = std::move(value);
  }

  // ---- unions ----
  void read(const Json& json, Argument& out) { read_union(json, out.value); }
  template <class... T> void read(const Json& json, std::variant<T...>& out) { read_union(json, out); }
  /// A union of its own, though it reads as an optional here.
  void read(const Json& json, OptionalTensorArgument& out) {
    const auto& [member, value] = only_member(json);
    if (member == "as_none") return;
    check<ValueError>(member == "as_tensor", "the member '", member, "' is not known");
    at({member}, [&] { read(value, out.emplace()); });
  }

  const std::pair<std::string, Json>& only_member(const Json& json) {
    const Json::Object& members = json.object();
    check<ValueError>(members.size() == 1, "a union must have exactly one member set, and ", members.size(), " are");
    return members[0];
  }
  template <class... T> void read_union(const Json& json, std::variant<T...>& out) {
    const auto& [member, value] = only_member(json);
    // PyTorch 2.4 writes a constant bool under as_int.
    if constexpr ((std::is_same_v<T, bool> || ...) && (std::is_same_v<T, int64_t> || ...))
      if (member == "as_int" && value.is_bool()) {
        out = value.as_bool();
        return;
      }
    size_t index = 0;
    for (const char* name : Members<std::variant<T...>>::kNames) {
      if (member == name) {
        at({member}, [&] { read_alternative(index, value, out, std::index_sequence_for<T...>()); });
        return;
      }
      ++index;
    }
    fail<ValueError>("the member '", member, "' is not known");
  }
  template <class V, size_t... I>
  void read_alternative(size_t index, const Json& json, V& out, std::index_sequence<I...>) {
    (void)((I == index ? (read(json, out.template emplace<I>()), true) : false) || ...);
  }

  std::string label_;
  std::vector<Step> path_;
};

}  // namespace

const char* Argument::member() const { return Members<decltype(value)>::kNames[value.index()]; }

ExportedProgram parse_program(std::string_view text, const std::string& label) {
  Json json = parse_json(text, label);
  // Another schema may have any form: say that, rather than what its first difference looks like.
  if (const Json* version = json.is_object() ? json.find("schema_version") : nullptr; version && version->is_object()) {
    const Json *major = version->find("major"), *minor = version->find("minor");
    if (major && major->is_int() && minor && minor->is_int()) {
      int64_t number = major->as_int();
      bool known = (number >= 5 && number <= 8) || (number == 0 && minor->as_int() == 0);
      check<ValueError>(known, "'", label, "' has schema version ", number, ".", minor->as_int(),
                        ", which is not known; versions 5 to 8 are");
    }
  }
  ExportedProgram program;
  program.opset_version.clear();
  Reader(label).run(json, program);
  const Json* dialect = json.find("dialect");
  if (program.verifiers.empty() && dialect && dialect->is_string()) program.verifiers = {dialect->as_string()};
  return program;
}

PayloadConfig parse_payload_config(std::string_view text, const std::string& label) {
  PayloadConfig config;
  Reader(label).run(parse_json(text, label), config);
  return config;
}

}  // namespace umbra::io::pt2
