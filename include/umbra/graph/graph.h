// A program as a list of nodes: what capture records, passes rewrite, and files hold. It has torch.fx's structure,
// names and printed forms, hence the name of the namespace.
//
//     auto graph = make_counted<fx::Graph>();
//     fx::Node* x = graph->placeholder("x");
//     fx::Node* y = graph->call(get_operator("aten::relu"), {x});
//     graph->output(fx::Argument::tuple({y}));
//     std::cout << to_string(*graph);
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "umbra/graph/node.h"

namespace UMBRA_API umbra {
namespace fx {

/// Gives out names: each once, none that Python reserves (`sum` becomes `sum_1`).
class Namespace {
 public:
  Namespace();
  ~Namespace();
  Namespace(const Namespace&) = delete;
  std::string create(std::string_view candidate);
  bool contains(std::string_view name) const;
  /// The name as it is, though code may have another use for it (`input`); another where it is a word of Python's
  /// grammar or taken.
  std::string take(std::string_view name);

 private:
  struct Entries;
  IntrusivePtr<Entries> entries_;
};

/// How the code of a graph takes and gives nested lists and dicts, where its caller has them: the flat placeholders
/// follow from the caller's arguments by a tree specification that the module keeps.
struct PytreeSignature {
  std::vector<std::string> arguments;  // the caller's parameters, keyword ones last
  std::optional<std::vector<std::string>>
      keywords;  // names of the keyword ones; none: the tree is a list of arguments alone
  bool has_output_tree = true;
};

/// Which nodes stand in old graphs for those of new ones.
using NodeMap = std::unordered_map<const Node*, Node*>;

class Graph final : public RefCounted {
 public:
  Graph();
  ~Graph() override;

  // ---- building; new nodes go to the insertion point, at first the end ----
  /// Adds a node. Its name follows from `name`, or as torch.fx names it from the target ("add_tensor").
  Node* create_node(Op op, Target target, Arguments args = {}, KeywordArguments kwargs = {},
                    std::string_view name = {});
  Node* placeholder(std::string_view name);
  Node* placeholder(std::string_view name, Argument default_value);
  Node* get_attr(std::string_view path);
  /// A call named as capture names it, by the operator without its overload ("add").
  Node* call(const Operator& op, Arguments args, KeywordArguments kwargs = {});
  Node* call(const Function& function, Arguments args, KeywordArguments kwargs = {});
  Node* call_module(std::string_view path, Arguments args, KeywordArguments kwargs = {});
  Node* output(Argument result);

  /// Where new nodes go: each right before the node, or each right after it, so that the last comes first.
  struct InsertionPoint {
    Node* node;
    bool after = false;
  };
  /// Puts the insertion point elsewhere for a scope: `auto scope = graph.inserting_before(node);`.
  class InsertionScope {
   public:
    InsertionScope(Graph& graph, Node* before) : graph_(&graph), saved_(graph.insertion_) {
      graph.insertion_ = {before};
    }
    ~InsertionScope() { graph_->restore_insertion_point(saved_); }
    InsertionScope(const InsertionScope&) = delete;

   private:
    Graph* graph_;
    InsertionPoint saved_;
  };
  [[nodiscard]] InsertionScope inserting_before(Node* node) { return InsertionScope(*this, checked(node)); }
  /// Nodes made in the scope stand after the node in the order in which they are made.
  [[nodiscard]] InsertionScope inserting_after(Node* node) { return InsertionScope(*this, checked(node)->next()); }
  /// The same without a scope. No node: before the end of the graph, or after its beginning.
  void set_insertion_point(Node* node, bool after = false) { insertion_ = {node ? checked(node) : root_, after}; }
  const InsertionPoint& insertion_point() const { return insertion_; }
  /// Back to what `insertion_point` gave, or to its place if its node has been erased.
  void restore_insertion_point(InsertionPoint point);

  /// Takes a node out; an error while it has users.
  void erase_node(Node* node);
  /// Copies a node, of this or another graph, with its metadata; `map` says what stands here for each of its inputs.
  template <class F> Node* copy_node(const Node& node, F&& map) {
    return adopt(node, map_arguments(node.args(), map), map_keywords(node.kwargs(), map));
  }
  /// Copies all nodes of a graph but its output; gives the output's argument in terms of the copies.
  Argument copy_nodes(const Graph& from, NodeMap& map);
  /// A graph of its own with the same nodes; `map`, where given, is filled.
  IntrusivePtr<Graph> copy(NodeMap* map = nullptr) const;

  // ---- reading ----
  template <bool kForward> class Iterator {
   public:
    using value_type = Node*;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    explicit Iterator(Node* node) : node_(node) {}
    Node* operator*() const { return node_; }
    /// Steps over nodes erased meanwhile: a loop may erase the node it stands on and its neighbours.
    Iterator& operator++() {
      do node_ = kForward ? node_->next() : node_->previous();
      while (node_->is_erased());
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    Node* node_ = nullptr;
  };
  template <bool kForward> struct Range {
    Node* root;
    Iterator<kForward> begin() const { return Iterator<kForward>(kForward ? root->next() : root->previous()); }
    Iterator<kForward> end() const { return Iterator<kForward>(root); }
  };
  /// `for (fx::Node* node : graph.nodes())`
  Range<true> nodes() const { return {root_}; }
  Range<false> reversed() const { return {root_}; }
  size_t size() const { return size_; }
  uint32_t id_bound() const { return next_id_; }
  /// Stands before the first node and after the last one.
  Node* root() const { return root_; }
  Node* first() const { return root_->next() == root_ ? nullptr : root_->next(); }
  Node* last() const { return root_->previous() == root_ ? nullptr : root_->previous(); }
  std::vector<Node*> placeholders() const;
  /// The output node, or null while there is none.
  Node* output_node() const;
  /// The results: the elements of the output where it is a tuple or list, else the one.
  Arguments outputs() const;
  Node* find_node(std::string_view name) const;
  /// Counts changes, so that what was derived from the graph knows when it is stale.
  uint64_t version() const { return version_; }

  Namespace& names() { return names_; }
  std::optional<PytreeSignature> pytree;

  /// Keeps an object (the ShapeEnv of its symbols) as long as the graph and its copies.
  void keep_alive(IntrusivePtr<RefCounted> object);
  const std::vector<IntrusivePtr<RefCounted>>& kept_alive() const { return kept_alive_; }

 private:
  friend class Node;
  Node* allocate(Op op, Target target);
  Node* checked(Node* node) const;
  /// An error where the argument has a node that is not of this graph.
  void check_argument(const Argument& argument) const;
  Node* adopt(const Node& node, Arguments args, KeywordArguments kwargs);
  template <class F> static Arguments map_arguments(const Arguments& args, F&& map) {
    Arguments out;
    out.reserve(args.size());
    for (const Argument& a : args) out.push_back(a.map_nodes(map));
    return out;
  }
  template <class F> static KeywordArguments map_keywords(const KeywordArguments& kwargs, F&& map) {
    KeywordArguments out;
    out.reserve(kwargs.size());
    for (const auto& [key, value] : kwargs) out.emplace_back(key, value.map_nodes(map));
    return out;
  }

  std::vector<IntrusivePtr<RefCounted>> kept_alive_;  // goes after the nodes, which refer to it
  // Nodes stand in blocks and are never moved nor given back before the graph goes, so that pointers to them stay good.
  struct Block;
  std::vector<std::unique_ptr<Block>> blocks_;
  Node* root_ = nullptr;
  InsertionPoint insertion_{nullptr};
  uint32_t next_id_ = 0;
  size_t size_ = 0;
  uint64_t version_ = 0;
  Namespace names_;
};

/// The graph as torch.fx prints it: "graph():\n    %x : [num_users=1] = placeholder[target=x]\n ...".
std::string to_string(const Graph& graph);

}  // namespace fx
}  // namespace umbra
