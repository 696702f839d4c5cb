// One call of a program on its way to ONNX: its arguments as values and numbers, and what becomes of its results.
#pragma once

#include <functional>
#include <string_view>
#include <unordered_map>

#include "io/onnx/builder.h"
#include "umbra/graph/node.h"

namespace umbra::io::onnx {

/// Which values of the model stand for a node: one, or those of its results.
using Values = std::unordered_map<const fx::Node*, Names>;

class Call {
 public:
  Call(Builder& builder, Values& values, const fx::Node& node) : model(builder), values_(values), node_(node) {}

  // ---- arguments, by their names in the schema ----
  bool has(std::string_view name) const;
  /// A plain value, or the default; an error where the program computes it.
  Value plain(std::string_view name) const;
  int64_t number(std::string_view name) const { return plain(name).to_int(); }
  bool flag(std::string_view name) const { return plain(name).to_bool(); }
  std::vector<int64_t> numbers(std::string_view name) const;
  /// A list of ints that may be one number for all dimensions.
  std::vector<int64_t> numbers(std::string_view name, size_t count) const;
  /// A dimension, counted from the front.
  int64_t dim(std::string_view name, std::string_view of = "self") const;
  /// Dimensions, counted from the front; all where there are none.
  std::vector<int64_t> dims(std::string_view name, std::string_view of = "self") const;
  /// The tensor that stands for an argument: its type and sizes.
  const Tensor& tensor(std::string_view name) const;
  int64_t rank(std::string_view name) const { return tensor(name).dim(); }
  DType type(std::string_view name) const { return tensor(name).dtype(); }

  // ---- values ----
  /// The value of a tensor argument.
  Name operator[](std::string_view name) const;
  /// A tensor or number as a value of that type.
  Name as(std::string_view name, DType dtype) const;
  Name value(const fx::Argument& argument, DType dtype) const;
  /// A list of sizes as a value of one dimension. `unknown` stands for -1.
  Name sizes(std::string_view name, int64_t unknown = -1) const;
  /// One number as a value of one dimension.
  Name list_of(std::string_view name) const;
  const fx::Argument& argument(std::string_view name) const;
  Name value_of(const fx::Node* node) const;

  // ---- results ----
  /// What the first result (or the i-th) looks like.
  const Tensor& result(size_t i = 0) const;
  DType result_type() const { return result().dtype(); }
  /// Whether a result is used.
  bool uses(size_t i) const;
  void give(Name value) { values_[&node_] = {std::move(value)}; }
  void give_many(Names names) { values_[&node_] = std::move(names); }
  const fx::Node& node() const { return node_; }
  [[noreturn]] void refuse(const std::string& why) const;

  Name emit(const char* type, const Names& inputs, const Attributes& attributes = {}) const {
    return model.emit(type, inputs, attributes);
  }
  /// Dimension d of a value, as a list of one.
  Name size_of(const Name& value, int64_t d) const;

  Builder& model;

 private:
  size_t place(std::string_view name) const;
  Values& values_;
  const fx::Node& node_;
};

/// The norm of that order along dimensions.
Name norm(const Call& c, const Name& self, double order, const std::vector<int64_t>& dims, bool keep);

/// What the calls of an operator become, by the operator's name.
using Table = std::unordered_map<std::string, std::function<void(Call&)>>;
void add_pointwise(Table& table);
void add_shapes(Table& table);
void add_indexing(Table& table);
void add_places(Table& table);
void add_reductions(Table& table);
void add_networks(Table& table);
void add_composed(Table& table);

/// Arithmetic on sizes; false where the function is another.
bool convert_number(Builder& builder, Values& values, const fx::Node& node);

}  // namespace umbra::io::onnx
