// Which values of a graph may be the same memory, and who writes it: read off the schemas of operators.
//
//     AliasAnalysis aliases(graph);
//     if (!aliases.has_writers(v)) ...   // v is what it was made as, wherever it is read
#pragma once

#include <set>

#include "umbra/jit/ir.h"

namespace UMBRA_API umbra {
namespace jit {

/// Whether all that taking a node away could show is what it writes.
bool only_writes(const Node& node);

/// Values have the places in memory that they may be; a place may hold others (what is in a list). What goes into a
/// container, comes from outside or is handed to unknown code may be any value of its type that does, too. Made for the
/// graph as it is: nodes that are added later are unknown to it.
class AliasAnalysis {
 public:
  explicit AliasAnalysis(const Graph& graph);

  /// Whether two values may be the same memory.
  bool may_alias(const Variable* a, const Variable* b) const;
  /// The same for the values and all that is in them.
  bool may_contain_alias(const Variable* a, const Variable* b) const;
  /// Whether a node of the graph writes what a value may be.
  bool has_writers(const Variable* v) const;
  /// The same for the values that a node reads and gives.
  bool has_writers(const Node& node) const;
  /// Whether a node, with the nodes inside it, writes anything that is no new value of its own.
  bool writes(const Node& node) const;
  /// Whether it writes what may be seen from outside: by the caller, or by unknown code.
  bool writes_outside(const Node& node) const;
  /// Whether it writes what one of these values may be or hold.
  bool writes_to(const Node& node, const Variables& values) const;
  /// Whether the caller or unknown code may hold a value.
  bool escapes(const Variable* v) const;
  /// Whether one of two values can be put in the place of the other: nobody writes them, and nobody outside gets both.
  bool exchangeable(const Variable* a, const Variable* b) const;

  /// Puts a node, and what depends on it in between, behind (in front of) another one of its block; false, and nothing
  /// is moved, where the other one depends on it.
  bool move_after(Node& node, Node& other) const;
  bool move_before(Node& node, Node& other) const;

  /// What is known, value by value.
  std::string text() const;

 private:
  using Places = std::set<int>;
  struct Place {
    Places contents;
    bool is_outside = false;  // may be any value of its type that came from outside
  };

  void visit(const Block& block);
  void visit(const Node& node);
  void visit_operator(const Node& node);
  void visit_builtin(const Node& node);
  void visit_container(const Node& node);
  void visit_branch(const Node& node);
  void visit_loop(const Node& node);
  void visit_unknown(const Node& node);

  int fresh();
  /// The place of any value of a type that is known outside.
  int outside(const TypePtr& type);
  void add(const Variable* v, int place);
  void add(const Variable* v, const Places& places);
  void make_fresh(const Variable* v);
  void make_outside(const Variable* v);
  void put_into(const Variable* container, const Variable* v);
  void take_from(const Variable* v, const Variable* container);
  void write(const Node& node, const Variable* v, bool with_contents = false);
  const Places& places(const Variable* v) const;
  Places reachable(const Places& from) const;
  Places written_by(const Node& node) const;
  Places read_by(const Node& node) const;
  bool meet(const Places& a, const Places& b) const;
  bool depends(const Node& later, const Node& earlier) const;
  bool move(Node& node, Node& other, bool after) const;

  const Graph& graph_;
  std::vector<Place> all_;
  std::unordered_map<const Variable*, Places> values_;
  std::unordered_map<const Node*, Places> writes_;
  std::unordered_map<std::string, int> outside_;
  std::unordered_map<const Variable*, int> own_;  // the place that a value was made as
  std::unordered_map<const Variable*, std::vector<const Node*>> readers_;
  bool grown_ = false;
};

}  // namespace jit
}  // namespace umbra
