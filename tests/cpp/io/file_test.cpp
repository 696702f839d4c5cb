#include "umbra/io/file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <numeric>

#include "io/testing.h"

namespace umbra::io {
namespace {

using ::testing::HasSubstr;

TEST(File, MissingFilesAreNamed) {
  EXPECT_THAT(error_of<FileNotFoundError>([] { read_file("/nowhere/at/all.bin"); }), HasSubstr("/nowhere/at/all.bin"));
  EXPECT_THAT(error_of<FileNotFoundError>([] { map_file("/nowhere/at/all.bin"); }), HasSubstr("No such file"));
  EXPECT_THAT(error_of<FileNotFoundError>([] { save_file("/nowhere/at/all.bin", "x"); }), HasSubstr("/nowhere"));
}

TEST(File, FoldersAreNoFiles) {
  EXPECT_THAT(error_of([] { read_file("/tmp"); }), HasSubstr("is a folder"));
  EXPECT_THAT(error_of([] { save_file("/tmp", "x"); }), HasSubstr("is a folder"));
  EXPECT_THAT(error_of([] { save_file("/dev/null", "x"); }), HasSubstr("not an ordinary file"));
}

TEST(File, ReadAndMapGiveWhatWasSaved) {
  TemporaryFolder folder;
  std::string contents(1'000'000, 'a');
  contents[999'999] = 'z';
  save_file(folder.file("a"), contents);
  EXPECT_EQ(read_file(folder.file("a")).text(), contents);
  EXPECT_EQ(map_file(folder.file("a")).text(), contents);
  EXPECT_EQ(map_file(folder.file("a")).slice(999'999, 1).text(), "z");
  save_file(folder.file("empty"), "");
  EXPECT_TRUE(map_file(folder.file("empty")).empty());
}

TEST(File, SlicesStayInside) {
  Bytes bytes(std::string("hello"));
  EXPECT_EQ(bytes.slice(1, 3).text(), "ell");
  EXPECT_EQ(bytes.slice(5, 0).text(), "");
  EXPECT_THROW(bytes.slice(4, 2), IndexError);
  EXPECT_THROW(bytes.slice(1, SIZE_MAX), IndexError);
}

TEST(File, MappedMemoryIsPrivate) {
  TemporaryFolder folder;
  save_file(folder.file("a"), "hello");
  Bytes bytes = map_file(folder.file("a"));
  const_cast<std::byte*>(bytes.data())[0] = std::byte{'j'};
  EXPECT_EQ(bytes.text(), "jello");
  EXPECT_EQ(read_file(folder.file("a")).text(), "hello");
}

TEST(File, WithoutCommitTheOldFileStays) {
  TemporaryFolder folder;
  save_file(folder.file("a"), "old");
  {
    AtomicFile file(folder.file("a"));
    file.write("new");
    EXPECT_EQ(folder.count(), 2u);
  }
  EXPECT_EQ(read_file(folder.file("a")).text(), "old");
  EXPECT_EQ(folder.count(), 1u);
}

TEST(File, AMappedFileSurvivesBeingReplaced) {
  TemporaryFolder folder;
  save_file(folder.file("a"), std::string(100'000, 'o'));
  Bytes old = map_file(folder.file("a"));
  save_file(folder.file("a"), "n");
  EXPECT_EQ(old.text(), std::string(100'000, 'o'));
}

TEST(File, PermissionsAndLinksStay) {
  TemporaryFolder folder;
  save_file(folder.file("a"), "old");
  chmod(folder.file("a").c_str(), 0640);
  ASSERT_EQ(symlink(folder.file("a").c_str(), folder.file("link").c_str()), 0);
  save_file(folder.file("link"), "new");
  EXPECT_EQ(read_file(folder.file("a")).text(), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
  struct stat status;
  ASSERT_EQ(stat(folder.file("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST(File, AnErrorWhileWritingLeavesNothingBehind) {
  AtomicFile file("/tmp/umbra_io_closed");
  file.write("x");
  file.commit();
  EXPECT_THAT(error_of([&] { file.write("y"); }), HasSubstr("closed"));
  std::filesystem::remove("/tmp/umbra_io_closed");
}

TEST(File, AWatcherIsToldOfAllThatIsWritten) {
  TemporaryFolder folder;
  struct Pieces : WriteWatcher, std::vector<size_t> {
    void wrote(size_t bytes) override { push_back(bytes); }
  } pieces;
  watch_writes(&pieces);
  save_file(folder.file("large"), std::string(40'000'000, 'x'));
  watch_writes(nullptr);
  save_file(folder.file("small"), "x");
  EXPECT_EQ(std::accumulate(pieces.begin(), pieces.end(), size_t{0}), 40'000'000u);
  EXPECT_GE(pieces.size(), 3u);
  EXPECT_EQ(std::filesystem::file_size(folder.file("large")), 40'000'000u);
}

}  // namespace
}  // namespace umbra::io
