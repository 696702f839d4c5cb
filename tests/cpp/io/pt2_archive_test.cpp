#include "umbra/io/pt2_archive.h"

#include <gmock/gmock.h>

#include "io/testing.h"
#include "umbra/io/json.h"
#include "umbra/io/pickle.h"
#include "umbra/io/safetensors.h"
#include "umbra/io/zip.h"

namespace umbra::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A program that takes one parameter and returns it.
Pt2Archive identity_archive(Tensor weight) {
  pt2::TensorArgument p{"p_w"};
  Pt2Archive archive;
  Pt2Program& program = archive.programs.emplace_back();
  pt2::GraphModule& module = program.program.graph_module;
  module.graph.inputs = {{p}};
  module.graph.outputs = {{p}};
  module.graph.tensor_values = {{"p_w", {}}};
  module.signature.input_specs = {pt2::InputToParameterSpec{p, "w"}};
  module.signature.output_specs = {pt2::UserOutputSpec{{p}}};
  module.module_call_graph = {{"", pt2::ModuleCallSignature{{}, {}, "[1, null]", "[1, null]", {}}}};
  program.weights = {{"w", std::move(weight), true, true}};
  return archive;
}

std::string bytes_of(const Pt2Archive& archive) {
  BufferSink sink;
  write_pt2(sink, archive);
  return sink.text;
}

/// The archive of identity_archive with entries changed: a contents of "-" leaves the entry out.
std::string changed(const NamedTexts& changes) {
  ZipReader zip(Bytes(bytes_of(identity_archive(arange(6)))), "test.pt2");
  BufferSink sink;
  ZipWriter writer(sink);
  for (const ZipEntry& entry : zip.entries()) {
    std::string contents(zip.read(entry).text());
    for (const auto& [name, replacement] : changes)
      if (entry.name == "archive/" + name) contents = replacement;
    if (contents != "-") writer.add(entry.name, contents);
  }
  writer.finish();
  return sink.text;
}

std::string reading_error(const std::string& name, const std::string& contents) {
  return error_of<ValueError>([&] { read_pt2(Bytes(changed({{name, contents}})), "test.pt2"); });
}

std::string weight_error(const std::string& part, const std::string& replacement) {
  ZipReader zip(Bytes(bytes_of(identity_archive(arange(6)))), "test.pt2");
  std::string config(zip.read("archive/data/weights/model_weights_config.json").text());
  size_t at = config.find(part);
  EXPECT_NE(at, std::string::npos) << part << " in " << config;
  return reading_error("data/weights/model_weights_config.json", config.replace(at, part.size(), replacement));
}

TEST(Pt2Archive, ReadsWhatItWrote) {
  TemporaryFolder folder;
  Pt2Archive archive = identity_archive(arange(6));
  Tensor base = arange(12);
  archive.programs[0].constants = {{"row", alias_tensor(base, {3}, {1}, 3)},
                                   {"column", alias_tensor(base, {4}, {3}, 1)}};
  archive.extra_files = {{"notes.txt", "hello"}};
  archive.programs[0].sample_inputs = Bytes(std::string("not looked at"));
  save_pt2(folder.file("identity.pt2"), archive);

  Pt2Archive loaded = load_pt2(folder.file("identity.pt2"));
  ASSERT_EQ(loaded.programs.size(), 1u);
  const Pt2Program& program = loaded.programs[0];
  EXPECT_EQ(program.name, "model");
  EXPECT_TRUE(program.weights[0].is_param && program.weights[0].requires_grad);
  EXPECT_EQ(program.weights[0].tensor.data<float>()[5], 5);
  EXPECT_THAT(program.constants[1].tensor.strides().vec(), ElementsAre(3));
  EXPECT_EQ(*program.constants[1].tensor.data<float>(), 1);
  EXPECT_EQ(program.constants[0].tensor.storage(), program.constants[1].tensor.storage());
  EXPECT_EQ(loaded.extra_files[0].second, "hello");
  EXPECT_EQ(program.sample_inputs.text(), "not looked at");
  EXPECT_EQ(ZipReader::open(folder.file("identity.pt2")).root(), "identity/");
}

TEST(Pt2Archive, TensorsOfTheMetaDeviceStayThere) {
  Pt2Archive loaded =
      read_pt2(Bytes(bytes_of(identity_archive(allocate_tensor({2, 3}, {3, 1}, DType::Float32, Device("meta"))))), "t");
  const Tensor& weight = loaded.programs[0].weights[0].tensor;
  EXPECT_THAT(weight.sizes().vec(), ElementsAre(2, 3));
  EXPECT_TRUE(weight.is_meta());
}

TEST(Pt2Archive, RefusesArchivesThatAreNone) {
  EXPECT_EQ(reading_error("byteorder", "-"), "no error");
  EXPECT_THAT(reading_error("archive_format", "-"), HasSubstr("no entry 'archive_format'"));
  EXPECT_THAT(reading_error("archive_format", "zip"), HasSubstr("archive_format is 'zip'"));
  EXPECT_THAT(reading_error("archive_version", "99"), HasSubstr("archive_version is '99'"));
  EXPECT_THAT(reading_error("byteorder", "big"), HasSubstr("byteorder is 'big'"));
  EXPECT_THAT(reading_error("models/model.json", "-"), HasSubstr("holds no program"));
  EXPECT_THAT(reading_error("models/model.json", ""), HasSubstr("no bytes"));
  EXPECT_THAT(reading_error("models/model.json", std::string(200'000, '[')), HasSubstr("nested deeper"));
  EXPECT_THAT(reading_error("data/weights/model_weights_config.json", "-"), HasSubstr("model_weights_config.json"));
  EXPECT_THAT(reading_error("data/weights/model_weights_config.json", R"({"config": {}})"),
              HasSubstr("takes the parameter 'w', which the file does not hold"));
  EXPECT_THAT(reading_error("data/weights/weight_0", "-"), HasSubstr("which is missing"));
  EXPECT_THAT(reading_error("data/weights/weight_0", std::string(23, 'x')), HasSubstr("no whole number"));
  EXPECT_THAT(reading_error("data/weights/weight_0", std::string(20, 'x')), HasSubstr("needs more data"));
}

TEST(Pt2Archive, RefusesWeightsThatLie) {
  EXPECT_EQ(weight_error("weight_0", "weight_0"), "no error");
  EXPECT_THAT(weight_error("weight_0", "../weight_0"), HasSubstr("outside of its folder"));
  EXPECT_THAT(weight_error(R"("use_pickle": false)", R"("use_pickle": true)"), HasSubstr("could run code"));
  std::string sizes = R"("sizes": [{"as_int": 6}])", strides = R"("strides": [{"as_int": 1}])";
  EXPECT_THAT(weight_error(sizes, R"("sizes": [{"as_int": 7}])"), HasSubstr("needs more data"));
  EXPECT_THAT(weight_error(sizes, R"("sizes": [{"as_int": -6}])"), HasSubstr("negative size"));
  EXPECT_THAT(weight_error(sizes, R"("sizes": [{"as_int": -9223372036854775808}])"), HasSubstr("negative size"));
  EXPECT_THAT(weight_error(sizes, R"("sizes": [{"as_int": 9223372036854775807}])"), HasSubstr("too large"));
  EXPECT_THAT(weight_error(sizes, R"("sizes": [{"as_int": 6}, {"as_int": 1}])"), HasSubstr("2 sizes and 1 strides"));
  EXPECT_THAT(weight_error(sizes, R"("sizes": [{"as_expr": {"expr_str": "s0"}}])"), HasSubstr("symbolic"));
  EXPECT_THAT(weight_error(strides, R"("strides": [{"as_int": -1}])"), HasSubstr("negative stride"));
  EXPECT_THAT(weight_error(strides, R"("strides": [{"as_int": 4611686018427387904}])"), HasSubstr("too large"));
  EXPECT_THAT(weight_error(R"("storage_offset": {"as_int": 0})", R"("storage_offset": {"as_int": 1})"),
              HasSubstr("needs more data"));
  EXPECT_THAT(weight_error(R"("layout": 7)", R"("layout": 1)"), HasSubstr("not a dense tensor"));
}

TEST(Pt2Archive, FilesOfPyTorchComeBackEntryByEntry) {
  UMBRA_NEEDS_MODELS(models);
  for (const auto& folder : std::filesystem::directory_iterator(models))
    for (const char* name : {"program.pt2", "program_core.pt2", "two_programs.pt2"}) {
      std::string path = (folder.path() / name).string();
      if (!std::filesystem::exists(path)) continue;
      ZipReader original = ZipReader::open(path);
      BufferSink sink;
      write_pt2(sink, load_pt2(path), archive_root(path));
      ZipReader again(Bytes(std::move(sink.text)), path);
      ASSERT_EQ(again.entries().size(), original.entries().size()) << path;
      for (size_t i = 0; i < again.entries().size(); ++i) {
        const ZipEntry &a = original.entries()[i], &b = again.entries()[i];
        EXPECT_EQ(a.name, b.name) << path;
        EXPECT_EQ(a.data_offset, b.data_offset) << path;
        if (a.name.ends_with("serialization_id")) continue;
        EXPECT_EQ(a.crc, b.crc) << path << " " << a.name;
      }
    }
}

TEST(Pt2Archive, TheOlderContainer) {
  UMBRA_NEEDS_MODELS(models);
  int count = 0;
  for (const auto& folder : std::filesystem::directory_iterator(models)) {
    std::string path = (folder.path() / "program_2_4.pt2").string();
    if (!std::filesystem::exists(path)) continue;
    ++count;
    Pt2Archive archive = load_pt2(path);
    ASSERT_EQ(archive.programs.size(), 1u);
    EXPECT_EQ(archive.programs[0].program.schema_version.major, 5);
    EXPECT_EQ(archive.programs[0].program.verifiers, std::vector<std::string>{"ATEN"});
    // The same weights as in the file of today.
    Pt2Archive today = load_pt2((folder.path() / "program.pt2").string());
    for (const Pt2Tensor& old : archive.programs[0].weights)
      for (const Pt2Tensor& weight : today.programs[0].weights)
        if (weight.name == old.name) {
          BufferSink one, two;
          write_safetensors(one, {{"x", old.tensor}});
          write_safetensors(two, {{"x", weight.tensor}});
          EXPECT_TRUE(one.text == two.text) << path << " " << old.name;
        }
  }
  EXPECT_EQ(count, 12);
}

// What only someone who knows operators and expressions can see is left to those.
bool needs_operators(const std::string& file) {
  for (const char* name :
       {"unknown_op.pt2", "unknown_overload.pt2", "unknown_namespace.pt2", "wrong_argument_kind.pt2",
        "missing_argument.pt2", "unknown_argument.pt2", "expression_code.pt2", "expression_broken.pt2"})
    if (file == name) return true;
  return false;
}

TEST(Pt2Archive, MalformedFilesAreRefused) {
  UMBRA_NEEDS_MODELS(models);
  Json manifest = parse_json(read_file(models + "/bad/manifest.json").text(), "manifest.json");
  for (const Json& row : manifest.array()) {
    std::string file = row.find("file")->as_string(), path = models + "/bad/" + file;
    if (row.find("expect")->as_string() != "reject" || needs_operators(file)) continue;
    std::string error = error_of([&] {
      if (file.ends_with(".pt2")) load_pt2(path);
      if (file.ends_with(".pt")) load_pickle(path);
      if (file.ends_with(".safetensors")) load_safetensors(path);
    });
    EXPECT_NE(error, "no error") << file;
    EXPECT_THAT(error, Not(HasSubstr("another kind"))) << file;
    if (std::getenv("UMBRA_SHOW_ERRORS")) std::printf("%-32s %s\n", file.c_str(), error.c_str());
  }
}

}  // namespace
}  // namespace umbra::io
