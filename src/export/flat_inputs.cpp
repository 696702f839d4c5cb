#include "export/flat_inputs.h"

namespace umbra {

FlatInputs flatten_inputs(const Tree& arguments, const Tree& keywords, const std::vector<std::string>& argument_names) {
  FlatInputs flat;
  auto add = [&](const std::string& name, const Tree& tree) {
    auto [leaves, spec] = flatten(tree);
    std::vector<std::string> paths = leaf_paths(spec);
    for (size_t i = 0; i < leaves.size(); ++i) {
      std::string suffix;
      for (char c : paths[i]) {
        if (c == '[' || c == '.') suffix += '_';
        else if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') suffix += c;
      }
      flat.values.push_back(leaves[i]);
      flat.names.push_back(name + suffix);
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
