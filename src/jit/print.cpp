// Graphs as TorchScript prints them.
#include <cmath>
#include <cstdio>

#include "umbra/jit/objects.h"

namespace umbra::jit {
namespace {

/// A float with so many digits at most.
std::string shortest(double value, int precision = 6) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "%.*g", precision, value);
  return buffer;
}

/// All digits of a float, with a point in it.
std::string digits(double value) {
  std::string text = shortest(value, 17);
  bool whole = std::isfinite(value) && text.find_first_of(".e") == std::string::npos;
  return whole ? text + "." : text;
}

std::string attribute_text(const Value& value) {
  using Tag = Value::Tag;
  switch (value.tag()) {
    case Tag::Bool: return value.to_bool() ? "1" : "0";
    case Tag::Double: return digits(value.to_double());
    case Tag::String: return quoted(value.to_string());
    case Tag::Device: return "\"" + to_string(value.to_device()) + "\"";
    case Tag::Tensor: {
      const Tensor& t = value.tensor_ref();
      if (t.dim() != 0 || t.is_fake()) return "<Tensor>";
      Scalar item = t.item();
      return concat("{", item.is_floating() ? shortest(item.to_double()) : to_string(Value(item)), "}");
    }
    default: return to_source(value);
  }
}

struct Printer {
  std::string out;
  bool sources;

  void values(const Variables& list) {
    for (size_t i = 0; i < list.size(); ++i) out += (i ? ", %" : "%") + list[i]->debug_name();
  }
  void typed(const OwnVariables& list, const char* separator = ", ") {
    for (size_t i = 0; i < list.size(); ++i)
      out += (i ? separator : "") + ("%" + list[i]->debug_name() + " : " + list[i]->type()->text());
  }
  void node(const Node& n, size_t depth) {
    out.append(depth * 2, ' ');
    typed(n.outputs());
    if (!n.outputs().empty()) out += " = ";
    out += n.is("prim::PythonOp") ? "^" + n.attribute("name")->to_string() : n.kind();
    bool named = !n.attributes.empty() && !n.is("prim::PythonOp");
    for (size_t i = 0; named && i < n.attributes.size(); ++i)
      out += (i ? ", " : "[") + n.attributes[i].first + "=" + attribute_text(n.attributes[i].second);
    if (named) out += "]";
    if (n.is("prim::PythonOp")) out += "()";
    out += "(";
    values(n.inputs);
    out += ")";
    if (sources && !n.scope.empty()) out += ", scope: " + n.scope.str();
    if (sources && !n.source.empty()) out += " # " + n.source.str();
    out += "\n";
    for (size_t i = 0; i < n.blocks().size(); ++i) {
      const Block& inner = *n.blocks()[i];
      out.append(depth * 2 + 2, ' ');
      out += "block" + std::to_string(i) + "(";
      typed(inner.inputs());
      out += "):\n";
      for (const auto& m : inner.nodes()) node(*m, depth + 2);
      out.append(depth * 2 + 4, ' ');
      out += "-> (";
      values(inner.outputs);
      out += ")\n";
    }
  }
};

}  // namespace

std::string Graph::text(bool sources) const {
  Printer p{"graph(", sources};
  p.typed(block_->inputs(), ",\n      ");
  p.out += "):\n";
  for (const auto& n : block_->nodes()) p.node(*n, 1);
  p.out += "  return (";
  p.values(block_->outputs);
  p.out += ")\n";
  return p.out;
}

}  // namespace umbra::jit
