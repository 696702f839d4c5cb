#include "umbra/io/safetensors.h"

#include <gmock/gmock.h>

#include "io/testing.h"

namespace umbra::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string with_header(const std::string& header, size_t data_size) {
  uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), 8) + header + std::string(data_size, '\0');
}

std::string reading_error(const std::string& header, size_t data_size) {
  return error_of<ValueError>([&] { read_safetensors(Bytes(with_header(header, data_size)), "t.safetensors"); });
}

Tensor floats(std::initializer_list<float> values) {
  Tensor tensor = allocate_tensor({static_cast<int64_t>(values.size())}, {1}, DType::Float32, Device());
  std::copy(values.begin(), values.end(), tensor.data<float>());
  return tensor;
}

const Tensor& by_name(const NamedTensors& tensors, const std::string& name) {
  for (const auto& [key, tensor] : tensors)
    if (key == name) return tensor;
  throw KeyError(name);
}

TEST(Safetensors, LoadsWhatItSaved) {
  TemporaryFolder folder;
  Tensor base = floats({1, 2, 3, 4, 5, 6});
  Tensor turned = alias_tensor(base, {3, 2}, {1, 3}, 0);
  Tensor scalar = alias_tensor(base, {}, {}, 4);
  Tensor empty = allocate_tensor({0, 4}, {4, 1}, DType::Int64, Device());
  save_safetensors(folder.file("a.safetensors"),
                   {{"turned", turned}, {"scalar", scalar}, {"empty", empty}, {"\xc3\xa4.b", base}},
                   {{"format", "pt"}});
  NamedTensors loaded = load_safetensors(folder.file("a.safetensors"));
  ASSERT_EQ(loaded.size(), 4u);
  const Tensor& back = by_name(loaded, "turned");
  EXPECT_THAT(back.sizes().vec(), ElementsAre(3, 2));
  EXPECT_THAT(std::vector<float>(back.data<float>(), back.data<float>() + 6), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_EQ(*by_name(loaded, "scalar").data<float>(), 5);
  EXPECT_EQ(by_name(loaded, "scalar").dim(), 0);
  EXPECT_THAT(by_name(loaded, "empty").sizes().vec(), ElementsAre(0, 4));
  EXPECT_EQ(by_name(loaded, "\xc3\xa4.b").numel(), 6);
  Safetensors all = read_safetensors(map_file(folder.file("a.safetensors")), "a");
  EXPECT_THAT(all.metadata, ElementsAre(std::pair<std::string, std::string>("format", "pt")));
}

TEST(Safetensors, LoadedTensorsAreWritableAndTheFileIsNot) {
  TemporaryFolder folder;
  save_safetensors(folder.file("a"), {{"x", floats({1, 2})}});
  *load_safetensors(folder.file("a"))[0].second.data<float>() = 7;
  EXPECT_EQ(*load_safetensors(folder.file("a"))[0].second.data<float>(), 1);
}

TEST(Safetensors, RefusesMalformedFiles) {
  EXPECT_THAT(error_of<ValueError>([] { read_safetensors(Bytes(std::string("abc")), "t"); }), HasSubstr("too short"));
  std::string huge = with_header("{}", 0);
  huge[6] = 1;
  EXPECT_THAT(error_of<ValueError>([&] { read_safetensors(Bytes(huge), "t"); }), HasSubstr("is said to have"));
  auto one = [](const char* rest) { return std::string("{\"a\": {") + rest + "}}"; };
  EXPECT_THAT(reading_error("[]", 0), HasSubstr("no JSON object"));
  EXPECT_THAT(reading_error("{\"a\": 1}", 0), HasSubstr("tensor 'a': expected an object"));
  EXPECT_THAT(reading_error("{\"a\": {\"dtype\": \"F32\", \"sha", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(reading_error(one(R"("dtype": "F32", "shape": [2])"), 8), HasSubstr("needs dtype"));
  EXPECT_THAT(reading_error(one(R"("dtype": "F33", "shape": [2], "data_offsets": [0, 8])"), 8), HasSubstr("'F33'"));
  EXPECT_THAT(reading_error(one(R"("dtype": "F32", "shape": [2], "data_offsets": [0, 9])"), 9), HasSubstr("9 bytes"));
  EXPECT_THAT(reading_error(one(R"("dtype": "F32", "shape": [2], "data_offsets": [0, 8])"), 4),
              HasSubstr("after the file"));
  EXPECT_THAT(reading_error(one(R"("dtype": "F32", "shape": [2], "data_offsets": [8, 0])"), 8), HasSubstr("reversed"));
  EXPECT_THAT(reading_error(one(R"("dtype": "F32", "shape": [2], "data_offsets": [0, 8])"), 9), HasSubstr("follow"));
  EXPECT_THAT(reading_error(one(R"("dtype": "F32", "shape": [-2, -1], "data_offsets": [0, 8])"), 8),
              HasSubstr("negative"));
  EXPECT_THAT(reading_error(one(R"("dtype": "F32", "shape": [4294967296, 4294967296, 4], "data_offsets": [0, 0])"), 0),
              HasSubstr("too large"));
  const char* b = R"("dtype": "U8", "shape": [2], "data_offsets": )";
  auto two = [&](const char* first, const char* second) {
    return std::string("{\"a\": {") + b + first + "}, \"b\": {" + b + second + "}}";
  };
  EXPECT_THAT(reading_error(two("[0, 2]", "[1, 3]"), 3), HasSubstr("overlaps"));
  EXPECT_THAT(reading_error(two("[0, 2]", "[3, 5]"), 5), HasSubstr("hole"));
  EXPECT_THAT(reading_error(R"({"a": {}, "a": {}})", 0), HasSubstr("twice"));
}

TEST(Safetensors, RefusesWhatItCannotSave) {
  BufferSink sink;
  Tensor meta = allocate_tensor({2}, {1}, DType::Float32, Device("meta"));
  EXPECT_THAT(error_of<ValueError>([&] {
                write_safetensors(sink, {{"m", meta}});
              }),
              HasSubstr("tensor 'm' has no data"));
  Tensor wide = allocate_tensor({2}, {1}, DType::Complex128, Device());
  EXPECT_THAT(error_of<ValueError>([&] { write_safetensors(sink, {{"w", wide}}); }), HasSubstr("complex128"));
  EXPECT_THAT(error_of<ValueError>([&] {
                write_safetensors(sink, {{"x", floats({1})}, {"x", floats({1})}});
              }),
              HasSubstr("'x'"));
}

TEST(Safetensors, FilesOfTheLibraryComeBackByteForByte) {
  UMBRA_NEEDS_MODELS(models);
  for (const char* name :
       {"/checkpoints/dtypes.safetensors", "/checkpoints/state_dict.safetensors", "/mlp/weights.safetensors"}) {
    Safetensors file = read_safetensors(map_file(models + name), name);
    BufferSink sink;
    write_safetensors(sink, file.tensors, file.metadata);
    EXPECT_TRUE(sink.text == read_file(models + name).text()) << name;
  }
}

}  // namespace
}  // namespace umbra::io
