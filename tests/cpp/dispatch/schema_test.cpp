// ATen's schema language, and the registry's schemas against PyTorch's.
#include <gtest/gtest.h>
#include <zlib.h>

#include <nlohmann/json.hpp>

#include "umbra/umbra.h"

namespace umbra {
namespace {

std::string printed(const char* text) { return to_string(parse_schema(text)); }

TEST(Schema, ReadsAndWritesTheSameText) {
  for (const char* text : {"aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
                           "aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
                           "aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, "
                           "int[2] dilation=1, SymInt[2] offset=[1, 1], bool ceil_mode=False) -> Tensor",
                           "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
                           "aten::nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
                           "ignore_index) -> (Tensor output, Tensor total_weight)"})
    EXPECT_EQ(printed(text), text);
}

TEST(Schema, KnowsWhatIsWrittenAndWhatAliases) {
  EXPECT_TRUE(parse_schema("relu_(Tensor(a!) self) -> Tensor(a!)").is_inplace());
  EXPECT_TRUE(parse_schema("view(Tensor(a) self, SymInt[] size) -> Tensor(a)").is_view());
  EXPECT_TRUE(
      parse_schema("add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)").has_out());
  EXPECT_FALSE(parse_schema("add.Tensor(Tensor self, Tensor other) -> Tensor").is_mutable());
}

TEST(Schema, ASetOfAliasesWithoutANameIsOneOfItsOwn) {
  Schema schema = parse_schema("f.out(Tensor x, Tensor! out, Tensor!? more, Tensor[]! all) -> ()");
  EXPECT_FALSE(schema.arguments[0].alias.write);
  EXPECT_TRUE(schema.arguments[1].alias.write && schema.arguments[2].alias.write && schema.arguments[3].alias.write);
  EXPECT_TRUE(schema.arguments[2].type.optional && schema.arguments[3].type.list);
  EXPECT_NE(schema.arguments[1].alias.set, schema.arguments[2].alias.set);
  EXPECT_EQ(to_string(parse_schema("f(Tensor x, Tensor! out) -> ()")), "aten::f(Tensor x, Tensor($0! -> ) out) -> ()");
  EXPECT_THROW(parse_schema("f(Tensor?! x) -> ()"), Error);
  EXPECT_THROW(parse_schema("f(Tensor(a!)! x) -> ()"), Error);
}

TEST(Schema, AnErrorSaysWhere) {
  try {
    parse_schema("f(Tensor x, Strange y) -> Tensor");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("unknown type 'Strange' at position"), std::string::npos) << e.what();
  }
  EXPECT_THROW(parse_schema("f(Tensor x"), Error);
  EXPECT_THROW(parse_schema(""), Error);
}

std::string read_gzip(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  std::string out;
  std::vector<char> buffer(1 << 20);
  for (int n; file && (n = gzread(file, buffer.data(), static_cast<unsigned>(buffer.size()))) > 0;)
    out.append(buffer.data(), static_cast<size_t>(n));
  if (file) gzclose(file);
  return out;
}

// Out variants name their results in some ATen schemas and not in others, by no rule.
Schema comparable(Schema schema) {
  if (schema.has_out())
    for (SchemaReturn& r : schema.returns) r.name.clear();
  return schema;
}

// PyTorch's own gradients pass nothing for these, though its schemas say Tensor; here the schema says so.
std::string with_optional_arguments(const std::string& name, std::string schema) {
  static const std::map<std::string, std::vector<std::string>> optional = {
      {"aten::_scaled_dot_product_flash_attention_backward", {"cum_seq_q", "cum_seq_k"}},
      {"aten::_flash_attention_backward", {"cum_seq_q", "cum_seq_k"}},
      {"aten::_scaled_dot_product_efficient_attention_backward", {"attn_bias"}},
      {"aten::_scaled_dot_product_cudnn_attention_backward", {"attn_bias", "cum_seq_q", "cum_seq_k"}},
      {"aten::_cudnn_rnn_backward", {"weight_buf"}},
  };
  auto found = optional.find(name);
  if (found == optional.end()) return schema;
  for (const std::string& argument : found->second) {
    size_t at = schema.find("Tensor " + argument);
    EXPECT_NE(at, std::string::npos) << name << " has no Tensor " << argument;
    schema.replace(at, 6, "Tensor?");
  }
  return schema;
}

TEST(Schema, EveryAtenOperatorHasPyTorchsSchema) {
  auto document = nlohmann::json::parse(read_gzip("tests/golden/data/schemas.json.gz"));
  std::map<std::string, std::string> wanted;
  for (const auto& entry : document["aten"]) {
    std::string overload = entry["overload"];
    std::string name = entry["name"];
    wanted[(name.starts_with("aten::") ? name : "aten::" + name) + (overload == "default" ? "" : "." + overload)] =
        entry["schema"];
  }
  ASSERT_GT(wanted.size(), 3000u);
  for (const Operator* op : all_operators()) {
    if (op->schema().space != "aten") continue;
    auto found = wanted.find(op->name());
    ASSERT_NE(found, wanted.end()) << op->name() << " is no ATen operator";
    std::string schema = with_optional_arguments(op->name(), found->second);
    EXPECT_EQ(to_string(comparable(op->schema())), to_string(comparable(parse_schema(schema)))) << schema;
  }
}

}  // namespace
}  // namespace umbra
