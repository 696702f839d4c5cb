// Values and arguments as Python writes them.
#include <cmath>

#include "graph/names.h"
#include "umbra/graph/operator_value.h"
#include "umbra/graph/print.h"

namespace umbra::fx {

namespace {

std::string (*g_object_printer)(const RefCounted&) = nullptr;

std::string quoted(const std::string& text) {
  bool double_quotes = text.find('\'') != std::string::npos && text.find('"') == std::string::npos;
  char quote = double_quotes ? '"' : '\'';
  std::string out(1, quote);
  for (char c : text) {
    if (c == quote || c == '\\') out += '\\';
    if (c == '\n') out += "\\n";
    else if (c == '\t') out += "\\t";
    else if (c == '\r') out += "\\r";
    else out += c;
  }
  return out + quote;
}

std::string device_repr(Device device) {
  std::string text = umbra::to_string(Device(device.type));
  std::string index = device.index >= 0 ? ", index=" + std::to_string(device.index) : "";
  return "device(type='" + text + "'" + index + ")";
}

/// Python's own form of complex numbers loses the sign of negative zeros and does not read back infinities.
std::string complex_repr(std::complex<double> c) {
  auto awkward = [](double v) { return v == 0 && std::signbit(v) || !std::isfinite(v); };
  if (awkward(c.real()) || awkward(c.imag())) return concat("complex(", c.real(), ", ", c.imag(), ")");
  return umbra::to_string(Scalar(c));
}

std::string tensor_repr(const Tensor& tensor) {
  if (!tensor.defined()) return "None";
  return concat("torch.Tensor(size=", tensor.sym_sizes(), ", dtype=", name(tensor.dtype()), ")");
}

template <class Items, class Text> std::string joined(const Items& items, Text text) {
  std::string out;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ", ";
    out += text(item);
    first = false;
  }
  return out;
}

template <class Text> std::string list_text(const Value& value, Text text) {
  switch (value.tag()) {
    case Value::Tag::IntList: return "[" + joined(value.int_list(), [](SymInt v) { return umbra::to_string(v); }) + "]";
    case Value::Tag::DoubleList: return "[" + joined(value.double_list(), [](double v) { return concat(v); }) + "]";
    case Value::Tag::BoolList: return "[" + joined(value.bool_list(), [](bool v) { return concat(v); }) + "]";
    case Value::Tag::TensorList: return "[" + joined(value.tensor_list(), tensor_repr) + "]";
    default: return "[" + joined(value.list(), text) + "]";
  }
}

bool is_literal_key(const std::string& key) { return !key.empty() && key[0] == kLiteralKey; }

/// A tree with its containers written as Python does; `leaf` writes nodes and values, `key` the keys of dicts.
template <class Leaf, class Key> std::string tree_text(const Argument& argument, Leaf leaf, Key key) {
  auto recurse = [&](const Argument& item) { return tree_text(item, leaf, key); };
  switch (argument.kind()) {
    case Argument::Kind::List: return "[" + joined(argument.items(), recurse) + "]";
    case Argument::Kind::Tuple:
      return "(" + joined(argument.items(), recurse) + (argument.items().size() == 1 ? ",)" : ")");
    case Argument::Kind::Slice:  // Python prints it by itself in both forms
      return "slice(" + joined(argument.items(), [](const Argument& item) { return python_repr(item); }) + ")";
    case Argument::Kind::Dict: {
      std::string out = "{";
      for (size_t i = 0; i < argument.items().size(); ++i)
        out += (i ? ", " : "") + key(argument.keys()[i]) + ": " + recurse(argument.items()[i]);
      return out + "}";
    }
    default: return leaf(argument);
  }
}

}  // namespace

void set_object_printer(std::string (*printer)(const RefCounted& object)) { g_object_printer = printer; }

std::string python_repr(const Value& value) {
  switch (value.tag()) {
    case Value::Tag::String: return quoted(value.to_string());
    case Value::Tag::Device: return device_repr(value.to_device());
    case Value::Tag::Complex: return complex_repr(value.to_complex());
    case Value::Tag::Tensor: return tensor_repr(value.tensor_ref());
    case Value::Tag::IntList:
    case Value::Tag::DoubleList:
    case Value::Tag::BoolList:
    case Value::Tag::TensorList:
    case Value::Tag::List: return list_text(value, [](const Value& v) { return python_repr(v); });
    case Value::Tag::Object:
      if (const Operator* op = operator_in(value)) return Target(*op).text();
      if (const std::string* missing = missing_operator_in(value)) return *missing;
      return g_object_printer ? g_object_printer(*value.object()) : umbra::to_string(value);
    default: return umbra::to_string(value);
  }
}

std::string python_str(const Value& value) {
  switch (value.tag()) {
    case Value::Tag::String: return value.to_string();
    case Value::Tag::Device: return umbra::to_string(value.to_device());
    case Value::Tag::Complex: return umbra::to_string(value.to_scalar());
    case Value::Tag::List: return list_text(value, [](const Value& v) { return python_str(v); });
    case Value::Tag::Object:
      if (const Operator* op = operator_in(value))
        return Target(*op).text().substr(std::string_view("torch.ops.").size());
      return python_repr(value);
    default: return python_repr(value);
  }
}

std::string python_repr(const Argument& argument) {
  return tree_text(
      argument,
      [](const Argument& leaf) { return leaf.is_node() ? name_in_code(*leaf.node()) : python_repr(leaf.value()); },
      [](const std::string& key) { return is_literal_key(key) ? key.substr(1) : quoted(key); });
}

std::string format_argument(const Argument& argument) {
  return tree_text(
      argument,
      [](const Argument& leaf) { return leaf.is_node() ? "%" + leaf.node()->name() : python_str(leaf.value()); },
      [](const std::string& key) { return is_literal_key(key) ? key.substr(1) : key; });
}

const char* short_name(DType dtype) {
  switch (dtype) {
    case DType::UInt8: return "u8";
    case DType::Int8: return "i8";
    case DType::Int16: return "i16";
    case DType::Int32: return "i32";
    case DType::Int64: return "i64";
    case DType::Float16: return "f16";
    case DType::Float32: return "f32";
    case DType::Float64: return "f64";
    case DType::Complex32: return "c32";
    case DType::Complex64: return "c64";
    case DType::Complex128: return "c128";
    case DType::Bool: return "b8";
    case DType::BFloat16: return "bf16";
    case DType::Float8E5M2: return "f8e5m2";
    case DType::Float8E4M3: return "f8e4m3fn";
    case DType::Float8E5M2FNUZ: return "f8e5m2fnuz";
    case DType::Float8E4M3FNUZ: return "f8e4m3fnuz";
    case DType::Float8E8M0FNU: return "f8e8m0fnu";
    case DType::UInt16: return "u16";
    case DType::UInt32: return "u32";
    case DType::UInt64: return "u64";
    case DType::Undefined: break;
  }
  return "undefined";
}

}  // namespace umbra::fx
