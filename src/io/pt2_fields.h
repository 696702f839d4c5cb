// Names of fields and members of the .pt2 schema, stated once for reading and writing.
//
// `fields(visit, s)` calls `visit(name, field)` for every field in declaration order; `visit.defaulted` marks those
// that a file may leave out. `Members<V>` names the alternatives of a union.
#pragma once

#include "umbra/io/pt2_json.h"

namespace umbra::io::pt2 {

template <class V> void fields(V& visit, SymExpr& s) {
  visit("expr_str", s.expr_str);
  visit("hint", s.hint);
}
template <class V> void fields(V& visit, TensorMeta& s) {
  visit("dtype", s.dtype);
  visit("sizes", s.sizes);
  visit("requires_grad", s.requires_grad);
  visit("device", s.device);
  visit("strides", s.strides);
  visit("storage_offset", s.storage_offset);
  visit("layout", s.layout);
}
template <class V> void fields(V& visit, TensorArgument& s) { visit("name", s.name); }
template <class V> void fields(V& visit, GraphArgument& s) {
  visit("name", s.name);
  visit("graph", *s.graph);
}
template <class V> void fields(V& visit, CustomObjArgument& s) {
  visit("name", s.name);
  visit("class_fqn", s.class_fqn);
}
template <class V> void fields(V& visit, NamedArgument& s) {
  visit("name", s.name);
  visit("arg", s.arg);
  visit("kind", s.kind);
}
template <class V> void fields(V& visit, Node& s) {
  visit("target", s.target);
  visit("inputs", s.inputs);
  visit("outputs", s.outputs);
  visit("metadata", s.metadata);
  visit("is_hop_single_tensor_return", s.is_hop_single_tensor_return);
  visit("name", s.name);
}
template <class V> void fields(V& visit, Graph& s) {
  visit("inputs", s.inputs);
  visit("outputs", s.outputs);
  visit("nodes", s.nodes);
  visit("tensor_values", s.tensor_values);
  visit("sym_int_values", s.sym_int_values);
  visit("sym_bool_values", s.sym_bool_values);
  visit.defaulted("is_single_tensor_return", s.is_single_tensor_return);
  visit.defaulted("custom_obj_values", s.custom_obj_values);
  visit.defaulted("sym_float_values", s.sym_float_values);
}

template <class V> void fields(V& visit, UserInputSpec& s) { visit("arg", s.arg); }
template <class V> void fields(V& visit, InputToParameterSpec& s) {
  visit("arg", s.arg);
  visit("parameter_name", s.parameter_name);
}
template <class V> void fields(V& visit, InputToBufferSpec& s) {
  visit("arg", s.arg);
  visit("buffer_name", s.buffer_name);
  visit("persistent", s.persistent);
}
template <class V> void fields(V& visit, InputToTensorConstantSpec& s) {
  visit("arg", s.arg);
  visit("tensor_constant_name", s.tensor_constant_name);
}
template <class V> void fields(V& visit, InputToCustomObjSpec& s) {
  visit("arg", s.arg);
  visit("custom_obj_name", s.custom_obj_name);
}
template <class V> void fields(V& visit, InputTokenSpec& s) { visit("arg", s.arg); }
template <class V> void fields(V& visit, InputToConstantInputSpec& s) {
  visit("name", s.name);
  visit("value", s.value);
}
template <class V> void fields(V& visit, UserOutputSpec& s) { visit("arg", s.arg); }
template <class V> void fields(V& visit, LossOutputSpec& s) { visit("arg", s.arg); }
template <class V> void fields(V& visit, BufferMutationSpec& s) {
  visit("arg", s.arg);
  visit("buffer_name", s.buffer_name);
}
template <class V> void fields(V& visit, GradientToParameterSpec& s) {
  visit("arg", s.arg);
  visit("parameter_name", s.parameter_name);
}
template <class V> void fields(V& visit, GradientToUserInputSpec& s) {
  visit("arg", s.arg);
  visit("user_input_name", s.user_input_name);
}
template <class V> void fields(V& visit, UserInputMutationSpec& s) {
  visit("arg", s.arg);
  visit("user_input_name", s.user_input_name);
}
template <class V> void fields(V& visit, OutputTokenSpec& s) { visit("arg", s.arg); }
template <class V> void fields(V& visit, ParameterMutationSpec& s) {
  visit("arg", s.arg);
  visit("parameter_name", s.parameter_name);
}
template <class V> void fields(V& visit, GraphSignature& s) {
  visit("input_specs", s.input_specs);
  visit("output_specs", s.output_specs);
}

template <class V> void fields(V& visit, RangeConstraint& s) {
  visit("min_val", s.min_val);
  visit("max_val", s.max_val);
}
template <class V> void fields(V& visit, ModuleCallSignature& s) {
  visit("inputs", s.inputs);
  visit("outputs", s.outputs);
  visit("in_spec", s.in_spec);
  visit("out_spec", s.out_spec);
  visit("forward_arg_names", s.forward_arg_names);
}
template <class V> void fields(V& visit, ModuleCallEntry& s) {
  visit("fqn", s.fqn);
  visit("signature", s.signature);
}
template <class V> void fields(V& visit, NamedTupleDef& s) { visit("field_names", s.field_names); }
template <class V> void fields(V& visit, GraphModule& s) {
  visit("graph", s.graph);
  visit("signature", s.signature);
  visit("module_call_graph", s.module_call_graph);
  visit.defaulted("metadata", s.metadata);
  visit.defaulted("treespec_namedtuple_fields", s.treespec_namedtuple_fields);
}
template <class V> void fields(V& visit, SchemaVersion& s) {
  visit("major", s.major);
  visit("minor", s.minor);
}
template <class V> void fields(V& visit, ExportedProgram& s) {
  visit("graph_module", s.graph_module);
  visit("opset_version", s.opset_version);
  visit("range_constraints", s.range_constraints);
  visit("schema_version", s.schema_version);
  visit.defaulted("verifiers", s.verifiers);
  visit.defaulted("torch_version", s.torch_version);
  visit.defaulted("guards_code", s.guards_code);
}
template <class V> void fields(V& visit, PayloadMeta& s) {
  visit("path_name", s.path_name);
  visit("is_param", s.is_param);
  visit("use_pickle", s.use_pickle);
  visit("tensor_meta", s.tensor_meta);
}
template <class V> void fields(V& visit, PayloadConfig& s) { visit("config", s.config); }

/// The names of a union's members, in the order of the variant.
template <class V> struct Members;
template <> struct Members<std::variant<int64_t, bool, double>> {
  static constexpr const char* kNames[] = {"as_int", "as_bool", "as_float"};
};
template <> struct Members<SymIntValue> { static constexpr const char* kNames[] = {"as_expr", "as_int"}; };
template <> struct Members<SymFloatValue> { static constexpr const char* kNames[] = {"as_expr", "as_float"}; };
template <> struct Members<SymBoolValue> { static constexpr const char* kNames[] = {"as_expr", "as_bool"}; };
template <> struct Members<SymIntArgument> { static constexpr const char* kNames[] = {"as_name", "as_int"}; };
template <> struct Members<SymFloatArgument> { static constexpr const char* kNames[] = {"as_name", "as_float"}; };
template <> struct Members<SymBoolArgument> { static constexpr const char* kNames[] = {"as_name", "as_bool"}; };
template <> struct Members<ConstantValue> {
  static constexpr const char* kNames[] = {"as_none", "as_int", "as_float", "as_string", "as_bool"};
};
template <> struct Members<InputSpec> {
  static constexpr const char* kNames[] = {"user_input", "parameter", "buffer",        "tensor_constant",
                                           "custom_obj", "token",     "constant_input"};
};
template <> struct Members<OutputSpec> {
  static constexpr const char* kNames[] = {
      "user_output",         "loss_output", "buffer_mutation",   "gradient_to_parameter", "gradient_to_user_input",
      "user_input_mutation", "token",       "parameter_mutation"};
};
template <> struct Members<decltype(Argument::value)> {
  static constexpr const char* kNames[] = {"as_none",
                                           "as_tensor",
                                           "as_tensors",
                                           "as_int",
                                           "as_ints",
                                           "as_float",
                                           "as_floats",
                                           "as_string",
                                           "as_strings",
                                           "as_sym_int",
                                           "as_sym_ints",
                                           "as_scalar_type",
                                           "as_memory_format",
                                           "as_layout",
                                           "as_device",
                                           "as_bool",
                                           "as_bools",
                                           "as_sym_bool",
                                           "as_sym_bools",
                                           "as_graph",
                                           "as_optional_tensors",
                                           "as_custom_obj",
                                           "as_operator",
                                           "as_sym_float",
                                           "as_sym_floats",
                                           "as_optional_tensor",
                                           "as_complex",
                                           "as_nested_tensors",
                                           "as_int_lists",
                                           "as_string_to_argument",
                                           "as_float_lists"};
  static_assert(std::size(kNames) == std::variant_size_v<decltype(Argument::value)>);
};

// ---- enums by number ----

inline constexpr std::pair<int64_t, DType> kDTypes[] = {
    {1, DType::UInt8},           {2, DType::Int8},
    {3, DType::Int16},           {4, DType::Int32},
    {5, DType::Int64},           {6, DType::Float16},
    {7, DType::Float32},         {8, DType::Float64},
    {9, DType::Complex32},       {10, DType::Complex64},
    {11, DType::Complex128},     {12, DType::Bool},
    {13, DType::BFloat16},       {28, DType::UInt16},
    {29, DType::Float8E4M3},     {30, DType::Float8E5M2},
    {31, DType::Float8E4M3FNUZ}, {32, DType::Float8E5M2FNUZ},
    {33, DType::Float8E8M0FNU},  {34, DType::UInt32},
    {35, DType::UInt64},
};
inline constexpr std::pair<int64_t, Layout> kLayoutNumbers[] = {
    {1, Layout::SparseCoo}, {2, Layout::SparseCsr}, {3, Layout::SparseCsc}, {4, Layout::SparseBsr},
    {5, Layout::SparseBsc}, {6, Layout::Mkldnn},    {7, Layout::Strided}};
inline constexpr std::pair<int64_t, MemoryFormat> kMemoryFormats[] = {{1, MemoryFormat::Contiguous},
                                                                      {2, MemoryFormat::ChannelsLast},
                                                                      {3, MemoryFormat::ChannelsLast3d},
                                                                      {4, MemoryFormat::Preserve}};
inline constexpr std::pair<int64_t, ArgumentKind> kArgumentKinds[] = {
    {0, ArgumentKind::Unknown}, {1, ArgumentKind::Positional}, {2, ArgumentKind::Keyword}};

}  // namespace umbra::io::pt2
