// Graphs of operators as bytes, for a file that this or another process reads again.
//
// A reader believes nothing: counts are compared with the bytes that are left, nodes refer to earlier nodes alone, and
// what is not right is an Error.
#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include "umbra/fake/fake_mode.h"
#include "umbra/graph/graph_module.h"
#include "umbra/sym/shape_env.h"

namespace umbra::aot {

/// A graph that cannot be written: it calls modules or functions, or has values that only this process knows.
struct NotStorable : std::exception {
  std::string why;
  explicit NotStorable(std::string reason) : why(std::move(reason)) {}
  const char* what() const noexcept override { return why.c_str(); }
};

class ByteWriter {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  void number(T value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T)); }
  void text(std::string_view text) {
    number<uint32_t>(static_cast<uint32_t>(text.size()));
    bytes_.append(text);
  }
  void indices(const std::vector<size_t>& list) {
    number<uint32_t>(static_cast<uint32_t>(list.size()));
    for (size_t i : list) number<uint32_t>(static_cast<uint32_t>(i));
  }
  /// A number, or the text of what it is of symbols.
  void size(SymInt size);
  void sizes(const SymShape& sizes);
  void spec(const TensorSpec& spec);
  /// A tensor with its contents.
  void contents(const Tensor& tensor);
  /// A value that is no tensor, or a list of such.
  void plain(const Value& value);
  void expression(const SymNode* node);
  /// The graph, and the tensors that are its attributes.
  void module(const fx::GraphModule& module);
  std::string& bytes() { return bytes_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void graph(const fx::Graph& graph);
  void argument(const fx::Argument& argument, const std::vector<uint32_t>& places);
  void described(const Value& value);  // what a node gives: tensors by their looks
  std::string bytes_;
};

class ByteReader {
 public:
  /// Symbols are those of `env`.
  explicit ByteReader(std::string_view bytes, sym::ShapeEnv* env = nullptr) : bytes_(bytes), env_(env) {}
  template <class T>
  requires std::is_arithmetic_v<T> T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string_view text() { return take(number<uint32_t>()); }
  /// A count of things that take at least so many bytes each.
  size_t count(size_t least);
  std::vector<size_t> indices(size_t bound);
  SymInt size();
  SymShape sizes();
  TensorSpec spec();
  Tensor contents();
  Value plain(int depth = 0);
  const sym::Expression* expression();
  /// A graph whose nodes' values are tensors of the mode.
  IntrusivePtr<fx::GraphModule> module(FakeModeImpl& mode);
  bool done() const { return bytes_.empty(); }

 private:
  IntrusivePtr<fx::Graph> graph(FakeModeImpl& mode);
  std::string_view take(size_t count);
  TensorSpec read_look(const SymShape& sizes, const SymShape& strides);
  /// A byte that is no larger than `last`.
  uint8_t small(uint8_t last);
  Value list(Value::Tag tag, int depth);
  fx::Argument argument(const std::vector<fx::Node*>& nodes, int depth);
  Value described(FakeModeImpl& mode, int depth);
  fx::Node* node(fx::Graph& graph, const std::vector<fx::Node*>& nodes);
  std::string_view bytes_;
  sym::ShapeEnv* env_;
};

}  // namespace umbra::aot
