// A model of ONNX under construction: nodes, constants, and the types of values.
#pragma once

#include <string>
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
  /// Whole numbers as a tensor of one dimension.
  Name list(const std::vector<int64_t>& values);
  /// One number as a tensor of no dimensions.
  Name scalar(const Scalar& value, DType dtype);
  Name cast(const Name& value, DType from, DType to);

  /// Declares an input or output. Sizes: numbers, or names of dimensions.
  void add_input(const Name& name, DType dtype, const std::vector<std::string>& sizes);
  void add_output(const Name& name, DType dtype, const std::vector<std::string>& sizes);
  Name reserve(const std::string& name);
  /// The whole model.
  std::string finish() const;

 private:
  static Message value_info(const Name& name, DType dtype, const std::vector<std::string>& sizes);
  std::vector<Message> nodes_, initializers_, inputs_, outputs_;
  std::vector<std::string> taken_;
  size_t next_ = 0;
  std::vector<std::pair<std::vector<int64_t>, Name>> lists_;  // constants that are there already
};

}  // namespace umbra::io::onnx
