#include "umbra/capture/pytree.h"

namespace umbra {

using Kind = TreeSpec::Kind;

size_t TreeSpec::leaf_count() const {
  if (kind == Kind::Leaf) return 1;
  size_t count = 0;
  for (const TreeSpec& child : children) count += child.leaf_count();
  return count;
}

Tree Tree::tuple(std::vector<Tree> items) {
  Tree tree;
  tree.kind = Kind::Tuple;
  tree.children = std::move(items);
  return tree;
}
Tree Tree::list(std::vector<Tree> items) {
  Tree tree = tuple(std::move(items));
  tree.kind = Kind::List;
  return tree;
}
Tree Tree::dict(std::vector<std::pair<std::string, Tree>> items) {
  Tree tree;
  tree.kind = Kind::Dict;
  for (auto& [key, item] : items) {
    tree.keys.push_back(std::move(key));
    tree.children.push_back(std::move(item));
  }
  return tree;
}

namespace {

TreeSpec flatten_into(const Tree& tree, std::vector<Value>& leaves) {
  TreeSpec spec;
  spec.kind = tree.kind;
  spec.keys = tree.keys;
  spec.type = tree.type;
  spec.context = tree.context;
  if (tree.kind == Kind::Leaf) leaves.push_back(tree.value);
  for (const Tree& child : tree.children) spec.children.push_back(flatten_into(child, leaves));
  return spec;
}

Tree unflatten_from(const std::vector<Value>& leaves, size_t& at, const TreeSpec& spec) {
  Tree tree;
  tree.kind = spec.kind;
  tree.keys = spec.keys;
  tree.type = spec.type;
  tree.context = spec.context;
  if (spec.kind == Kind::Leaf) tree.value = leaves.at(at++);
  for (const TreeSpec& child : spec.children) tree.children.push_back(unflatten_from(leaves, at, child));
  return tree;
}

void collect_paths(const TreeSpec& spec, const std::string& prefix, std::vector<std::string>& out) {
  if (spec.kind == Kind::Leaf) out.push_back(prefix);
  for (size_t i = 0; i < spec.children.size(); ++i) {
    std::string step = spec.kind == Kind::Dict         ? "['" + spec.keys[i] + "']"
                       : spec.kind == Kind::NamedTuple ? "." + spec.keys[i]
                                                       : "[" + std::to_string(i) + "]";
    collect_paths(spec.children[i], prefix + step, out);
  }
}

}  // namespace

std::pair<std::vector<Value>, TreeSpec> flatten(const Tree& tree) {
  std::vector<Value> leaves;
  TreeSpec spec = flatten_into(tree, leaves);
  return {std::move(leaves), std::move(spec)};
}

Tree unflatten(const std::vector<Value>& leaves, const TreeSpec& spec) {
  check<ValueError>(leaves.size() == spec.leaf_count(), "tree_unflatten(leaves, treespec): `leaves` has length ",
                    leaves.size(), " but the spec refers to a pytree that holds ", spec.leaf_count(), " items (",
                    to_string(spec), ").");
  size_t at = 0;
  return unflatten_from(leaves, at, spec);
}

std::vector<std::string> leaf_paths(const TreeSpec& spec) {
  std::vector<std::string> out;
  collect_paths(spec, "", out);
  return out;
}

std::string to_string(const TreeSpec& spec) {
  if (spec.kind == Kind::Leaf) return "*";
  std::string out = spec.kind == Kind::Tuple  ? "TreeSpec(tuple, None, ["
                    : spec.kind == Kind::List ? "TreeSpec(list, None, ["
                                              : "TreeSpec(";
  if (spec.kind == Kind::Dict || spec.kind == Kind::NamedTuple) {
    out += spec.kind == Kind::Dict ? "dict, [" : spec.type + ", [";
    for (size_t i = 0; i < spec.keys.size(); ++i) out += (i ? ", '" : "'") + spec.keys[i] + "'";
    out += "], [";
  }
  for (size_t i = 0; i < spec.children.size(); ++i) out += (i ? ", " : "") + to_string(spec.children[i]);
  return out + "])";
}

}  // namespace umbra
