// What a graph's node takes as arguments: trees of other nodes and plain values.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "umbra/core/value.h"

namespace UMBRA_API umbra {
namespace fx {

class Node;
class Argument;
using Arguments = std::vector<Argument>;
/// Named arguments, or the entries of a dict, in their order.
using KeywordArguments = std::vector<std::pair<std::string, Argument>>;

/// One argument: a node, a plain value, or a list, tuple, dict or slice of arguments.
///
///     Argument shape = Argument::list({size_node, -1});
///
/// A list without nodes may also be a plain value (`Value(std::vector<int64_t>{2, 3})`): both mean, print and compare
/// the same.
class Argument {
 public:
  enum class Kind : uint8_t { Value, Node, List, Tuple, Dict, Slice };

  Argument() : Argument(umbra::Value()) {}
  Argument(Node* node) : kind_(Kind::Node), node_(node) {}
  Argument(umbra::Value value) : kind_(Kind::Value), value_(std::move(value)) {}
  template <class T>
  requires(!std::is_same_v<std::decay_t<T>, Argument> && !std::is_pointer_v<std::decay_t<T>> &&
           !std::is_same_v<std::decay_t<T>, umbra::Value> && std::is_constructible_v<umbra::Value, T>)
      Argument(T&& value)
      : Argument(umbra::Value(std::forward<T>(value))) {}
  Argument(const char* text) : Argument(umbra::Value(text)) {}
  static Argument list(Arguments items);
  static Argument tuple(Arguments items);
  static Argument dict(KeywordArguments entries);
  static Argument slice(Argument start, Argument stop, Argument step);

  Argument(const Argument& other);
  Argument(Argument&& other) noexcept;
  Argument& operator=(Argument other) noexcept;
  ~Argument() { destroy(); }

  Kind kind() const { return kind_; }
  bool is_node() const { return kind_ == Kind::Node; }
  bool is_value() const { return kind_ == Kind::Value; }
  bool is_none() const { return kind_ == Kind::Value && value_.is_none(); }
  bool is_container() const { return kind_ >= Kind::List; }
  /// A list or tuple, also where it is a plain value.
  bool is_sequence() const;

  /// The node, or null for anything else.
  Node* node() const { return kind_ == Kind::Node ? node_ : nullptr; }
  /// The plain value; only where is_value().
  const umbra::Value& value() const { return value_; }
  /// The elements of a list or tuple, a dict's values, or a slice's start, stop and step; only where is_container().
  const Arguments& items() const { return container_->items; }
  /// A dict's keys, in the order of its items.
  const std::vector<std::string>& keys() const { return container_->keys; }
  /// The elements of any sequence, those of plain lists each as an argument.
  Arguments elements() const;

  /// Calls `visit` for each node inside, from left to right.
  template <class F> void each_node(F&& visit) const {
    if (kind_ == Kind::Node) visit(node_);
    else if (is_container())
      for (const Argument& item : container_->items) item.each_node(visit);
  }
  /// The same tree with every node replaced by what `change` gives for it.
  template <class F> Argument map_nodes(F&& change) const {
    if (kind_ == Kind::Node) return change(node_);
    if (kind_ == Kind::Value) return *this;
    Arguments items;
    items.reserve(container_->items.size());
    for (const Argument& item : container_->items) items.push_back(item.map_nodes(change));
    return Argument(kind_, std::move(items), container_->keys);
  }
  bool has_nodes() const;
  /// The same nodes and values in the same tree.
  bool equals(const Argument& other) const;

 private:
  struct Container {
    Arguments items;
    std::vector<std::string> keys;
  };
  Argument(Kind kind, Arguments items, std::vector<std::string> keys);
  void destroy() noexcept;
  void take(Argument& other) noexcept;

  Kind kind_;
  union {
    umbra::Value value_;
    Node* node_;
    Container* container_;
  };
};

}  // namespace fx
}  // namespace umbra
