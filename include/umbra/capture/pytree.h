// Nested arguments: lists, tuples, dicts and named tuples of leaves, taken apart and put together again.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "umbra/core/value.h"

namespace UMBRA_API umbra {

/// The shape of a nest: what `flatten` leaves behind and `unflatten` needs. A leaf has no children.
struct TreeSpec {
  enum class Kind : uint8_t { Leaf, Tuple, List, Dict, NamedTuple };
  Kind kind = Kind::Leaf;
  std::vector<std::string> keys;  // of a dict, or the fields of a named tuple
  std::string type;               // the name of a named tuple's type, or of a special tuple, list or dict
  std::vector<TreeSpec> children;
  std::string context;  // what files say of the type besides, as JSON; empty where the keys say it

  size_t leaf_count() const;
  bool operator==(const TreeSpec&) const = default;
  static TreeSpec leaf() { return {}; }
  static TreeSpec tuple(std::vector<TreeSpec> children) { return {Kind::Tuple, {}, {}, std::move(children), {}}; }
  static TreeSpec list(std::vector<TreeSpec> children) { return {Kind::List, {}, {}, std::move(children), {}}; }
  static TreeSpec dict(std::vector<std::string> keys, std::vector<TreeSpec> children) {
    return {Kind::Dict, std::move(keys), {}, std::move(children), {}};
  }
};

/// A nest of values: `Tree::dict({{"x", x}, {"rest", Tree::list({y, z})}})`.
struct Tree {
  TreeSpec::Kind kind = TreeSpec::Kind::Leaf;
  Value value;  // of a leaf
  std::vector<std::string> keys;
  std::string type, context;  // as TreeSpec has them
  std::vector<Tree> children;

  Tree() = default;
  template <class T>
  requires std::is_constructible_v<Value, T> Tree(T&& leaf) : value(std::forward<T>(leaf)) {}
  static Tree tuple(std::vector<Tree> items);
  static Tree list(std::vector<Tree> items);
  static Tree dict(std::vector<std::pair<std::string, Tree>> items);
};

/// The leaves from left to right, and the shape they stood in.
std::pair<std::vector<Value>, TreeSpec> flatten(const Tree& tree);
/// The nest again; an error where the number of leaves does not fit.
Tree unflatten(const std::vector<Value>& leaves, const TreeSpec& spec);
/// A path to each leaf as Python writes it: `['x']`, `[0][1]`.
std::vector<std::string> leaf_paths(const TreeSpec& spec);
std::string to_string(const TreeSpec& spec);

}  // namespace umbra
