#include "umbra/io/pt2_json.h"

#include <gmock/gmock.h>

#include "io/testing.h"
#include "umbra/io/pt2_verify.h"
#include "umbra/io/zip.h"

namespace umbra::io::pt2 {
namespace {

using ::testing::HasSubstr;

/// A program of one node, y = x + 1, with `replace` put in place of a part.
std::string program_text(const std::string& part = "", const std::string& replacement = "") {
  std::string meta =
      R"({"dtype": 7, "sizes": [{"as_expr": {"expr_str": "Symbol('s0', integer=True) ", "hint": {"as_int": 4}}}, {"as_int": 3}], )"
      R"("requires_grad": false, "device": {"type": "cpu", "index": null}, "strides": [{"as_int": 3}, {"as_int": 1}], )"
      R"("storage_offset": {"as_int": 0}, "layout": 7})";
  std::string text =
      R"({"graph_module": {"graph": {"inputs": [{"as_tensor": {"name": "x"}}], "outputs": [{"as_tensor": {"name": "add"}}], )"
      R"("nodes": [{"target": "torch.ops.aten.add.Tensor", "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "x"}}, )"
      R"("kind": 1}, {"name": "other", "arg": {"as_float": 1.0}, "kind": 1}], "outputs": [{"as_tensor": {"name": "add"}}], )"
      R"("metadata": {"stack_trace": "a\nb"}, "is_hop_single_tensor_return": null, "name": "add"}], "tensor_values": {"x": )" +
      meta + R"(, "add": )" + meta +
      R"(}, "sym_int_values": {}, "sym_bool_values": {}, "is_single_tensor_return": false, "custom_obj_values": {}, )"
      R"("sym_float_values": {}}, "signature": {"input_specs": [{"user_input": {"arg": {"as_tensor": {"name": "x"}}}}], )"
      R"("output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "add"}}}}]}, "module_call_graph": [{"fqn": "", )"
      R"("signature": {"inputs": [], "outputs": [], "in_spec": "[1, null]", "out_spec": "[1, null]", "forward_arg_names": )"
      R"(["x"]}}], "metadata": {}, "treespec_namedtuple_fields": {}}, "opset_version": {"aten": 10}, "range_constraints": )"
      R"({"s0": {"min_val": 0, "max_val": null}}, "schema_version": {"major": 8, "minor": 20}, "verifiers": ["TRAINING"], )"
      R"("torch_version": "2.15.0", "guards_code": []})";
  if (part.empty()) return text;
  size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return text.replace(at, part.size(), replacement);
}

std::string parsing_error(const std::string& part, const std::string& replacement) {
  return error_of<ValueError>(
      [&] { verify(parse_program(program_text(part, replacement), "model.json"), "model.json"); });
}

/// The argument written back, after reading it as the addend of the program.
std::string argument_again(const std::string& argument) {
  ExportedProgram program = parse_program(program_text(R"({"as_float": 1.0})", argument), "model.json");
  std::string text = write_program(program);
  size_t from = text.find("\"other\", \"arg\": ") + 16;
  return text.substr(from, text.find(", \"kind\"", from) - from);
}

TEST(Pt2Json, ProgramsComeBackByteForByte) {
  ExportedProgram program = parse_program(program_text(), "model.json");
  verify(program, "model.json");
  EXPECT_EQ(write_program(program), program_text());
  const Node& node = program.graph_module.graph.nodes[0];
  EXPECT_EQ(node.target, "torch.ops.aten.add.Tensor");
  EXPECT_EQ(node.inputs[0].arg.get<TensorArgument>()->name, "x");
  EXPECT_EQ(*node.inputs[1].arg.get<double>(), 1.0);
  EXPECT_STREQ(node.inputs[1].arg.member(), "as_float");
  EXPECT_EQ(node.inputs[1].kind, ArgumentKind::Positional);
  const TensorMeta& meta = program.graph_module.graph.tensor_values[0].value;
  EXPECT_EQ(meta.dtype, DType::Float32);
  EXPECT_EQ(std::get<SymExpr>(meta.sizes[0]).expr_str, "Symbol('s0', integer=True) ");
  EXPECT_EQ(std::get<int64_t>(*std::get<SymExpr>(meta.sizes[0]).hint), 4);
  EXPECT_FALSE(program.range_constraints[0].value.max_val.has_value());
}

TEST(Pt2Json, EveryKindOfArgumentComesBack) {
  for (const char* argument : {R"({"as_none": true})",
                               R"({"as_tensor": {"name": "x"}})",
                               R"({"as_tensors": [{"name": "x"}, {"name": "y"}]})",
                               R"({"as_int": 9223372036854775807})",
                               R"({"as_ints": [-1, 2]})",
                               R"({"as_float": 1e-05})",
                               R"({"as_floats": [0.5, "NaN"]})",
                               R"({"as_string": "none"})",
                               R"({"as_strings": ["a", "b"]})",
                               R"({"as_sym_int": {"as_name": "s"}})",
                               R"({"as_sym_ints": [{"as_name": "s"}, {"as_int": 3}]})",
                               R"({"as_scalar_type": 13})",
                               R"({"as_memory_format": 2})",
                               R"({"as_layout": 7})",
                               R"({"as_device": {"type": "cuda", "index": 1}})",
                               R"({"as_bool": false})",
                               R"({"as_bools": [true, false]})",
                               R"({"as_sym_bool": {"as_name": "b"}})",
                               R"({"as_sym_bools": [{"as_bool": true}]})",
                               R"({"as_optional_tensors": [{"as_tensor": {"name": "x"}}, {"as_none": true}]})",
                               R"({"as_custom_obj": {"name": "o", "class_fqn": "c"}})",
                               R"({"as_operator": "torch.ops.aten.add.Tensor"})",
                               R"({"as_sym_float": {"as_float": 2.0}})",
                               R"({"as_sym_floats": [{"as_name": "f"}]})",
                               R"({"as_optional_tensor": {"as_none": true}})",
                               R"({"as_complex": {"real": 1.0, "imag": -2.5}})",
                               R"({"as_nested_tensors": [[{"name": "x"}], []]})",
                               R"({"as_int_lists": [[1], [2, 3]]})",
                               R"({"as_string_to_argument": {"k": {"as_int": 1}}})",
                               R"({"as_float_lists": [[1.0]]})",
                               R"({"as_float": "Infinity"})",
                               R"({"as_float": "-Infinity"})"})
    EXPECT_EQ(argument_again(argument), argument);
  EXPECT_EQ(argument_again(R"({"as_float": 5})"), R"({"as_float": 5.0})");
}

TEST(Pt2Json, ReadsTheOlderForm) {
  EXPECT_EQ(argument_again(R"({"as_none": []})"), R"({"as_none": true})");
  EXPECT_EQ(argument_again(R"({"as_float": -Infinity})"), R"({"as_float": "-Infinity"})");
  EXPECT_EQ(argument_again(R"({"as_int": true})"), R"({"as_bool": true})");
  ExportedProgram program =
      parse_program(program_text(R"("verifiers": ["TRAINING"], "torch_version": "2.15.0", "guards_code": [])",
                                 R"("dialect": "ATEN")"),
                    "model.json");
  EXPECT_EQ(program.verifiers, std::vector<std::string>{"ATEN"});
  EXPECT_EQ(program.torch_version, "<=2.4");
  program = parse_program(program_text(R"("major": 8, "minor": 20)", R"("major": 5, "minor": 3)"), "model.json");
  EXPECT_EQ(program.schema_version.major, 5);
  EXPECT_EQ(write_program(program), program_text());
  EXPECT_EQ(parsing_error(R"("cpu", "index": null)", R"("cpu")"), "no error");
}

TEST(Pt2Json, ErrorsNameThePlace) {
  EXPECT_THAT(parsing_error(R"("as_float": 1.0)", R"("as_float": "one")"),
              HasSubstr("graph_module.graph.nodes[0].inputs[1].arg.as_float: expected a number"));
  EXPECT_THAT(parsing_error(R"("as_float": 1.0)", R"("as_flout": 1.0)"), HasSubstr("'as_flout' is not known"));
  EXPECT_THAT(parsing_error(R"("as_float": 1.0)", R"("as_float": 1.0, "as_int": 1)"), HasSubstr("2 are"));
  EXPECT_THAT(parsing_error(R"({"as_float": 1.0})", R"({})"), HasSubstr("0 are"));
  EXPECT_THAT(parsing_error(R"("as_float": 1.0)", R"("as_int": 1.0)"), HasSubstr("expected an integer, found a float"));
  EXPECT_THAT(parsing_error(R"("nodes")", R"("knots")"), HasSubstr("'nodes' is missing"));
  EXPECT_THAT(parsing_error(R"("dtype": 7)", R"("dtype": 99)"), HasSubstr("tensor_values.x.dtype: dtype number 99"));
  EXPECT_THAT(parsing_error(R"("type": "cpu")", R"("type": "abacus")"), HasSubstr("abacus"));
  EXPECT_THAT(parsing_error(R"("major": 8)", R"("major": 9000)"), HasSubstr("schema version 9000.20"));
  EXPECT_THAT(error_of<ValueError>([] { parse_program("[]", "model.json"); }), HasSubstr("expected an object"));
  EXPECT_THAT(error_of<ValueError>([] { parse_program("", "model.json"); }), HasSubstr("no bytes"));
}

TEST(Pt2Json, VerifierSeesWhatDoesNotHangTogether) {
  EXPECT_THAT(
      parsing_error(R"("arg": {"as_tensor": {"name": "x"}}, "kind")", R"("arg": {"as_tensor": {"name": "z"}}, "kind")"),
      HasSubstr("uses 'z', which nothing before it defines"));
  EXPECT_THAT(parsing_error(R"("outputs": [{"as_tensor": {"name": "add"}}], "metadata")",
                            R"("outputs": [{"as_tensor": {"name": "sum"}}], "metadata")"),
              HasSubstr("'sum'"));
  EXPECT_THAT(parsing_error(R"("outputs": [{"as_tensor": {"name": "add"}}], "metadata")",
                            R"("outputs": [{"as_tensor": {"name": "x"}}], "metadata")"),
              HasSubstr("defined twice"));
  EXPECT_THAT(parsing_error("torch.ops.aten.add.Tensor", "builtins.print"),
              HasSubstr("'builtins.print' is no operator"));
  EXPECT_EQ(parsing_error("torch.ops.aten.add.Tensor", "_operator.add"), "no error");
  EXPECT_THAT(parsing_error(R"([{"user_input": {"arg": {"as_tensor": {"name": "x"}}}}])", "[]"),
              HasSubstr("1 inputs, and its signature 0"));
  EXPECT_THAT(parsing_error(R"({"user_input": {"arg": {"as_tensor": {"name": "x"}}}})",
                            R"({"user_input": {"arg": {"as_tensor": {"name": "w"}}}})"),
              HasSubstr("'w' in its signature"));
  EXPECT_THAT(parsing_error(R"("min_val": 0, "max_val": null)", R"("min_val": 7, "max_val": 3)"),
              HasSubstr("reversed"));
}

TEST(Pt2Json, FilesOfPyTorchComeBackByteForByte) {
  UMBRA_NEEDS_MODELS(models);
  int programs = 0;
  for (const auto& folder : std::filesystem::directory_iterator(models))
    for (const char* name : {"program.pt2", "program_core.pt2", "two_programs.pt2"}) {
      std::string path = (folder.path() / name).string();
      if (!std::filesystem::exists(path)) continue;
      ZipReader zip = ZipReader::open(path);
      for (const ZipEntry& entry : zip.entries()) {
        Bytes text = zip.read(entry);
        std::string again;
        if (entry.name.find("/models/") != std::string::npos) {
          ExportedProgram program = parse_program(text.text(), path);
          verify(program, path);
          again = write_program(program);
          ++programs;
        } else if (entry.name.ends_with("_config.json")) {
          again = write_payload_config(parse_payload_config(text.text(), path));
        } else {
          continue;
        }
        EXPECT_TRUE(again == text.text()) << path << " " << entry.name;
      }
    }
  EXPECT_GT(programs, 80);
}

}  // namespace
}  // namespace umbra::io::pt2
