// Zip archives: a reader that trusts no number in the file, and a writer that lays archives out as PyTorch does.
//
//     ZipReader zip = ZipReader::open("program.pt2");
//     for (const ZipEntry& entry : zip.entries()) { ... }
//     Bytes text = zip.read("program/archive_format");
//
//     AtomicFile file("out.pt2");
//     ZipWriter writer(file);
//     writer.add("out/archive_format", "pt2");
//     writer.finish();
//     file.commit();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "umbra/io/file.h"

namespace UMBRA_API umbra {
namespace io {

/// One file of an archive, by its record in the central directory.
struct ZipEntry {
  std::string name;
  uint64_t size = 0;             // of the contents
  uint64_t compressed_size = 0;  // of what the archive holds
  uint64_t header_offset = 0;
  uint64_t data_offset = 0;
  uint32_t crc = 0;
  bool deflated = false;
};

/// The entries of an archive. Opening checks the whole structure: every offset and length against the file, every local
/// header against the central directory, no two entries of one name or in one place, no name that leaves the archive.
class ZipReader {
 public:
  /// `label` is what errors call the file.
  ZipReader(Bytes archive, std::string label);
  ZipReader(ZipReader&&) = default;
  ZipReader& operator=(ZipReader&&) = default;
  /// Maps the file.
  static ZipReader open(const std::string& path) { return ZipReader(map_file(path), path); }

  const std::vector<ZipEntry>& entries() const { return entries_; }
  /// Null where there is no entry of that name.
  const ZipEntry* find(std::string_view name) const;
  /// The contents: a view of the archive for stored entries, fresh memory for deflated ones. Checks the CRC.
  Bytes read(const ZipEntry& entry) const;
  /// The same for tensors' data, without touching more than a megabyte of it: the CRC of larger stored entries is left
  /// unchecked, so that memory of the file is first read where somebody uses it.
  Bytes read_lazily(const ZipEntry& entry) const;
  /// The contents by name; an error where there is none.
  Bytes read(std::string_view name) const;
  /// The part of every name before the first slash, with it ("program/"); empty where names have no folder in common.
  std::string root() const;
  const std::string& label() const { return label_; }

 private:
  struct Directory {
    uint64_t offset, size, count;
  };
  Directory find_directory() const;
  Directory find_directory64(uint64_t end_record, Directory directory) const;
  void read_directory(const Directory& directory);
  ZipEntry read_record(uint64_t& at, uint64_t end) const;
  void locate(ZipEntry& entry, uint64_t directory_offset) const;
  void check_overlaps() const;
  Bytes inflate(const ZipEntry& entry) const;
  uint64_t number(uint64_t at, int bytes) const;
  template <class... Args> [[noreturn]] void refuse(const Args&... args) const;

  Bytes archive_;
  std::string label_;
  std::vector<ZipEntry> entries_;
  std::unordered_map<std::string_view, size_t> by_name_;
};

/// True for names that stay inside an archive: relative, without "..", backslashes, drive letters or control
/// characters.
bool is_safe_entry_name(std::string_view name);

/// Whether the bytes begin as a zip archive does.
bool looks_like_zip(std::string_view bytes);

/// Writes an archive entry by entry. Entries are stored, and their data begins at a multiple of 64 bytes: a reader may
/// map them.
class ZipWriter {
 public:
  explicit ZipWriter(ByteSink& sink) : sink_(sink) {}
  void add(const std::string& name, const void* data, size_t size);
  void add(const std::string& name, std::string_view contents) { add(name, contents.data(), contents.size()); }
  /// The central directory; nothing can be added after it.
  void finish();
  /// Forty digits from names and contents so far: what PyTorch keeps under .data/serialization_id.
  std::string serialization_id() const;

 private:
  void emit(std::string_view bytes);

  ByteSink& sink_;
  uint64_t position_ = 0;
  std::vector<ZipEntry> entries_;
  std::unordered_map<std::string, size_t> by_name_;
  bool finished_ = false;
};

/// CRC-32 as zip has it.
uint32_t crc32(const void* data, size_t size);

}  // namespace io
}  // namespace umbra
