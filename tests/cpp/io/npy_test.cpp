#include "umbra/io/npy.h"

#include <gmock/gmock.h>

#include "io/testing.h"

namespace umbra::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string file_with(const std::string& header, size_t data_size) {
  std::string text("\x93NUMPY\1\0", 8);
  text += static_cast<char>(header.size());
  text += '\0';
  return text + header + std::string(data_size, '\0');
}

std::string reading_error(const std::string& header, size_t data_size) {
  return error_of<ValueError>([&] { read_npy(Bytes(file_with(header, data_size)), "t.npy"); });
}

TEST(Npy, LoadsWhatItSaved) {
  TemporaryFolder folder;
  Tensor base = arange(6);
  save_npy(folder.file("a.npy"), alias_tensor(base, {3, 2}, {1, 3}, 0));
  Tensor loaded = load_npy(folder.file("a.npy"));
  EXPECT_THAT(loaded.sizes().vec(), ElementsAre(3, 2));
  EXPECT_THAT(std::vector<float>(loaded.data<float>(), loaded.data<float>() + 6), ElementsAre(0, 3, 1, 4, 2, 5));
  save_npy(folder.file("scalar.npy"), alias_tensor(base, {}, {}, 4));
  EXPECT_EQ(*load_npy(folder.file("scalar.npy")).data<float>(), 4);
  EXPECT_EQ(read_file(folder.file("a.npy")).size(), 128u + 24u);
}

TEST(Npy, FortranOrderIsAMatterOfStrides) {
  std::string text = file_with("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", 24);
  Tensor tensor = read_npy(Bytes(text), "t.npy");
  EXPECT_THAT(tensor.sizes().vec(), ElementsAre(2, 3));
  EXPECT_THAT(tensor.strides().vec(), ElementsAre(1, 2));
}

TEST(Npy, RefusesWhatItCannotRead) {
  EXPECT_EQ(reading_error("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }  \n", 8), "no error");
  EXPECT_THAT(error_of<ValueError>([] { read_npy(Bytes(std::string("hello, hello")), "t.npy"); }), HasSubstr("begin"));
  EXPECT_THAT(reading_error("{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", 8), HasSubstr("'|O'"));
  EXPECT_THAT(reading_error("{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", 8), HasSubstr("'>f4'"));
  EXPECT_THAT(reading_error("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", 8),
              HasSubstr("not plain numbers"));
  EXPECT_THAT(reading_error("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", 8),
              HasSubstr("do not make sizes"));
  EXPECT_THAT(reading_error("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", 8), HasSubstr("negative"));
  EXPECT_THAT(reading_error("{'descr': '<f4', 'fortran_order': False, 'shape': (x,)}", 8), HasSubstr("no tuple"));
  EXPECT_THAT(reading_error("{'descr': '<f4', 'shape': (2,)}", 8), HasSubstr("not complete"));
  EXPECT_THAT(reading_error("{'descr': '<f4', 'descr': '<f4'}", 8), HasSubstr("twice"));
  EXPECT_THAT(reading_error("{'descr': '<f4'", 8), HasSubstr("missing"));
  BufferSink sink;
  Tensor narrow = allocate_tensor({2}, {1}, DType::BFloat16, Device());
  EXPECT_THAT(error_of<ValueError>([&] { write_npy(sink, narrow); }), HasSubstr("bfloat16"));
}

TEST(Npy, Archives) {
  TemporaryFolder folder;
  save_npz(folder.file("a.npz"), {{"x", arange(3)}, {"y", arange(2)}});
  NamedTensors loaded = load_npz(folder.file("a.npz"));
  ASSERT_EQ(loaded.size(), 2u);
  EXPECT_EQ(loaded[0].first, "x");
  EXPECT_EQ(loaded[0].second.data<float>()[2], 2);
}

}  // namespace
}  // namespace umbra::io
