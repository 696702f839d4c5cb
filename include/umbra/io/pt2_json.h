// The program inside a .pt2 file as plain data: structs that mirror its JSON, field for field, with a reader and a
// writer.
//
// Nothing here knows operators or graphs of ours; names stand for values, and a std::variant for each union of the
// schema.
//
//     pt2::ExportedProgram program = pt2::parse_program(text, "models/model.json");
//     for (const pt2::Node& node : program.graph_module.graph.nodes) { node.target; ... }
//     std::string again = pt2::write_program(program);
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "umbra/core/device.h"
#include "umbra/core/dtype.h"

namespace UMBRA_API umbra {
namespace io::pt2 {

/// A JSON object used as a map, in the order of the file.
template <class T> struct Entry {  // a pair would want to know all of T where a type holds entries of itself
  std::string name;
  T value;
};
template <class T> using Named = std::vector<Entry<T>>;

// ---- symbolic values ----

/// An expression in SymPy's srepr form (infix in older files), with its value at export time.
struct SymExpr {
  std::string expr_str;
  std::optional<std::variant<int64_t, bool, double>> hint;
};
using SymIntValue = std::variant<SymExpr, int64_t>;
using SymFloatValue = std::variant<SymExpr, double>;
using SymBoolValue = std::variant<SymExpr, bool>;

struct TensorMeta {
  DType dtype = DType::Float32;
  std::vector<SymIntValue> sizes;
  bool requires_grad = false;
  Device device;
  std::vector<SymIntValue> strides;
  SymIntValue storage_offset = int64_t{0};
  Layout layout = Layout::Strided;
};

// ---- arguments ----

struct Graph;
struct Argument;

struct TensorArgument {
  std::string name;
};
/// A value by name, or a number among names.
using SymIntArgument = std::variant<std::string, int64_t>;
using SymFloatArgument = std::variant<std::string, double>;
using SymBoolArgument = std::variant<std::string, bool>;
/// Tensor or nothing.
using OptionalTensorArgument = std::optional<TensorArgument>;
struct GraphArgument {
  std::string name;
  std::shared_ptr<Graph> graph;
};
struct CustomObjArgument {
  std::string name;
  std::string class_fqn;
};
struct OperatorArgument {
  std::string target;
};

/// The union Argument. The member follows the value, not the operator's schema: see the table of the format.
struct Argument {
  std::variant<std::monostate,                            // as_none
               TensorArgument,                            // as_tensor
               std::vector<TensorArgument>,               // as_tensors
               int64_t,                                   // as_int
               std::vector<int64_t>,                      // as_ints
               double,                                    // as_float
               std::vector<double>,                       // as_floats
               std::string,                               // as_string
               std::vector<std::string>,                  // as_strings
               SymIntArgument,                            // as_sym_int
               std::vector<SymIntArgument>,               // as_sym_ints
               DType,                                     // as_scalar_type
               MemoryFormat,                              // as_memory_format
               Layout,                                    // as_layout
               Device,                                    // as_device
               bool,                                      // as_bool
               std::vector<bool>,                         // as_bools
               SymBoolArgument,                           // as_sym_bool
               std::vector<SymBoolArgument>,              // as_sym_bools
               GraphArgument,                             // as_graph
               std::vector<OptionalTensorArgument>,       // as_optional_tensors
               CustomObjArgument,                         // as_custom_obj
               OperatorArgument,                          // as_operator
               SymFloatArgument,                          // as_sym_float
               std::vector<SymFloatArgument>,             // as_sym_floats
               OptionalTensorArgument,                    // as_optional_tensor
               std::complex<double>,                      // as_complex
               std::vector<std::vector<TensorArgument>>,  // as_nested_tensors
               std::vector<std::vector<int64_t>>,         // as_int_lists
               Named<Argument>,                           // as_string_to_argument
               std::vector<std::vector<double>>>          // as_float_lists
      value;

  template <class T> const T* get() const { return std::get_if<T>(&value); }
  template <class T> bool is() const { return std::holds_alternative<T>(value); }
  /// "as_tensor": the name of the member that is set.
  const char* member() const;
};

enum class ArgumentKind { Unknown, Positional, Keyword };

struct NamedArgument {
  std::string name;
  Argument arg;
  std::optional<ArgumentKind> kind;
};

struct Node {
  std::string target;
  std::vector<NamedArgument> inputs;
  std::vector<Argument> outputs;
  Named<std::string> metadata;
  std::optional<bool> is_hop_single_tensor_return;
  std::optional<std::string> name;
};

struct Graph {
  std::vector<Argument> inputs;
  std::vector<Argument> outputs;
  std::vector<Node> nodes;
  Named<TensorMeta> tensor_values;
  Named<SymIntValue> sym_int_values;
  Named<SymBoolValue> sym_bool_values;
  bool is_single_tensor_return = false;
  Named<CustomObjArgument> custom_obj_values;
  Named<SymFloatValue> sym_float_values;
};

// ---- signature ----

using ConstantValue = std::variant<std::monostate, int64_t, double, std::string, bool>;

struct UserInputSpec {
  Argument arg;
};
struct InputToParameterSpec {
  TensorArgument arg;
  std::string parameter_name;
};
struct InputToBufferSpec {
  TensorArgument arg;
  std::string buffer_name;
  bool persistent = true;
};
struct InputToTensorConstantSpec {
  TensorArgument arg;
  std::string tensor_constant_name;
};
struct InputToCustomObjSpec {
  CustomObjArgument arg;
  std::string custom_obj_name;
};
struct InputTokenSpec {
  TensorArgument arg;
};
struct InputToConstantInputSpec {
  std::string name;
  ConstantValue value;
};
using InputSpec = std::variant<UserInputSpec, InputToParameterSpec, InputToBufferSpec, InputToTensorConstantSpec,
                               InputToCustomObjSpec, InputTokenSpec, InputToConstantInputSpec>;

struct UserOutputSpec {
  Argument arg;
};
struct LossOutputSpec {
  TensorArgument arg;
};
struct BufferMutationSpec {
  TensorArgument arg;
  std::string buffer_name;
};
struct GradientToParameterSpec {
  TensorArgument arg;
  std::string parameter_name;
};
struct GradientToUserInputSpec {
  TensorArgument arg;
  std::string user_input_name;
};
struct UserInputMutationSpec {
  TensorArgument arg;
  std::string user_input_name;
};
struct OutputTokenSpec {
  TensorArgument arg;
};
struct ParameterMutationSpec {
  TensorArgument arg;
  std::string parameter_name;
};
using OutputSpec = std::variant<UserOutputSpec, LossOutputSpec, BufferMutationSpec, GradientToParameterSpec,
                                GradientToUserInputSpec, UserInputMutationSpec, OutputTokenSpec, ParameterMutationSpec>;

struct GraphSignature {
  std::vector<InputSpec> input_specs;
  std::vector<OutputSpec> output_specs;
};

// ---- the program ----

struct RangeConstraint {
  std::optional<int64_t> min_val, max_val;
};

/// in_spec and out_spec are JSON texts of their own.
struct ModuleCallSignature {
  std::vector<Argument> inputs;
  std::vector<Argument> outputs;
  std::string in_spec;
  std::string out_spec;
  std::optional<std::vector<std::string>> forward_arg_names;
};
struct ModuleCallEntry {
  std::string fqn;
  std::optional<ModuleCallSignature> signature;
};
struct NamedTupleDef {
  std::vector<std::string> field_names;
};

struct GraphModule {
  Graph graph;
  GraphSignature signature;
  std::vector<ModuleCallEntry> module_call_graph;
  Named<std::string> metadata;
  Named<NamedTupleDef> treespec_namedtuple_fields;
};

struct SchemaVersion {
  int64_t major = 8, minor = 20;
};

struct ExportedProgram {
  GraphModule graph_module;
  Named<int64_t> opset_version = {{"aten", 10}};
  Named<RangeConstraint> range_constraints;
  SchemaVersion schema_version;
  std::vector<std::string> verifiers;
  std::string torch_version = "<=2.4";
  std::vector<std::string> guards_code;
};

/// Where a weight or constant lies in its archive.
struct PayloadMeta {
  std::string path_name;
  bool is_param = false;
  bool use_pickle = false;
  std::optional<TensorMeta> tensor_meta;
};
struct PayloadConfig {
  Named<PayloadMeta> config;
};

// ---- reading and writing ----

/// Reads schema 8, and the files of PyTorch 2.4 (schema 5): fields that are left out, bare infinities, `dialect`. An
/// error names the place in the JSON. Checks the form only; see verify() in pt2_verify.h.
ExportedProgram parse_program(std::string_view text, const std::string& label);
PayloadConfig parse_payload_config(std::string_view text, const std::string& label);

/// The text that PyTorch writes for the same contents, byte for byte.
std::string write_program(const ExportedProgram& program);
std::string write_payload_config(const PayloadConfig& config);

}  // namespace io::pt2
}  // namespace umbra
