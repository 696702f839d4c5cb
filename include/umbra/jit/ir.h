// The IR of TorchScript programs: graphs of nodes in blocks, in single assignment, over the operators of the registry.
//
//     Graph graph;
//     Value* x = graph.add_input("x", tensor_type());
//     Node* relu = graph.insert("aten::relu", {x}, {tensor_type()});
//     graph.add_output(relu->output());
//     print: graph(%x : Tensor): ...
#pragma once

#include <algorithm>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "umbra/dispatch/operator.h"
#include "umbra/jit/recycled.h"
#include "umbra/jit/source_text.h"
#include "umbra/jit/type.h"

namespace UMBRA_API umbra {
namespace jit {

class Graph;
class Node;
class Block;
class Variable;
using Variables = std::vector<Variable*, RecyclingAllocator<Variable*>>;
/// Those that a node or block owns.
using OwnVariables = std::vector<std::unique_ptr<Variable>, RecyclingAllocator<std::unique_ptr<Variable>>>;

/// A text that is made when it is read: where a node came from.
class LateText : public RefCounted {
 public:
  virtual std::string text() const = 0;
  /// The part of a program that it names, or none.
  virtual SourceRange range() const { return {}; }
};

/// A text that nodes share, or none.
class SharedText {
 public:
  SharedText() = default;
  SharedText(std::string text);
  template <class T>
  requires std::is_base_of_v<LateText, T> SharedText(IntrusivePtr<T> text) : text_(std::move(text)) {}
  bool empty() const { return !text_; }
  std::string str() const { return text_ ? text_->text() : ""; }
  SourceRange range() const { return text_ ? text_->range() : SourceRange{}; }
  void clear() { text_ = nullptr; }

 private:
  IntrusivePtr<const LateText> text_;
};

/// A value of the program: an input of a block or an output of a node.
class Variable : public RecycledObject<Variable> {
 public:
  const TypePtr& type() const { return type_; }
  void set_type(TypePtr type) { type_ = std::move(type); }
  Node* node() const { return node_; }
  size_t offset() const { return offset_; }
  size_t unique() const { return unique_; }
  bool is_numbered() const { return unique_ != SIZE_MAX; }
  /// The user's name for it, without the suffix that tells it from others; empty: none.
  const std::string& name() const { return name_; }
  /// The name without the number that tells it from others of the name.
  std::string base_name() const;
  /// What printing shows: its name or its number.
  std::string debug_name() const { return name_.empty() ? std::to_string(unique_) : name_; }
  void set_name(const std::string& name);

 private:
  friend class Graph;
  friend class Node;
  friend class Block;
  Graph* graph_ = nullptr;
  Node* node_ = nullptr;  // of a block's input: the block's parameter node
  size_t offset_ = 0, unique_ = 0;
  TypePtr type_;
  std::string name_;
};

/// What nodes do ("aten::add", "prim::If"): one object for all nodes of the kind, kept for ever. Kinds are few.
struct Kind {
  std::string text;
  bool has_effects;  // taking such a node away could be noticed, whatever its operator says
  static const Kind* of(std::string_view text);
};

/// A step. `op` is the registry's operator where there is one; other kinds are prim:: and the built-in functions of
/// numbers and containers.
class Node : public RecycledObject<Node> {
 public:
  using List = std::list<std::unique_ptr<Node>, RecyclingAllocator<std::unique_ptr<Node>>>;
  Graph* graph() const { return graph_; }
  Block* block() const { return block_; }
  const std::string& kind() const { return kind_->text; }
  Variables inputs;
  const OwnVariables& outputs() const { return outputs_; }
  Variable* output(size_t i = 0) const { return outputs_.at(i).get(); }
  const std::vector<std::unique_ptr<Block>>& blocks() const { return blocks_; }
  /// The node before it in its block, or null.
  Node* previous() const;
  /// The node behind it in its block, or null.
  Node* next() const;
  Variable* add_output(TypePtr type);
  void erase_output(size_t i);
  Block* add_block();

  const umbra::Operator* op = nullptr;
  using Attributes =
      std::vector<std::pair<std::string, umbra::Value>, RecyclingAllocator<std::pair<std::string, umbra::Value>>>;
  Attributes attributes;          // in the order in which they print
  SharedText scope;               // "__module.first": the module that was running
  SharedText source;              // "file.py:12:0"
  FunctionPtr callee;             // of prim::CallFunction's constant
  std::vector<TypePtr> op_types;  // of prim::isinstance

  const umbra::Value* attribute(std::string_view name) const;
  void set_attribute(std::string_view name, umbra::Value value);
  bool is(std::string_view kind) const { return kind_->text == kind; }
  bool is(const Kind* kind) const { return kind_ == kind; }
  /// Whether taking it away could be noticed: it writes, prints, raises or draws random numbers.
  bool has_side_effects() const;

 private:
  friend class Graph;
  friend class Block;
  Graph* graph_ = nullptr;
  Block* block_ = nullptr;
  const Kind* kind_ = nullptr;
  OwnVariables outputs_;
  std::vector<std::unique_ptr<Block>> blocks_;
  List::iterator position_;  // among its block's nodes
};

class Block {
 public:
  using Nodes = Node::List;
  const OwnVariables& inputs() const { return parameter_->outputs(); }
  Variable* input(size_t i) const { return parameter_->output(i); }
  Variable* add_input(TypePtr type, const std::string& name = "");
  void erase_input(size_t i) { parameter_->erase_output(i); }
  Variables outputs;
  Nodes& nodes() { return nodes_; }
  const Nodes& nodes() const { return nodes_; }
  Node* owner() const { return owner_; }  // null: the graph's own
  Node* parameter() const { return parameter_.get(); }

 private:
  friend class Graph;
  friend class Node;
  std::unique_ptr<Node> parameter_;
  Nodes nodes_;
  Node* owner_ = nullptr;
};

class Graph {
 public:
  Graph();
  Graph(const Graph&) = delete;
  Block& block() { return *block_; }
  const Block& block() const { return *block_; }
  Variable* add_input(const std::string& name, TypePtr type) { return block_->add_input(std::move(type), name); }
  void add_output(Variable* v) { block_->outputs.push_back(v); }

  /// Adds a node at the end of the current block (or before the insertion point).
  Node* insert(const Kind* kind, Variables inputs);
  Node* insert(std::string_view kind, Variables inputs, std::vector<TypePtr> outputs);
  Variable* insert_constant(const umbra::Value& value, TypePtr type = nullptr);
  Block* current() const { return current_; }
  /// Nodes go to the end of this block from here on.
  void set_current(Block* block) { current_ = block, before_ = nullptr; }
  /// Nodes go before this node from here on; null: to the end of the block.
  void set_before(Node* node) { before_ = node, current_ = node ? node->block() : current_; }
  Node* before() const { return before_; }

  /// Moves the nodes of another graph's block to the end of this graph; values get numbers of this graph's.
  void take_nodes(Block& from);
  /// Values' numbers are below this.
  size_t value_limit() const { return next_; }
  /// Numbers that no value gets.
  void skip_numbers(size_t count) { next_ += count; }
  /// Takes the number of the value that was made last back; `number` gives it one.
  void withhold_number(Variable& v) { v.unique_ = SIZE_MAX, --next_; }
  void number(Variable& v) { v.unique_ = next_++; }
  /// The values of the outermost block have no numbers from here on; `number` gives them new ones.
  void forget_numbers();
  /// A value of no node, which has a name and no number.
  std::unique_ptr<Variable> unowned_value();
  /// Replaces a value wherever it is read.
  void replace_uses(Variable* from, Variable* to);
  void erase(Node* node);
  /// Puts a node behind (in front of) another one of the same block.
  void move_after(Node& node, Node& other);
  void move_before(Node& node, Node& other);
  std::string fresh_name(const std::string& wanted);
  std::string text(bool sources = true) const;
  std::shared_ptr<Graph> copy() const;

 private:
  friend class Variable;
  friend class Node;
  friend class Block;
  std::unique_ptr<Variable> make_variable(Node* node, size_t offset, TypePtr type);
  std::unique_ptr<Node> make_node(const Kind* kind);
  void adopt(Node& node);
  size_t next_ = 0;
  void know_names();
  void forget_name(const Variable& v) {
    if (!names_known_ || v.name().empty()) return;
    if (auto found = names_.find(v.name()); found != names_.end()) found->second.holder = nullptr;
  }
  /// A name, who has it, and the last number that was put behind it for another.
  struct Name {
    Variable* holder = nullptr;
    size_t number = 0;
  };
  using Names = std::unordered_map<std::string, Name, std::hash<std::string>, std::equal_to<>,
                                   RecyclingAllocator<std::pair<const std::string, Name>>>;
  /// `base` with the next number with which nobody has it.
  Names::value_type& numbered_name(Names::value_type& base);
  Names names_;
  bool names_known_ = true;  // false: nodes came or went, and the table is made anew when a name is needed
  std::unique_ptr<Block> block_;
  Block* current_ = nullptr;
  Node* before_ = nullptr;
};

/// Reads what `Graph::text` wrote. Of classes and tensors the text has no contents: classes are names, and a graph with
/// a constant tensor of more than one element is refused.
std::shared_ptr<Graph> parse_graph(std::string_view text);

/// Calls `visit` for every node, inner blocks included, in order.
template <class F> void each_node(const Block& block, F&& visit) {
  for (const auto& node : block.nodes()) {
    visit(*node);
    for (const auto& inner : node->blocks()) each_node(*inner, visit);
  }
}

/// Copies the nodes of a block to the insertion point of a graph; `values` says what stands for the block's inputs and
/// is filled with what stands for the others. Gives the copies of the block's outputs.
using ValueMap = std::unordered_map<const Variable*, Variable*>;
Variables copy_into(Graph& graph, const Block& block, ValueMap& values);

/// An argument of a function, and its default.
struct Parameter {
  std::string name;
  TypePtr type;
  std::optional<umbra::Value> default_value;
  bool keyword_only = false;
  bool inferred = false;  // a tensor, since nothing was said
};

/// What a function calls its parameter that is this input of its graph.
std::string parameter_name(const Variable& input);

class Program;
/// A function of the program: a graph with named arguments.
struct Function {
  std::string name;  // "__torch__.Mlp.forward", or a plain name
  std::vector<Parameter> parameters;
  TypePtr result;
  std::shared_ptr<Graph> graph;
  std::shared_ptr<Program> program;       // made on the first run
  std::function<void(Function&)> define;  // compiles it on first use
  bool compiling = false;                 // `define` is running
  bool ignored = false;                   // calls Python
  umbra::Value python;                    // what an ignored one calls
  std::string doc;

  /// The graph, compiled if it was not.
  const std::shared_ptr<Graph>& ensure();
  std::string schema() const;
};

}  // namespace jit
}  // namespace umbra
