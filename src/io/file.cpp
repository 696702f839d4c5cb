#include "umbra/io/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "umbra/core/error.h"

namespace umbra::io {
namespace {

constexpr size_t kWriteBuffer = size_t{1} << 18;
constexpr size_t kWatchedPiece = size_t{1} << 24;  // what is written between two words to a watcher

std::atomic<WriteWatcher*> write_watcher;

/// An open file descriptor that closes itself.
struct Descriptor {
  int number;
  ~Descriptor() { close(number); }
};

[[noreturn]] void fail_with_errno(const char* what, const std::string& path) {
  int reason = errno;
  std::string message = concat("[Errno ", reason, "] ", std::strerror(reason), ": '", path, "'");
  if (reason == ENOENT || reason == ENOTDIR) throw FileNotFoundError(message);
  fail(what, ": ", message);
}

int open_for_reading(const std::string& path) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail_with_errno("cannot open the file", path);
  return descriptor;
}

/// Brings a renaming to the disk. Not every file system can; the file itself is safe already.
void sync_folder(const std::string& path) {
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

struct stat status_of(const Descriptor& file, const std::string& path) {
  struct stat status;
  if (fstat(file.number, &status) != 0) fail_with_errno("cannot look at the file", path);
  check(!S_ISDIR(status.st_mode), "cannot read the file: '", path, "' is a folder");
  return status;
}

}  // namespace

Bytes::Bytes(std::string text) {
  auto owner = std::make_shared<std::string>(std::move(text));
  data_ = reinterpret_cast<const std::byte*>(owner->data());
  size_ = owner->size();
  owner_ = std::move(owner);
}

Bytes Bytes::slice(size_t from, size_t count) const {
  check<IndexError>(from <= size_ && count <= size_ - from, "bytes ", from, " to ", from, " + ", count,
                    " are outside a buffer of ", size_);
  return Bytes(owner_, data_ + from, count);
}

Bytes read_file(const std::string& path) {
  Descriptor file{open_for_reading(path)};
  struct stat status = status_of(file, path);
  std::string text;
  // The size is only a hint: pipes and files of /proc have none, and a file may grow meanwhile.
  size_t filled = 0;
  text.resize(S_ISREG(status.st_mode) ? static_cast<size_t>(status.st_size) + 1 : kWriteBuffer);
  for (;;) {
    ssize_t count = read(file.number, text.data() + filled, text.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_with_errno("cannot read the file", path);
    if (count == 0) break;
    filled += static_cast<size_t>(count);
    if (filled == text.size()) text.resize(2 * text.size());
  }
  text.resize(filled);
  return Bytes(std::move(text));
}

Bytes map_file(const std::string& path) {
  Descriptor file{open_for_reading(path)};
  struct stat status = status_of(file, path);
  auto size = static_cast<size_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || size == 0) return read_file(path);
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.number, 0);
  if (data == MAP_FAILED) return read_file(path);  // file systems that cannot map can still read
  return Bytes(std::shared_ptr<const void>(data, [size](const void* p) { munmap(const_cast<void*>(p), size); }), data,
               size);
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  // A symbolic link stays a link: what it points to is replaced.
  std::unique_ptr<char, decltype(&std::free)> resolved(realpath(path_.c_str(), nullptr), &std::free);
  target_ = resolved ? resolved.get() : path_;
  struct stat old;
  bool replaces = stat(target_.c_str(), &old) == 0;
  check(!replaces || S_ISREG(old.st_mode), "cannot write the file: '", path_, "' is ",
        replaces && S_ISDIR(old.st_mode) ? "a folder" : "not an ordinary file");
  static std::atomic<unsigned> count{0};
  for (int attempt = 0; descriptor_ < 0 && attempt < 100; ++attempt) {
    temporary_ = concat(target_, ".", getpid(), ".", count++, ".tmp");
    descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno != EEXIST) break;
  }
  if (descriptor_ < 0) {
    temporary_.clear();  // not ours to remove
    fail_with_errno("cannot write the file", path_);
  }
  if (replaces && fchmod(descriptor_, old.st_mode & 07777) != 0) failed("cannot set the permissions of the file");
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::failed(const char* what) {
  int reason = errno;
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
  descriptor_ = -1;
  temporary_.clear();
  errno = reason;
  fail_with_errno(what, path_);
}

void AtomicFile::write(const void* data, size_t size) {
  check(descriptor_ >= 0, "cannot write to '", path_, "': it is closed");
  if (buffer_.size() + size > kWriteBuffer) flush();
  if (size > kWriteBuffer) {
    write_through(data, size);
  } else {
    buffer_.append(static_cast<const char*>(data), size);
  }
}

void AtomicFile::write_through(const void* data, size_t size) {
  for (const char* next = static_cast<const char*>(data); size > 0;) {
    WriteWatcher* watcher = write_watcher;
    ssize_t count = ::write(descriptor_, next, watcher ? std::min(size, kWatchedPiece) : size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) failed("cannot write the file");
    next += count;
    size -= static_cast<size_t>(count);
    if (watcher) watcher->wrote(static_cast<size_t>(count));
  }
}

void AtomicFile::flush() {
  write_through(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void AtomicFile::commit() {
  check(descriptor_ >= 0, "cannot write to '", path_, "': it is closed");
  flush();
  if (fsync(descriptor_) != 0) failed("cannot bring the file to the disk");
  int descriptor = descriptor_;
  descriptor_ = -1;
  if (close(descriptor) != 0) failed("cannot close the file");
  if (rename(temporary_.c_str(), target_.c_str()) != 0) failed("cannot write the file");
  temporary_.clear();
  sync_folder(target_);
}

void watch_writes(WriteWatcher* watcher) { write_watcher = watcher; }

void save_file(const std::string& path, std::string_view contents) {
  AtomicFile file(path);
  file.write(contents);
  file.commit();
}

}  // namespace umbra::io
