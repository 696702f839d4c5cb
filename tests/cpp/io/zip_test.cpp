#include "umbra/io/zip.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include <cstring>

#include "io/testing.h"

namespace umbra::io {
namespace {

using ::testing::HasSubstr;

std::string archive(std::initializer_list<std::pair<std::string, std::string>> files) {
  BufferSink sink;
  ZipWriter writer(sink);
  for (const auto& [name, contents] : files) writer.add(name, contents);
  writer.finish();
  return sink.text;
}

std::string opening_error(std::string bytes) {
  return error_of<ValueError>([&] { ZipReader(Bytes(std::move(bytes)), "test.zip"); });
}

/// The archive with the number at `at` changed.
template <class T> std::string patched(std::string bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
  return bytes;
}

/// Where the central directory's n-th record begins.
size_t record_at(const std::string& bytes, int n = 0) {
  size_t at = bytes.find("PK\1\2");
  while (n-- > 0) at = bytes.find("PK\1\2", at + 4);
  return at;
}

TEST(Zip, ReadsWhatItWrote) {
  ZipReader zip(Bytes(archive({{"a/one", "first"}, {"a/two", ""}, {"a/three", std::string(1000, 'x')}})), "test.zip");
  ASSERT_EQ(zip.entries().size(), 3u);
  EXPECT_EQ(zip.read("a/one").text(), "first");
  EXPECT_EQ(zip.read("a/two").text(), "");
  EXPECT_EQ(zip.read("a/three").text(), std::string(1000, 'x'));
  EXPECT_EQ(zip.root(), "a/");
  EXPECT_EQ(zip.find("a/four"), nullptr);
  EXPECT_THAT(error_of([&] { zip.read("a/four"); }), HasSubstr("no entry 'a/four'"));
  for (const ZipEntry& entry : zip.entries()) EXPECT_EQ(entry.data_offset % 64, 0u);
}

TEST(Zip, TheEmptyArchive) {
  ZipReader zip(Bytes(archive({})), "test.zip");
  EXPECT_TRUE(zip.entries().empty());
  EXPECT_EQ(zip.root(), "");
}

TEST(Zip, RefusesNamesThatLeaveTheArchive) {
  for (const char* name : {"", "/etc/passwd", "../a", "a/../b", "a/..", "a\\b", "C:/a", "a\nb", "./a"})
    EXPECT_FALSE(is_safe_entry_name(name)) << name;
  for (const char* name : {"a", "a/b", "a/..b", "code/", ".data/version", "a b", "\xc3\xa4"})
    EXPECT_TRUE(is_safe_entry_name(name)) << name;
  std::string bytes = archive({{"aa/one", "first"}});
  std::string evil = bytes;
  for (size_t at = evil.find("aa/"); at != std::string::npos; at = evil.find("aa/")) evil.replace(at, 3, "../");
  EXPECT_THAT(opening_error(evil), HasSubstr("leaves the archive"));
  BufferSink sink;
  ZipWriter writer(sink);
  EXPECT_THROW(writer.add("../a", "x"), ValueError);
}

TEST(Zip, RefusesDuplicates) {
  std::string bytes = archive({{"a/one", "first"}, {"a/two", "second"}});
  for (size_t at = bytes.find("a/two"); at != std::string::npos; at = bytes.find("a/two"))
    bytes.replace(at, 5, "a/one");
  EXPECT_THAT(opening_error(bytes), HasSubstr("two entries named 'a/one'"));
  BufferSink sink;
  ZipWriter writer(sink);
  writer.add("a", "x");
  EXPECT_THROW(writer.add("a", "y"), ValueError);
}

TEST(Zip, RefusesDamage) {
  std::string bytes = archive({{"a/one", "first"}, {"a/two", "second"}});
  EXPECT_THAT(opening_error(""), HasSubstr("no bytes"));
  EXPECT_THAT(opening_error("hello"), HasSubstr("too short"));
  EXPECT_THAT(opening_error(std::string(10'000, 'x')), HasSubstr("no end record"));
  EXPECT_THAT(opening_error(patched(bytes, 0, 'X')), HasSubstr("local header"));
  EXPECT_THAT(opening_error(patched(bytes, record_at(bytes) + 42, 1u << 30)), HasSubstr("outside the file"));
  EXPECT_THAT(opening_error(patched(bytes, record_at(bytes) + 20, 0xfffffff0u)), HasSubstr("does not have"));
  EXPECT_THAT(opening_error(patched(bytes, record_at(bytes) + 24, 4u)), HasSubstr("two sizes differ"));
  EXPECT_THAT(opening_error(patched(bytes, record_at(bytes) + 8, uint16_t{0x0809})), HasSubstr("encrypted"));
  EXPECT_THAT(opening_error(patched(bytes, record_at(bytes) + 10, uint16_t{14})), HasSubstr("method 14"));
  EXPECT_THAT(opening_error(patched(bytes, bytes.size() - 12, uint16_t{9})), HasSubstr("disagree"));
  for (size_t cut = 1; cut < bytes.size(); ++cut) EXPECT_NE(opening_error(bytes.substr(0, cut)), "no error");
}

TEST(Zip, RefusesOverlappingEntries) {
  std::string bytes = archive({{"a/one", "first"}, {"a/two", "second"}});
  uint32_t size = static_cast<uint32_t>(bytes.find("PK\3\4", 4)) + 10 - 64;
  bytes = patched(patched(bytes, record_at(bytes) + 20, size), record_at(bytes) + 24, size);
  EXPECT_THAT(opening_error(bytes), HasSubstr("overlap"));
}

TEST(Zip, ChecksTheCrcOnReading) {
  ZipReader zip(Bytes(patched(archive({{"a/one", "first"}}), 64, 'F')), "test.zip");
  EXPECT_THAT(error_of<ValueError>([&] { zip.read("a/one"); }), HasSubstr("checksum"));
}

TEST(Zip, DataOfLargeTensorsIsNotReadBeforeItIsUsed) {
  std::string large(2 << 20, 'x');
  ZipReader zip(Bytes(patched(archive({{"a/one", large}}), 64, 'F')), "test.zip");
  EXPECT_EQ(zip.read_lazily(zip.entries()[0]).size(), large.size());
  EXPECT_THAT(error_of<ValueError>([&] { zip.read("a/one"); }), HasSubstr("checksum"));
  ZipReader small(Bytes(patched(archive({{"a/one", "first"}}), 64, 'F')), "test.zip");
  EXPECT_THAT(error_of<ValueError>([&] { small.read_lazily(small.entries()[0]); }), HasSubstr("checksum"));
}

// Random single-byte damage must never do worse than an error.
TEST(Zip, AnyDamagedByteIsSurvived) {
  std::string bytes = archive({{"a/one", "first"}, {"a/two", "second"}});
  for (size_t at = 0; at < bytes.size(); ++at)
    for (unsigned char value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      std::string damaged = patched(bytes, at, value);
      error_of([&] {
        ZipReader zip(Bytes(damaged), "test.zip");
        for (const ZipEntry& entry : zip.entries()) zip.read(entry);
      });
    }
}

/// An archive of one deflated entry, as ordinary zip tools make it.
std::string deflated_archive(const std::string& contents, uint32_t claimed_size) {
  std::string packed(compressBound(contents.size()) + 64, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(contents.data()));
  stream.avail_in = static_cast<uInt>(contents.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  std::string bytes = archive({{"a", packed}});
  uint16_t method = 8;
  size_t record = record_at(bytes);
  bytes = patched(patched(bytes, 8, method), record + 10, method);
  return patched(patched(bytes, record + 24, claimed_size), record + 16, crc32(contents.data(), contents.size()));
}

TEST(Zip, InflatesDeflatedEntries) {
  std::string contents;
  for (int i = 0; i < 100'000; ++i) contents += std::to_string(i);
  ZipReader zip(Bytes(deflated_archive(contents, static_cast<uint32_t>(contents.size()))), "test.zip");
  EXPECT_EQ(zip.read("a").text(), contents);
}

TEST(Zip, ClaimsAboutDeflatedSizesAreNotBelieved) {
  std::string contents(10'000, 'x');
  EXPECT_THAT(opening_error(deflated_archive(contents, 4'000'000'000u)), HasSubstr("cannot be"));
  for (uint32_t claim : {9'999u, 10'001u, 20'000u}) {
    ZipReader zip(Bytes(deflated_archive(contents, claim)), "test.zip");
    EXPECT_THAT(error_of<ValueError>([&] { zip.read("a"); }), HasSubstr("damaged"));
  }
}

TEST(Zip, WritesByteForByteWhatPyTorchWrites) {
  UMBRA_NEEDS_MODELS(models);
  for (const char* name : {"/mlp/program.pt2", "/multi/two_programs.pt2", "/checkpoints/training.pt"}) {
    ZipReader zip = ZipReader::open(models + name);
    BufferSink sink;
    ZipWriter writer(sink);
    for (const ZipEntry& entry : zip.entries()) writer.add(entry.name, zip.read(entry).text());
    writer.finish();
    EXPECT_TRUE(sink.text == read_file(models + name).text()) << name;
  }
}

}  // namespace
}  // namespace umbra::io
