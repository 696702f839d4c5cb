// The structs of a .pt2 file's schema as JSON.
#include <cmath>

#include "io/pt2_fields.h"
#include "umbra/core/error.h"
#include "umbra/io/json.h"

namespace umbra::io::pt2 {
namespace {

template <class T> Json to_json(const T& value);

/// What `fields` calls for a struct: every field is written, set or not.
struct FieldWriter {
  Json::Object out;
  template <class T> void operator()(const char* name, T& value) { out.emplace_back(name, to_json(value)); }
  template <class T> void defaulted(const char* name, T& value) { (*this)(name, value); }
};

template <class E, size_t N> Json enum_json(E value, const std::pair<int64_t, E> (&table)[N], const char* what) {
  for (const auto& [number, known] : table)
    if (known == value) return number;
  fail<ValueError>("a .pt2 file has no number for this ", what);
}

template <class T> struct Write {
  static Json json(const T& value) {
    FieldWriter writer;
    fields(writer, const_cast<T&>(value));  // the writer only reads
    return std::move(writer.out);
  }
};
template <> struct Write<bool> {
  static Json json(bool value) { return value; }
};
template <> struct Write<int64_t> {
  static Json json(int64_t value) { return value; }
};
template <> struct Write<std::string> {
  static Json json(const std::string& value) { return value; }
};
template <> struct Write<double> {
  static Json json(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return value;
  }
};
template <> struct Write<DType> {
  static Json json(DType value) { return enum_json(value, kDTypes, "dtype"); }
};
template <> struct Write<Layout> {
  static Json json(Layout value) { return enum_json(value, kLayoutNumbers, "layout"); }
};
template <> struct Write<MemoryFormat> {
  static Json json(MemoryFormat value) { return enum_json(value, kMemoryFormats, "memory format"); }
};
template <> struct Write<ArgumentKind> {
  static Json json(ArgumentKind value) { return enum_json(value, kArgumentKinds, "argument kind"); }
};
template <> struct Write<Device> {
  static Json json(Device value) {
    Json index = value.index < 0 ? Json() : Json(int64_t{value.index});
    return Json::Object{{"type", to_string(Device(value.type))}, {"index", index}};
  }
};
template <> struct Write<std::complex<double>> {
  static Json json(std::complex<double> value) {
    return Json::Object{{"real", to_json(value.real())}, {"imag", to_json(value.imag())}};
  }
};
template <> struct Write<std::monostate> {
  static Json json(std::monostate) { return true; }
};
template <> struct Write<OperatorArgument> {
  static Json json(const OperatorArgument& value) { return value.target; }
};
template <> struct Write<OptionalTensorArgument> {
  static Json json(const OptionalTensorArgument& value) {
    return value ? Json::Object{{"as_tensor", to_json(*value)}} : Json::Object{{"as_none", true}};
  }
};
template <class T> struct Write<std::optional<T>> {
  static Json json(const std::optional<T>& value) { return value ? to_json(*value) : Json(); }
};
template <class T> struct Write<std::vector<T>> {
  static Json json(const std::vector<T>& values) {
    Json::Array out;
    out.reserve(values.size());
    for (const T& value : values) out.push_back(to_json(value));
    return out;
  }
};
template <class T> struct Write<Named<T>> {
  static Json json(const Named<T>& values) {
    Json::Object out;
    out.reserve(values.size());
    for (const auto& [name, value] : values) out.emplace_back(name, to_json(value));
    return out;
  }
};
template <class... T> struct Write<std::variant<T...>> {
  static Json json(const std::variant<T...>& value) {
    const char* member = Members<std::variant<T...>>::kNames[value.index()];
    return Json::Object{{member, std::visit([](const auto& inner) { return to_json(inner); }, value)}};
  }
};
template <> struct Write<Argument> {
  static Json json(const Argument& value) { return to_json(value.value); }
};

template <class T> Json to_json(const T& value) { return Write<T>::json(value); }

}  // namespace

std::string write_program(const ExportedProgram& program) {
  if (program.schema_version.major == SchemaVersion().major) return write_json(to_json(program));
  ExportedProgram current = program;  // an older program is written in today's form
  current.schema_version = {};
  return write_json(to_json(current));
}
std::string write_payload_config(const PayloadConfig& config) { return write_json(to_json(config)); }

}  // namespace umbra::io::pt2
