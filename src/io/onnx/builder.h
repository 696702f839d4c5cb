// A model of ONNX under construction: nodes, constants, and the types of values.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "io/onnx/proto.h"
#include "umbra/core/tensor.h"

namespace umbra::io::onnx {

/// The name of a value; empty for an optional input that is not given.
using Name = std::string;
using Names = std::vector<Name>;

/// The number of an element type; an error where ONNX has none.
int64_t element_type(DType dtype);

class Attributes {
 public:
  Attributes& set(const char* name, int64_t value);
  Attributes& set(const char* name, int value) { return set(name, static_cast<int64_t>(value)); }
  Attributes& set(const char* name, bool value) { return set(name, static_cast<int64_t>(value)); }
  Attributes& set(const char* name, double value);
  Attributes& set(const char* name, const char* value);
  Attributes& set(const char* name, const std::vector<int64_t>& values);
  Attributes& set(const char* name, const Tensor& value);
  /// A graph of its own: a branch, the body of a loop.
  Attributes& set(const char* name, const Message& graph);
  const std::vector<Message>& messages() const { return messages_; }

 private:
  std::vector<Message> messages_;
};

class Builder {
 public:
  /// Adds a node; gives its outputs' names. `name` is what the first output is called, with a number where it is taken.
  Names emit_many(const char* type, const Names& inputs, size_t outputs, const Attributes& attributes = {},
                  const std::string& name = "");
  Name emit(const char* type, const Names& inputs, const Attributes& attributes = {}, const std::string& name = "") {
    return emit_many(type, inputs, 1, attributes, name)[0];
  }
  /// A tensor that is part of the model.
  Name constant(const Tensor& tensor, const std::string& name = "constant");
  /// One whose value stays outside the model.
  Name constant_without_value(const std::string& name) { return reserve(name); }
  /// Whole numbers as a tensor of one dimension.
  Name list(const std::vector<int64_t>& values);
  /// One number as a tensor of no dimensions.
  Name scalar(const Scalar& value, DType dtype);
  Name cast(const Name& value, DType from, DType to);

  /// Declares an input or output. Sizes: numbers, or names of dimensions.
  void add_input(const Name& name, DType dtype, const std::vector<std::string>& sizes);
  void add_output(const Name& name, DType dtype, const std::vector<std::string>& sizes);
  Name reserve(const std::string& name);
  /// Lets the next value have a name that was reserved for it.
  void release(const Name& name) { taken_.erase(name); }

  /// From here on nodes, inputs and outputs are those of a graph inside this one, whose values it sees.
  void begin_graph();
  /// Ends it, and gives it.
  Message end_graph();

  /// Where the bytes of large constants go that are kept beside the model: gives their place.
  using Store = std::function<size_t(std::string_view bytes)>;
  /// The whole model. With a `store`, constants of a page and more are kept there, in the file called `location`.
  std::string finish(const Store& store = {}, const std::string& location = "") const;
  /// What version of ONNX's operators the model names. Refused where a node is of another one.
  void set_opset(int opset);
  /// The bytes of all constants.
  size_t constant_bytes() const;

 private:
  struct Graph {
    std::vector<Message> nodes, inputs, outputs;
  };
  static Message value_info(const Name& name, DType dtype, const std::vector<std::string>& sizes);
  static Message graph_message(const Graph& graph, const std::string& name);
  std::vector<Graph> graphs_ = std::vector<Graph>(1);  // the innermost last
  std::vector<std::pair<Name, Tensor>> initializers_;
  Name unnamed() { return reserve("v" + std::to_string(next_++)); }
  std::unordered_set<std::string> taken_;
  std::set<std::string> types_;  // of nodes
  size_t next_ = 0, next_node_ = 0;
  int opset_ = 18;
  std::vector<std::pair<std::vector<int64_t>, Name>> lists_;  // constants that are there already
};

}  // namespace umbra::io::onnx
