#include "umbra/graph/origin.h"

#include "umbra/graph/graph.h"

namespace umbra::fx {

namespace {

constexpr const char* kKey = "from_node";

/// A target as Python's `str` has it.
std::string target_text(const Target& target) {
  const Function* function = target.function();
  if (function && function->name.starts_with("operator."))
    return "<built-in function " + std::string(function->short_name()) + ">";
  if (function) return std::string(function->short_name());
  std::string text = target.text();
  return target.op() && text.starts_with("torch.ops.") ? text.substr(10) : text;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string list_text(const Value& origins) {
  if (origins.is_string()) return origins.to_string();
  const auto* one = origins.is_object() ? dynamic_cast<const Origin*>(origins.object()) : nullptr;
  return one ? "[" + one->text() + "]" : "[]";
}

}  // namespace

Origin::Origin(const Node& node, const char* pass, const char* action)
    : name_(node.name()), target_(node.target()), graph_(&node.graph()), pass_(pass), action_(action) {
  if (const Value* from = node.meta.find(kKey)) from_ = *from;
}

Origin::Origin(const Node& node, const char* pass, const char* action, IntrusivePtr<Origin> from)
    : Origin(node, pass, action) {
  from_ = Value::object(std::move(from));
}

std::string Origin::text() const {
  return concat("{\"name\": ", quoted(name_), ", \"target\": ", quoted(target_text(target_)),
                ", \"graph_id\": ", reinterpret_cast<uintptr_t>(graph_), ", \"pass_name\": ", quoted(pass_),
                ", \"action\": ", quoted(action_), ", \"from_node\": ", list_text(from_), "}");
}

bool has_origin(const Node& node) { return node.meta.find(kKey) != nullptr; }

void set_origin(Node& node, IntrusivePtr<Origin> origin) { node.meta.set(kKey, Value::object(std::move(origin))); }

std::optional<std::string> origins_text(const Meta& meta) {
  const Value* origins = meta.find(kKey);
  return origins ? std::optional(list_text(*origins)) : std::nullopt;
}

void set_origins_text(Meta& meta, std::string text) { meta.set(kKey, Value(std::move(text))); }

}  // namespace umbra::fx
