// The golden operator records: what PyTorch does, read from compressed files. The format is that of the records' own
// README.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "umbra/umbra.h"

namespace umbra::golden {

using Json = nlohmann::json;

/// One family of operators: its records and the bytes of their tensors.
struct Group {
  std::string name;
  Json document;
  std::string bytes;

  static Group load(const std::string& folder, const std::string& name);
  const Json& records() const { return document["records"]; }
  std::string blob(const Json& where) const { return bytes.substr(where[0].get<size_t>(), where[1].get<size_t>()); }
};

/// The contents of a gzip file.
std::string read_gzip(const std::string& path);

/// The input tensors of a record. With `share`, those on one storage share memory; without, each has its own, as leaves
/// need it.
std::vector<Tensor> build_tensors(const Group& group, const Json& record, bool share);
/// A contiguous tensor of the given bytes.
Tensor dense_tensor(const std::string& bytes, DType dtype, const std::vector<int64_t>& sizes);
/// An argument as a Value; `tensors` are what {"tensor": i} refers to.
Value to_value(const Json& json, const SchemaType& type, const std::vector<Tensor>& tensors);
/// The arguments of a record, in the order of the schema, defaults filled in.
std::vector<Value> build_arguments(const Operator& op, const Json& record, const std::vector<Tensor>& tensors);
/// Tensors in the order in which a record lists outputs.
std::vector<Tensor> flat_tensors(const std::vector<Value>& results);

}  // namespace umbra::golden
