// Tree specifications as PyTorch writes them: JSON, in which the keys of a dict are JSON once more.
#include "umbra/io/json.h"
#include "umbra/io/program.h"
#include "umbra/io/pt2_program.h"

namespace umbra::io {

namespace {

using Kind = TreeSpec::Kind;
constexpr int kMaxDepth = 200;
constexpr const char* kLabel = "a tree specification";
constexpr const char* kNamedTuple = "collections.namedtuple";

using Fields = pt2::Named<pt2::NamedTupleDef>;

const pt2::NamedTupleDef* find_fields(const Fields& fields, const std::string& type) {
  auto found = std::ranges::find(fields, type, &pt2::Entry<pt2::NamedTupleDef>::name);
  return found == fields.end() ? nullptr : &found->value;
}

Json node(Json type, Json context, const TreeSpec& spec);

const char* plain_type(Kind kind) {
  return kind == Kind::Tuple ? "builtins.tuple" : kind == Kind::List ? "builtins.list" : "builtins.dict";
}

Json to_json(const TreeSpec& spec) {
  if (spec.kind == Kind::Leaf) return node(nullptr, nullptr, spec);
  Json type = spec.type.empty() ? plain_type(spec.kind) : spec.type;
  if (!spec.context.empty()) return node(std::move(type), parse_json(spec.context, kLabel), spec);
  if (spec.kind == Kind::Tuple || spec.kind == Kind::List) return node(std::move(type), "null", spec);
  Json::Array keys(spec.keys.begin(), spec.keys.end());
  return node(std::move(type), write_json(std::move(keys)), spec);
}

Json node(Json type, Json context, const TreeSpec& spec) {
  Json::Array children;
  for (const TreeSpec& child : spec.children) children.push_back(to_json(child));
  return Json::Object{
      {"type", std::move(type)}, {"context", std::move(context)}, {"children_spec", std::move(children)}};
}

/// What a context that is a list names: texts, or lists of texts of which the first is meant (the fields of a
/// dataclass).
std::vector<std::string> names_in(const Json& context) {
  std::vector<std::string> names;
  if (!context.is_array()) return names;
  const Json::Array& items = context.array();
  if (!items.empty() && items[0].is_array()) return names_in(items[0]);
  for (const Json& key : items) names.push_back(key.is_string() ? key.as_string() : write_json(key));
  return names;
}

/// The keys or fields of a node: its context is a text of JSON, but for defaultdicts, which have more to say.
std::vector<std::string> read_keys(const Json& context) {
  const Json* keys = context.is_object() ? context.find("dict_context") : nullptr;
  if (keys) return names_in(*keys);
  if (!context.is_string()) return {};
  try {
    return names_in(parse_json(context.as_string(), kLabel));
  } catch (const Error&) {
    return {};  // the name of a type
  }
}

Kind kind_of(const std::string& type) {
  if (type == "builtins.tuple" || type == "torch.Size" || type.starts_with("torch.return_types.")) return Kind::Tuple;
  if (type == "builtins.list" || type == "collections.deque") return Kind::List;
  if (type == "builtins.dict" || type == "collections.OrderedDict" || type == "collections.defaultdict")
    return Kind::Dict;
  return Kind::NamedTuple;
}

/// The keys of a node that is no dict, whose context may not have them.
std::vector<std::string> field_names(const TreeSpec& spec, const Json& context, const Fields& fields) {
  const pt2::NamedTupleDef* stored = nullptr;
  if (spec.type == kNamedTuple && context.is_string()) stored = find_fields(fields, context.as_string());
  std::vector<std::string> names = stored ? stored->field_names : read_keys(context);
  if (names.size() == spec.children.size()) return names;
  names.clear();
  for (size_t i = 0; i < spec.children.size(); ++i) names.push_back(std::to_string(i));
  return names;
}

TreeSpec from_json(const Json& value, int depth, const Fields& fields) {
  check<ValueError>(depth < kMaxDepth, kLabel, " is nested too deeply");
  const Json* type = value.is_object() ? value.find("type") : nullptr;
  const Json* children = value.is_object() ? value.find("children_spec") : nullptr;
  check<ValueError>(type && children && children->is_array(), "not ", kLabel);
  TreeSpec spec;
  if (type->is_null()) return spec;
  check<ValueError>(type->is_string(), kLabel, "'s type is no text");
  const std::string& name = type->as_string();
  const Json* context = value.find("context");
  check<ValueError>(context && !context->is_null(), kLabel, " of type ", name, " lacks its context");
  spec.kind = kind_of(name);
  if (!name.starts_with("builtins.")) spec.type = name;
  for (const Json& child : children->array()) spec.children.push_back(from_json(child, depth + 1, fields));
  if (spec.kind == Kind::Tuple || spec.kind == Kind::List) {
    if (!spec.type.empty()) spec.context = write_json(*context);
    return spec;
  }
  spec.keys = spec.kind == Kind::NamedTuple ? field_names(spec, *context, fields) : read_keys(*context);
  check<ValueError>(spec.keys.size() == spec.children.size(), kLabel, " of type ", name, " has ", spec.keys.size(),
                    " keys and ", spec.children.size(), " values");
  Json::Array texts(spec.keys.begin(), spec.keys.end());
  if (!context->is_string() || context->as_string() != write_json(std::move(texts)))
    spec.context = write_json(*context);
  return spec;
}

}  // namespace

std::string write_tree_spec(const TreeSpec& spec) { return write_json(Json::Array{1, to_json(spec)}); }

TreeSpec parse_tree_spec(const std::string& text, const Fields& fields) {
  Json value = parse_json(text, kLabel);
  bool first_version = value.is_array() && value.array().size() == 2 && value.array()[0] == Json(1);
  check<ValueError>(first_version, "not ", kLabel, " of version 1");
  return from_json(value.array()[1], 0, fields);
}

void note_fields(const TreeSpec& spec, Fields& fields) {
  for (const TreeSpec& child : spec.children) note_fields(child, fields);
  if (spec.type != kNamedTuple) return;
  Json type = parse_json(spec.context, kLabel);
  if (type.is_string() && !find_fields(fields, type.as_string())) fields.push_back({type.as_string(), {spec.keys}});
}

}  // namespace umbra::io
