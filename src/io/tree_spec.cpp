#include <nlohmann/json.hpp>

#include "umbra/io/program.h"
#include "umbra/io/pt2_program.h"

namespace umbra::io {

namespace {

using Json = nlohmann::ordered_json;
using Kind = TreeSpec::Kind;
constexpr int kMaxDepth = 200;

Json to_json(const TreeSpec& spec) {
  Json out = Json::object();
  Json children = Json::array();
  for (const TreeSpec& child : spec.children) children.push_back(to_json(child));
  switch (spec.kind) {
    case Kind::Leaf:
      out["type"] = nullptr;
      out["context"] = nullptr;
      break;
    case Kind::Tuple:
      out["type"] = "builtins.tuple";
      out["context"] = "null";
      break;
    case Kind::List:
      out["type"] = "builtins.list";
      out["context"] = "null";
      break;
    case Kind::Dict:
    case Kind::NamedTuple: {
      // The context is itself JSON, with Python's separators.
      std::string keys = "[";
      for (size_t i = 0; i < spec.keys.size(); ++i) keys += (i ? ", " : "") + Json(spec.keys[i]).dump();
      out["type"] = spec.kind == Kind::Dict ? "builtins.dict" : spec.type;
      out["context"] = keys + "]";
      break;
    }
  }
  out["children_spec"] = std::move(children);
  return out;
}

// Python's json.dumps: a space after each comma and colon.
std::string dump_like_python(const Json& value) {
  std::string compact = value.dump(-1, ' ', true), out;
  bool quoted = false, escaped = false;
  for (char c : compact) {
    out += c;
    if (escaped) escaped = false;
    else if (c == '\\') escaped = quoted;
    else if (c == '"') quoted = !quoted;
    else if (!quoted && (c == ',' || c == ':')) out += ' ';
  }
  return out;
}

TreeSpec from_json(const Json& value, int depth) {
  check<ValueError>(depth < kMaxDepth, "a tree specification is nested too deeply");
  check<ValueError>(value.is_object() && value.contains("type") && value.contains("children_spec") &&
                        value["children_spec"].is_array(),
                    "not a tree specification");
  TreeSpec spec;
  if (value["type"].is_null()) return spec;
  check<ValueError>(value["type"].is_string(), "a tree specification's type is no text");
  std::string type = value["type"];
  if (type == "builtins.tuple") spec.kind = Kind::Tuple;
  else if (type == "builtins.list") spec.kind = Kind::List;
  else {
    spec.kind = type == "builtins.dict" ? Kind::Dict : Kind::NamedTuple;
    if (spec.kind == Kind::NamedTuple) spec.type = type;
    const Json& context = value.contains("context") ? value["context"] : Json();
    Json keys = context.is_string() ? Json::parse(context.get<std::string>(), nullptr, false) : Json();
    check<ValueError>(keys.is_array(), "a tree specification of type ", type, " lacks its keys");
    for (const Json& key : keys) spec.keys.push_back(key.is_string() ? key.get<std::string>() : key.dump());
  }
  for (const Json& child : value["children_spec"]) spec.children.push_back(from_json(child, depth + 1));
  check<ValueError>(spec.keys.empty() || spec.keys.size() == spec.children.size(),
                    "a tree specification has keys without values");
  return spec;
}

}  // namespace

std::string write_tree_spec(const TreeSpec& spec) { return dump_like_python(Json::array({1, to_json(spec)})); }

TreeSpec parse_tree_spec(const std::string& text) {
  Json value = Json::parse(text, nullptr, false);
  check<ValueError>(value.is_array() && value.size() == 2 && value[0] == 1, "not a tree specification of version 1");
  return from_json(value[1], 0);
}

}  // namespace umbra::io
