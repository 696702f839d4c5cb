#include "io/onnx/builder.h"

#include <algorithm>
#include <map>

#include "io/tensor_bytes.h"
#include "umbra/generated/functions.h"

namespace umbra::io::onnx {

namespace {

/// The version of the format that first knows a version of the operators.
int64_t format_of(int opset) { return opset <= 18 ? 8 : opset <= 20 ? 9 : opset <= 22 ? 10 : 11; }

/// Since which version an operator is what it is in version 18; none of the others changed after 13.
int first_version(const std::string& type) {
  static const std::map<std::string, int> versions = {{"Add", 14},        {"BatchNormalization", 15},
                                                      {"BitwiseAnd", 18}, {"BitwiseNot", 18},
                                                      {"BitwiseOr", 18},  {"BitwiseXor", 18},
                                                      {"CumSum", 14},     {"Div", 14},
                                                      {"GridSample", 16}, {"GreaterOrEqual", 16},
                                                      {"HardSwish", 14},  {"Identity", 16},
                                                      {"If", 16},         {"LayerNormalization", 17},
                                                      {"LeakyRelu", 16},  {"LessOrEqual", 16},
                                                      {"Loop", 16},       {"Mul", 14},
                                                      {"PRelu", 16},      {"Pad", 18},
                                                      {"Pow", 15},        {"ReduceL1", 18},
                                                      {"ReduceL2", 18},   {"ReduceLogSumExp", 18},
                                                      {"ReduceMax", 18},  {"ReduceMean", 18},
                                                      {"ReduceMin", 18},  {"ReduceProd", 18},
                                                      {"Relu", 14},       {"Reshape", 14},
                                                      {"Resize", 18},     {"Scan", 16},
                                                      {"ScatterND", 18},  {"ScatterElements", 18},
                                                      {"Shape", 15},      {"Split", 18},
                                                      {"Sub", 14},        {"Trilu", 14},
                                                      {"Where", 16}};
  auto found = versions.find(type);
  return found == versions.end() ? 13 : found->second;
}

/// The last version in which it still means the same.
int last_version(const std::string& type) { return type == "GridSample" ? 19 : 23; }

constexpr size_t kLargest = size_t(1) << 31;  // of a protocol buffer
constexpr size_t kPage = 4096;

Message described_tensor(const Tensor& tensor, const std::string& name) {
  Message message;
  for (int64_t size : tensor.sizes()) message.number(1, size);
  message.number(2, element_type(tensor.dtype()));
  if (!name.empty()) message.text(8, name);
  return message;
}

Message tensor_message(const Tensor& tensor, const std::string& name) {
  std::string buffer;
  return described_tensor(tensor, name).text(9, packed_bytes(tensor.detach(), buffer));
}

size_t bytes_of(const Tensor& tensor) { return static_cast<size_t>(tensor.numel() * item_size(tensor.dtype())); }

/// A tensor whose elements lie in another file.
Message stored_tensor(const Tensor& tensor, const std::string& name, const Builder::Store& store,
                      const std::string& location) {
  std::string buffer;
  std::string_view bytes = packed_bytes(tensor.detach(), buffer);
  Message message = described_tensor(tensor, name);
  auto entry = [&](const char* key, const std::string& value) {
    message.message(13, Message().text(1, key).text(2, value));
  };
  entry("location", location);
  entry("offset", std::to_string(store(bytes)));
  entry("length", std::to_string(bytes.size()));
  return message.number(14, 1);
}

enum AttributeType { kReal = 1, kNumber = 2, kText = 3, kTensor = 4, kGraph = 5, kNumbers = 7 };

Message attribute(const char* name, AttributeType type) {
  Message message;
  message.text(1, name).number(20, type);
  return message;
}

}  // namespace

int64_t element_type(DType dtype) {
  switch (dtype) {
    case DType::Float32: return 1;
    case DType::UInt8: return 2;
    case DType::Int8: return 3;
    case DType::UInt16: return 4;
    case DType::Int16: return 5;
    case DType::Int32: return 6;
    case DType::Int64: return 7;
    case DType::Bool: return 9;
    case DType::Float16: return 10;
    case DType::Float64: return 11;
    case DType::UInt32: return 12;
    case DType::UInt64: return 13;
    case DType::BFloat16: return 16;
    case DType::Complex32:
    case DType::Complex64:
    case DType::Complex128:
      fail<NotImplementedError>("ONNX: its operators take no complex numbers, and the program has tensors of ",
                                name(dtype), "; compute with real and imaginary parts (view_as_real)");
    default: fail<NotImplementedError>("ONNX: tensors of ", name(dtype), " are not in Umbra yet");
  }
}

// ---- attributes ----

Attributes& Attributes::set(const char* name, int64_t value) {
  messages_.push_back(attribute(name, kNumber).number(3, value));
  return *this;
}
Attributes& Attributes::set(const char* name, double value) {
  messages_.push_back(attribute(name, kReal).real(2, static_cast<float>(value)));
  return *this;
}
Attributes& Attributes::set(const char* name, const char* value) {
  messages_.push_back(attribute(name, kText).text(4, value));
  return *this;
}
Attributes& Attributes::set(const char* name, const std::vector<int64_t>& values) {
  Message message = attribute(name, kNumbers);
  for (int64_t value : values) message.number(8, value);
  messages_.push_back(std::move(message));
  return *this;
}
Attributes& Attributes::set(const char* name, const Tensor& value) {
  messages_.push_back(attribute(name, kTensor).message(5, tensor_message(value, "")));
  return *this;
}

Attributes& Attributes::set(const char* name, const Message& graph) {
  messages_.push_back(attribute(name, kGraph).message(6, graph));
  return *this;
}

// ---- nodes ----

Name Builder::reserve(const std::string& name) {
  Name free = name;
  while (!taken_.insert(free).second) free = name + "_" + std::to_string(next_++);
  return free;
}

Names Builder::emit_many(const char* type, const Names& inputs, size_t outputs, const Attributes& attributes,
                         const std::string& name) {
  Message node;
  types_.insert(type);
  for (const Name& input : inputs) node.text(1, input);
  Names made;
  for (size_t i = 0; i < outputs; ++i) {
    made.push_back(i == 0 && !name.empty() ? reserve(name) : unnamed());
    node.text(2, made.back());
  }
  node.text(3, std::string(type) + "_" + std::to_string(next_node_++)).text(4, type);
  for (const Message& message : attributes.messages()) node.message(5, message);
  graphs_.back().nodes.push_back(std::move(node));
  return made;
}

Name Builder::constant(const Tensor& tensor, const std::string& name) {
  Name free = reserve(name);
  element_type(tensor.dtype());  // refused where it has none
  initializers_.emplace_back(free, tensor);
  return free;
}

Name Builder::list(const std::vector<int64_t>& values) {
  for (const auto& [known, name] : lists_)
    if (known == values) return name;
  Tensor tensor = empty({static_cast<int64_t>(values.size())}, DType::Int64);
  std::copy(values.begin(), values.end(), static_cast<int64_t*>(tensor.raw_data()));
  return lists_.emplace_back(values, constant(tensor, "v")).second;
}

Name Builder::scalar(const Scalar& value, DType dtype) { return constant(full({}, value, dtype), "v"); }

Name Builder::cast(const Name& value, DType from, DType to) {
  return from == to ? value : emit("Cast", {value}, Attributes().set("to", element_type(to)));
}

// ---- the model ----

Message Builder::value_info(const Name& name, DType dtype, const std::vector<std::string>& sizes) {
  Message shape;
  for (const std::string& size : sizes) {
    Message dim;
    if (size.find_first_not_of("0123456789") == std::string::npos) dim.number(1, std::stoll(size));
    else dim.text(2, size);
    shape.message(1, dim);
  }
  Message type;
  type.message(1, Message().number(1, element_type(dtype)).message(2, shape));
  Message info;
  info.text(1, name).message(2, type);
  return info;
}

void Builder::add_input(const Name& name, DType dtype, const std::vector<std::string>& sizes) {
  graphs_.back().inputs.push_back(value_info(name, dtype, sizes));
}
void Builder::add_output(const Name& name, DType dtype, const std::vector<std::string>& sizes) {
  graphs_.back().outputs.push_back(value_info(name, dtype, sizes));
}

void Builder::begin_graph() { graphs_.emplace_back(); }

Message Builder::end_graph() {
  Message message = graph_message(graphs_.back(), "part_" + std::to_string(next_node_++));
  graphs_.pop_back();
  return message;
}

Message Builder::graph_message(const Graph& graph, const std::string& name) {
  Message message;
  for (const Message& node : graph.nodes) message.message(1, node);
  message.text(2, name);
  for (const Message& input : graph.inputs) message.message(11, input);
  for (const Message& output : graph.outputs) message.message(12, output);
  return message;
}

size_t Builder::constant_bytes() const {
  size_t bytes = 0;
  for (const auto& [name, tensor] : initializers_) bytes += bytes_of(tensor);
  return bytes;
}

void Builder::set_opset(int opset) {
  check<NotImplementedError>(opset >= 13 && opset <= 23, "ONNX: opset ", opset, " is not in Umbra (13 to 23 are)");
  for (const std::string& type : types_)
    check<NotImplementedError>(first_version(type) <= opset && opset <= last_version(type), "ONNX: the model has a ",
                               type, " of opset 18, which is another one in opset ", opset);
  opset_ = opset;
}

std::string Builder::finish(const Store& store, const std::string& location) const {
  check<NotImplementedError>(
      store || constant_bytes() < kLargest,
      "ONNX: the model has more than 2 GB, which one protocol buffer does not hold; write it to a "
      "path (save_onnx), where its constants get a file of their own");
  Message graph = graph_message(graphs_.back(), "main_graph");
  for (const auto& [name, tensor] : initializers_) {
    bool large = store && bytes_of(tensor) >= kPage;
    graph.message(5, large ? stored_tensor(tensor, name, store, location) : tensor_message(tensor, name));
  }
  Message model;
  model.number(1, format_of(opset_)).text(2, "umbra").message(7, graph);
  model.message(8, Message().text(1, "").number(2, opset_));
  check<NotImplementedError>(model.bytes().size() < kLargest, "ONNX: the model's graph has more than 2 GB");
  return model.bytes();
}

}  // namespace umbra::io::onnx
