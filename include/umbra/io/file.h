// Files as bytes: reading them whole or by mapping, and saving so that a file is either the old one or the new one.
//
//     Bytes bytes = map_file("model.safetensors");
//     std::string_view header = bytes.slice(0, 8).text();
//
//     AtomicFile file("notes.txt");
//     file.write("hello");
//     file.commit();                     // until here the old notes.txt is there; on an error it stays
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "umbra/core/export.h"

namespace UMBRA_API umbra {
namespace io {

/// Read-only bytes that share their owner: a buffer, a mapped file, a part of either.
class Bytes {
 public:
  Bytes() = default;
  /// A buffer of our own.
  explicit Bytes(std::string text);
  /// Foreign memory, alive as long as `owner` is.
  Bytes(std::shared_ptr<const void> owner, const void* data, size_t size)
      : owner_(std::move(owner)), data_(static_cast<const std::byte*>(data)), size_(size) {}

  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  /// The bytes [from, from + count); an error where that leaves the buffer.
  Bytes slice(size_t from, size_t count) const;
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  std::shared_ptr<const void> owner_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// The whole file in memory. FileNotFoundError where there is none.
Bytes read_file(const std::string& path);

/// The file mapped privately: pages are read when touched, and writing to them (training weights in place) changes
/// memory and never the file. Another program that shortens the file in place while it is mapped ends the process by
/// SIGBUS; files replaced the way AtomicFile does are safe.
Bytes map_file(const std::string& path);

/// Where written bytes go.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void write(const void* data, size_t size) = 0;
  void write(std::string_view text) { write(text.data(), text.size()); }
};

/// Collects bytes in memory.
class BufferSink final : public ByteSink {
 public:
  using ByteSink::write;
  void write(const void* data, size_t size) override { text.append(static_cast<const char*>(data), size); }
  std::string text;
};

/// A file that appears whole or not at all: written beside its place under another name, then renamed over it.
/// Without commit(), for instance when an error unwinds, what was there before stays and the new bytes are removed.
class AtomicFile final : public ByteSink {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile() override;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  using ByteSink::write;
  void write(const void* data, size_t size) override;
  /// Brings everything to the disk and the file to its name.
  void commit();

 private:
  void flush();
  void write_through(const void* data, size_t size);
  [[noreturn]] void failed(const char* what);

  std::string path_, target_, temporary_, buffer_;
  int descriptor_ = -1;
};

/// Is told of every piece that is brought to a file, by whichever thread: for programs that show how far they are.
class WriteWatcher {
 public:
  virtual ~WriteWatcher() = default;
  virtual void wrote(size_t bytes) = 0;
};
/// From now on there is this one; null ends it.
void watch_writes(WriteWatcher* watcher);

/// Replaces the file by these bytes, atomically.
void save_file(const std::string& path, std::string_view contents);

}  // namespace io
}  // namespace umbra
