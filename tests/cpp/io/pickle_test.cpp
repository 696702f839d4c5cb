#include "umbra/io/pickle.h"

#include <gmock/gmock.h>

#include <cstring>

#include "io/testing.h"
#include "umbra/io/safetensors.h"
#include "umbra/io/zip.h"

namespace umbra::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A torch.save file around a hand-written pickle, with one storage of eight floats under the key 0.
std::string file_with(const std::string& program) {
  BufferSink sink;
  ZipWriter zip(sink);
  zip.add("archive/data.pkl", program);
  zip.add("archive/data/0", std::string(32, '\0'));
  zip.finish();
  return sink.text;
}

std::string loading_error(const std::string& program, PickleOptions options = {}) {
  return error_of<ValueError>([&] { read_pickle(Bytes(file_with(program)), "test.pt", options); });
}

PickleValue round_trip(const PickleValue& value) {
  BufferSink sink;
  write_pickle(sink, value);
  return read_pickle(Bytes(sink.text), "test.pt");
}

TEST(Pickle, PlainValuesComeBack) {
  PickleValue value = round_trip(PickleValue::dict({
      {"none", {}},
      {"yes", true},
      {"ints", PickleValue::list({0, 255, 256, 65535, 65536, -1, INT64_MAX, INT64_MIN})},
      {"float", -0.125},
      {"text", "\xc3\xa4"},
      {"bytes", PickleValue::bytes(std::string("\0\x7f\x80\xff", 4))},
      {"tuple", PickleValue::tuple({1, PickleValue::tuple()})},
      {"size", PickleValue::size({2, 3})},
      {"dtype", DType::BFloat16},
      {"device", Device("cuda:1")},
      {"ordered", PickleValue::dict({{7, "seven"}}, true)},
  }));
  EXPECT_TRUE(value.find("none")->is_none());
  EXPECT_TRUE(value.find("yes")->as_bool());
  std::vector<int64_t> ints;
  for (const PickleValue& item : value.find("ints")->items()) ints.push_back(item.as_int());
  EXPECT_THAT(ints, ElementsAre(0, 255, 256, 65535, 65536, -1, INT64_MAX, INT64_MIN));
  EXPECT_EQ(value.find("float")->as_float(), -0.125);
  EXPECT_EQ(value.find("text")->as_string(), "\xc3\xa4");
  EXPECT_EQ(value.find("bytes")->as_bytes(), std::string("\0\x7f\x80\xff", 4));
  EXPECT_TRUE(value.find("tuple")->items()[1].is_tuple());
  EXPECT_TRUE(value.find("size")->is_special());
  EXPECT_EQ(value.find("dtype")->as_dtype(), DType::BFloat16);
  EXPECT_EQ(value.find("device")->as_device(), Device("cuda:1"));
  EXPECT_TRUE(value.find("ordered")->is_special());
  EXPECT_EQ(value.find("ordered")->pairs()[0].first.as_int(), 7);
}

TEST(Pickle, TensorsKeepGeometryAndSharing) {
  Tensor base = arange(12);
  Tensor column = alias_tensor(base, {4}, {3}, 1);
  PickleValue same = PickleValue::list({1});
  PickleValue value = round_trip(PickleValue::list({base, column, PickleValue::parameter(base), same, same}));
  const Tensor& loaded = value.items()[1].as_tensor();
  EXPECT_THAT(loaded.strides().vec(), ElementsAre(3));
  EXPECT_EQ(loaded.storage_offset(), 1);
  EXPECT_EQ(*loaded.data<float>(), 1);
  EXPECT_EQ(loaded.storage(), value.items()[0].as_tensor().storage());
  EXPECT_TRUE(value.items()[2].is_parameter());
  EXPECT_TRUE(value.items()[2].requires_grad());
  EXPECT_FALSE(value.items()[0].is_parameter());
  EXPECT_EQ(value.items()[3].identity(), value.items()[4].identity());
}

TEST(Pickle, EveryDTypeComesBack) {
  for (int i = 0; i < kDTypeCount; ++i) {
    auto dtype = static_cast<DType>(i);
    Tensor tensor = allocate_tensor({3}, {1}, dtype, Device());
    std::memset(tensor.raw_data(), 1, static_cast<size_t>(3 * item_size(dtype)));
    PickleValue loaded = round_trip(tensor);
    EXPECT_EQ(loaded.as_tensor().dtype(), dtype);
    EXPECT_EQ(std::memcmp(loaded.as_tensor().raw_data(), tensor.raw_data(), static_cast<size_t>(3 * item_size(dtype))),
              0);
  }
}

TEST(Pickle, LazyConjugatesComeBack) {
  Tensor tensor = allocate_tensor({2}, {1}, DType::Complex64, Device());
  std::memset(tensor.raw_data(), 0, 16);
  tensor.impl()->set_conj(true);
  EXPECT_TRUE(round_trip(tensor).as_tensor().is_conj());
  EXPECT_FALSE(round_trip(tensor).as_tensor().is_neg());
}

TEST(Pickle, StateDicts) {
  TemporaryFolder folder;
  save_state_dict(folder.file("w.pt"), {{"a.weight", arange(4)}, {"b", arange(2)}});
  NamedTensors loaded = load_state_dict(folder.file("w.pt"));
  ASSERT_EQ(loaded.size(), 2u);
  EXPECT_EQ(loaded[0].first, "a.weight");
  EXPECT_EQ(loaded[0].second.data<float>()[3], 3);
  EXPECT_THAT(error_of([&] {
                save_state_dict(folder.file("w.pt"), {{"a", arange(1)}, {"a", arange(1)}});
              }),
              HasSubstr("'a' twice"));
  save_pickle(folder.file("c.pt"), PickleValue::dict({{"epoch", 3}}));
  EXPECT_THAT(error_of([&] { load_state_dict(folder.file("c.pt")); }), HasSubstr("'epoch' is an int"));
  EXPECT_THAT(error_of([&] { to_state_dict(PickleValue(1), "x"); }), HasSubstr("holds an int"));
}

TEST(Pickle, NamesOutsideTheListAreRefusedByName) {
  EXPECT_THAT(loading_error("\x80\x02"
                            "cbuiltins\nprint\nX\x05\0\0\0hello\x85R."),
              HasSubstr("'builtins.print'"));
  EXPECT_THAT(loading_error("\x80\x02"
                            "cos\nsystem\n."),
              HasSubstr("nothing was run"));
  EXPECT_THAT(loading_error("\x80\x04\x8c\x02os\x8c\x06system\x93."), HasSubstr("'os.system'"));
  EXPECT_THAT(loading_error("\x80\x02"
                            "c__torch__\nNet\n)\x81."),
              HasSubstr("'__torch__.Net'"));
  EXPECT_THAT(loading_error("\x80\x02"
                            "ctorch\nload\n."),
              HasSubstr("'torch.load'"));
  EXPECT_THAT(loading_error("\x80\x02"
                            "ctorch\nTensor\n."),
              HasSubstr("where a value should be"));
  EXPECT_THAT(loading_error("\x80\x02"
                            "ctorch\nTensor\n)R."),
              HasSubstr("in a way that is not supported"));
  EXPECT_THAT(loading_error("\x80\x02"
                            "ctorch\nTensor\n)\x81."),
              HasSubstr("torch.Tensor"));
}

TEST(Pickle, DamageIsRefused) {
  EXPECT_THAT(loading_error(""), HasSubstr("cut"));
  EXPECT_THAT(loading_error("\x80\x02}"), HasSubstr("cut"));
  EXPECT_THAT(loading_error("."), HasSubstr("empty stack"));
  EXPECT_THAT(loading_error("R."), HasSubstr("empty stack"));
  EXPECT_THAT(loading_error("(0."), HasSubstr("empty stack"));
  EXPECT_THAT(loading_error("NN."), HasSubstr("left over"));
  EXPECT_THAT(loading_error("t."), HasSubstr("no mark"));
  EXPECT_THAT(loading_error("h\x05."), HasSubstr("never set"));
  EXPECT_THAT(loading_error("NNa."), HasSubstr("appends to None"));
  EXPECT_THAT(loading_error("}(Nu."), HasSubstr("a key without a value"));
  EXPECT_THAT(loading_error(std::string("}X\1\0\0\0aNsX\1\0\0\0aNs.", 19)), HasSubstr("the key a twice"));
  EXPECT_THAT(loading_error("\x80\x09."), HasSubstr("protocol 9"));
  EXPECT_THAT(loading_error("\x8a\x09"
                            "123456789."),
              HasSubstr("64 bits"));
  EXPECT_THAT(loading_error("X\xff\xff\xff\xff."), HasSubstr("cut"));
  EXPECT_THAT(loading_error("i."), HasSubstr("instruction 105"));
  EXPECT_THAT(loading_error("NNb."), HasSubstr("sets attributes of None"));
  EXPECT_THAT(loading_error("K\x01Q."), HasSubstr("outside data"));
}

TEST(Pickle, CyclesAndExplosionsAreRefused) {
  EXPECT_THAT(loading_error("]q\1h\1a."), HasSubstr("contains itself"));
  std::string deep(100'000, ']');
  deep += std::string(99'999, 'a') + ".";
  EXPECT_THAT(loading_error(deep), HasSubstr("nested deeper"));
  // The same, thrown away by the pickle itself: harmless, and must stay so when it goes.
  std::string discarded = deep.substr(0, deep.size() - 1) + "0N.";
  EXPECT_EQ(loading_error(discarded), "no error");
  EXPECT_EQ(loading_error("]q\1h\1a0N."), "no error");
  std::string laughs = "]q";
  laughs += '\0';
  for (char level = 0; level < 30; ++level) {
    laughs += "0](";
    for (int i = 0; i < 10; ++i) laughs += std::string("h") + level;
    laughs += std::string("eq") + static_cast<char>(level + 1);
  }
  EXPECT_THAT(loading_error(laughs + "."), HasSubstr("too many times"));
}

/// The pickle of a tensor of floats over the storage 0, which has eight.
std::string tensor_program(int numel, int offset, const std::string& sizes, const std::string& strides) {
  auto text = [](const std::string& value) {
    std::string out = "X";
    out += static_cast<char>(value.size());
    return out + std::string(3, '\0') + value;
  };
  auto byte = [](int value) { return std::string("K") + static_cast<char>(value); };
  return "\x80\x02"
         "ctorch._utils\n_rebuild_tensor_v2\n((" +
         text("storage") + "ctorch\nFloatStorage\n" + text("0") + text("cpu") + byte(numel) + "tQ" + byte(offset) +
         sizes + strides +
         "\x89"
         "ccollections\nOrderedDict\n)RtR.";
}

TEST(Pickle, TensorsStayInsideTheirStorage) {
  std::string four("(K\4t"), one("(K\1t"), three("(K\3t");
  EXPECT_EQ(loading_error(tensor_program(8, 4, four, one)), "no error");
  EXPECT_THAT(loading_error(tensor_program(8, 5, four, one)), HasSubstr("needs more data"));
  EXPECT_THAT(loading_error(tensor_program(8, 0, four, three)), HasSubstr("needs more data"));
  EXPECT_THAT(loading_error(tensor_program(9, 0, four, one)), HasSubstr("fewer than its 9 elements"));
  EXPECT_THAT(loading_error(tensor_program(8, 0, four, "(t")), HasSubstr("1 sizes and 0 strides"));
  EXPECT_THAT(loading_error(tensor_program(8, 0, "(J\xff\xff\xff\xfft", one)), HasSubstr("negative size"));
  EXPECT_THAT(loading_error(tensor_program(8, 0, four, "(J\xff\xff\xff\xfft")), HasSubstr("negative stride"));
  EXPECT_THAT(loading_error(tensor_program(8, 0, "N", one)), HasSubstr("a tensor's size"));
}

TEST(Pickle, AnyDamagedByteIsSurvived) {
  BufferSink sink;
  write_pickle(sink, PickleValue::dict({{"a", arange(3)}, {"b", PickleValue::list({1, 2.5, "x"})}}));
  ZipReader zip(Bytes(sink.text), "t");
  std::string program(zip.read("archive/data.pkl").text());
  for (size_t at = 0; at < program.size(); ++at)
    for (int value = 0; value < 256; ++value) {
      std::string damaged = program;
      damaged[at] = static_cast<char>(value);
      error_of([&] { read_pickle(Bytes(file_with(damaged)), "t"); });
    }
}

TEST(Pickle, FilesOfPyTorch) {
  UMBRA_NEEDS_MODELS(models);
  NamedTensors expected = load_safetensors(models + "/checkpoints/state_dict.safetensors");
  for (const char* name : {"state_dict.pt", "state_dict_protocol4.pt", "state_dict_legacy.pt"}) {
    NamedTensors loaded = load_state_dict(models + "/checkpoints/" + name);
    ASSERT_EQ(loaded.size(), expected.size()) << name;
    for (const auto& [key, tensor] : expected) {
      auto found = std::find_if(loaded.begin(), loaded.end(), [&](const auto& item) { return item.first == key; });
      ASSERT_NE(found, loaded.end()) << name << " " << key;
      EXPECT_EQ(found->second.sizes(), tensor.sizes());
      EXPECT_EQ(std::memcmp(found->second.raw_data(), tensor.raw_data(),
                            static_cast<size_t>(tensor.numel() * tensor.item_size())),
                0);
    }
  }
  PickleValue training = load_pickle(models + "/checkpoints/training.pt");
  EXPECT_EQ(training.find("epoch")->as_int(), 3);
  EXPECT_EQ(training.find("dtype")->as_dtype(), DType::Float32);
  EXPECT_TRUE(training.find("shape")->is_special());
}

TEST(Pickle, ViewsOfPyTorch) {
  UMBRA_NEEDS_MODELS(models);
  PickleValue views = load_pickle(models + "/checkpoints/views.pt");
  for (const auto& [path, want] : load_safetensors(models + "/checkpoints/views_expected.safetensors")) {
    const PickleValue* value = &views;
    for (size_t from = 0; from <= path.size();) {
      size_t dot = std::min(path.find('.', from), path.size());
      std::string part = path.substr(from, dot - from);
      value = value->is_dict() ? value->find(part) : &value->items().at(static_cast<size_t>(std::stoi(part)));
      ASSERT_NE(value, nullptr) << path;
      from = dot + 1;
    }
    const Tensor& got = value->as_tensor();
    EXPECT_EQ(got.dtype(), want.dtype()) << path;
    EXPECT_EQ(got.sizes(), want.sizes()) << path;
    BufferSink one, two;
    write_safetensors(one, {{"x", got}});
    write_safetensors(two, {{"x", want}});
    EXPECT_TRUE(one.text == two.text) << path;
  }
}

TEST(Pickle, ScriptArchives) {
  UMBRA_NEEDS_MODELS(models);
  std::string path = models + "/checkpoints/scripted.pt";
  EXPECT_THAT(error_of([&] { load_pickle(path); }), HasSubstr("TorchScript"));
  PickleValue module = load_pickle(path, {.script_classes = true});
  EXPECT_EQ(module.class_name(), "__torch__.Scripted");
  const PickleValue* linear = module.state().find("f");
  EXPECT_EQ(linear->class_name(), "__torch__.torch.nn.modules.linear.Linear");
  EXPECT_THAT(linear->state().find("weight")->as_tensor().sizes().vec(), ElementsAre(4, 4));
}

}  // namespace
}  // namespace umbra::io
