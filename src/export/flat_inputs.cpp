#include "export/flat_inputs.h"

namespace umbra {

namespace {

/// The path of a leaf as a part of a name: `['my-key'][0].field` is `_my_key_0_field`.
std::string name_of_path(const std::string& path) {
  std::string out;
  auto add = [&](char c) {
    bool continues = (static_cast<unsigned char>(c) & 0xC0) == 0x80;  // a letter of several bytes
    if (!continues) out += std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
  };
  for (size_t at = 0; at < path.size();) {
    if (path[at] != '[') {
      add(path[at++]);
      continue;
    }
    bool quoted = at + 1 < path.size() && path[at + 1] == '\'';
    size_t first = at + (quoted ? 2 : 1), end = std::min(path.find(quoted ? "']" : "]", first), path.size());
    out += '_';
    for (size_t i = first; i < end; ++i) add(path[i]);
    at = end + (quoted ? 2 : 1);
  }
  return out;
}

}  // namespace

FlatInputs flatten_inputs(const Tree& arguments, const Tree& keywords, const std::vector<std::string>& argument_names) {
  FlatInputs flat;
  auto add = [&](const std::string& name, const Tree& tree) {
    auto [leaves, spec] = flatten(tree);
    std::vector<std::string> paths = leaf_paths(spec);
    for (size_t i = 0; i < leaves.size(); ++i) {
      flat.values.push_back(leaves[i]);
      flat.names.push_back(name + name_of_path(paths[i]));
      flat.paths.push_back(name + paths[i]);
    }
    return spec;
  };
  TreeSpec positional = TreeSpec::tuple({}), named = TreeSpec::dict({}, {});
  for (size_t i = 0; i < arguments.children.size(); ++i)
    positional.children.push_back(
        add(i < argument_names.size() ? argument_names[i] : "arg" + std::to_string(i), arguments.children[i]));
  for (size_t i = 0; i < keywords.children.size(); ++i) {
    named.keys.push_back(keywords.keys[i]);
    named.children.push_back(add(keywords.keys[i], keywords.children[i]));
  }
  flat.spec = TreeSpec::tuple({std::move(positional), std::move(named)});
  return flat;
}

}  // namespace umbra
