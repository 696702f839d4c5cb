// Tree specifications as PyTorch writes them: JSON, in which the keys of a dict are JSON once more.
#include "umbra/io/json.h"
#include "umbra/io/program.h"
#include "umbra/io/pt2_program.h"

namespace umbra::io {

namespace {

using Kind = TreeSpec::Kind;
constexpr int kMaxDepth = 200;
constexpr const char* kLabel = "a tree specification";

Json node(Json type, Json context, const TreeSpec& spec);

Json to_json(const TreeSpec& spec) {
  switch (spec.kind) {
    case Kind::Leaf: return node(nullptr, nullptr, spec);
    case Kind::Tuple: return node("builtins.tuple", "null", spec);
    case Kind::List: return node("builtins.list", "null", spec);
    case Kind::Dict:
    case Kind::NamedTuple: break;
  }
  Json::Array keys(spec.keys.begin(), spec.keys.end());
  return node(spec.kind == Kind::Dict ? "builtins.dict" : spec.type, write_json(std::move(keys)), spec);
}

Json node(Json type, Json context, const TreeSpec& spec) {
  Json::Array children;
  for (const TreeSpec& child : spec.children) children.push_back(to_json(child));
  return Json::Object{
      {"type", std::move(type)}, {"context", std::move(context)}, {"children_spec", std::move(children)}};
}

std::vector<std::string> read_keys(const std::string& type, const Json* context) {
  check<ValueError>(context && context->is_string(), kLabel, " of type ", type, " lacks its keys");
  Json keys = parse_json(context->as_string(), kLabel);
  check<ValueError>(keys.is_array(), kLabel, " of type ", type, " lacks its keys");
  std::vector<std::string> names;
  for (const Json& key : keys.array()) names.push_back(key.is_string() ? key.as_string() : write_json(key));
  return names;
}

TreeSpec from_json(const Json& value, int depth) {
  check<ValueError>(depth < kMaxDepth, kLabel, " is nested too deeply");
  const Json* type = value.is_object() ? value.find("type") : nullptr;
  const Json* children = value.is_object() ? value.find("children_spec") : nullptr;
  check<ValueError>(type && children && children->is_array(), "not ", kLabel);
  TreeSpec spec;
  if (type->is_null()) return spec;
  check<ValueError>(type->is_string(), kLabel, "'s type is no text");
  const std::string& name = type->as_string();
  if (name == "builtins.tuple") spec.kind = Kind::Tuple;
  else if (name == "builtins.list") spec.kind = Kind::List;
  else {
    spec.kind = name == "builtins.dict" ? Kind::Dict : Kind::NamedTuple;
    if (spec.kind == Kind::NamedTuple) spec.type = name;
    spec.keys = read_keys(name, value.find("context"));
  }
  for (const Json& child : children->array()) spec.children.push_back(from_json(child, depth + 1));
  check<ValueError>(spec.keys.empty() || spec.keys.size() == spec.children.size(), kLabel, " has keys without values");
  return spec;
}

}  // namespace

std::string write_tree_spec(const TreeSpec& spec) { return write_json(Json::Array{1, to_json(spec)}); }

TreeSpec parse_tree_spec(const std::string& text) {
  Json value = parse_json(text, kLabel);
  bool first_version = value.is_array() && value.array().size() == 2 && value.array()[0] == Json(1);
  check<ValueError>(first_version, "not ", kLabel, " of version 1");
  return from_json(value.array()[1], 0);
}

}  // namespace umbra::io
