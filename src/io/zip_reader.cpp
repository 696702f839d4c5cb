// Reads zip files, and takes them for hostile.
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "io/text.h"
#include "io/zip_format.h"
#include "umbra/core/error.h"
#include "umbra/io/zip.h"

namespace umbra::io {

using namespace zip;

uint32_t crc32(const void* data, size_t size) {
  return static_cast<uint32_t>(::crc32_z(0, static_cast<const Bytef*>(data), size));
}

bool looks_like_zip(std::string_view bytes) {
  return bytes.starts_with(std::string_view("PK\3\4", 4)) || bytes.starts_with(std::string_view("PK\5\6", 4));
}

bool is_safe_entry_name(std::string_view name) {
  if (name.empty() || name.front() == '/' || (name.size() > 1 && name[1] == ':')) return false;
  for (char c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == '\\' || c == 0x7f) return false;
  for (size_t from = 0; from <= name.size();) {
    size_t slash = std::min(name.find('/', from), name.size());
    std::string_view part = name.substr(from, slash - from);
    if (part == ".." || part == ".") return false;
    from = slash + 1;
  }
  return true;
}

template <class... Args> void ZipReader::refuse(const Args&... args) const {
  fail<ValueError>("'", label_, "' is not a readable zip archive: ", args...);
}

ZipReader::ZipReader(Bytes archive, std::string label) : archive_(std::move(archive)), label_(std::move(label)) {
  Directory directory = find_directory();
  read_directory(directory);
  check_overlaps();
  for (size_t i = 0; i < entries_.size(); ++i)
    if (!by_name_.emplace(entries_[i].name, i).second)
      refuse("it has two entries named '", printable(entries_[i].name), "'");
}

/// The little-endian number at a place that must lie in the file.
uint64_t ZipReader::number(uint64_t at, int bytes) const {
  if (at > archive_.size() || archive_.size() - at < static_cast<uint64_t>(bytes)) refuse("it ends too early");
  uint64_t value = 0;
  std::memcpy(&value, archive_.data() + at, static_cast<size_t>(bytes));
  return value;
}

ZipReader::Directory ZipReader::find_directory() const {
  uint64_t size = archive_.size();
  if (size == 0) refuse("it has no bytes");
  if (size < kEndRecordSize) refuse("it is too short");
  // The record is the last thing in the file but for a comment, whose length it states.
  uint64_t last = size - kEndRecordSize;
  uint64_t first = last > 0xffff ? last - 0xffff : 0;
  for (uint64_t at = last + 1; at-- > first;) {
    if (number(at, 4) != kEndRecord || at + kEndRecordSize + number(at + 20, 2) != size) continue;
    Directory directory{number(at + 16, 4), number(at + 12, 4), number(at + 10, 2)};
    bool wide = directory.offset == kSee64 || directory.size == kSee64 || directory.count == kCountSee64;
    if (!wide && (number(at + 4, 2) != 0 || number(at + 6, 2) != 0)) refuse("it is spread over several disks");
    directory = find_directory64(at, directory);
    if (directory.offset > at || directory.size > at - directory.offset)
      refuse("its directory is said to lie outside the file");
    if (directory.count > directory.size / kCentralRecordSize) refuse("it claims more entries than it has room for");
    return directory;
  }
  refuse("it has no end record (the file is cut, or something else)");
}

/// The 64-bit end record, where there is one: PyTorch writes it always, and needs it only past 4 GiB.
ZipReader::Directory ZipReader::find_directory64(uint64_t end_record, Directory directory) const {
  bool wide = directory.offset == kSee64 || directory.size == kSee64 || directory.count == kCountSee64;
  bool has_locator = end_record >= kEndLocator64Size && number(end_record - kEndLocator64Size, 4) == kEndLocator64;
  if (!has_locator) {
    if (wide) refuse("its 64-bit end record is missing");
    return directory;
  }
  uint64_t at = number(end_record - kEndLocator64Size + 8, 8);
  uint64_t limit = end_record - kEndLocator64Size;
  if (at > limit || limit - at < kEndRecord64Size || number(at, 4) != kEndRecord64)
    refuse("its 64-bit end record is not where it should be");
  Directory found{number(at + 48, 8), number(at + 40, 8), number(at + 32, 8)};
  // Readers that look at one record only must not see another archive than those that look at the other.
  auto agrees = [](uint64_t narrow, uint64_t full, uint64_t escape) { return narrow == escape || narrow == full; };
  if (!agrees(directory.offset, found.offset, kSee64) || !agrees(directory.size, found.size, kSee64) ||
      !agrees(directory.count, found.count, kCountSee64))
    refuse("its two end records disagree");
  return found;
}

void ZipReader::read_directory(const Directory& directory) {
  uint64_t at = directory.offset, end = directory.offset + directory.size;
  entries_.reserve(directory.count);
  for (uint64_t i = 0; i < directory.count; ++i) {
    ZipEntry entry = read_record(at, end);
    locate(entry, directory.offset);
    entries_.push_back(std::move(entry));
  }
  if (at != end) refuse("its directory is longer than its entries");
}

/// One record of the central directory; `at` moves past it.
ZipEntry ZipReader::read_record(uint64_t& at, uint64_t end) const {
  if (end - at < kCentralRecordSize || number(at, 4) != kCentralRecord) refuse("its directory is damaged");
  uint64_t name_size = number(at + 28, 2), extra_size = number(at + 30, 2), comment_size = number(at + 32, 2);
  uint64_t name_at = at + kCentralRecordSize, extra_at = name_at + name_size;
  if (end - name_at < name_size + extra_size + comment_size) refuse("its directory is damaged");

  ZipEntry entry;
  entry.name = std::string(archive_.text().substr(name_at, name_size));
  if (!is_safe_entry_name(entry.name)) refuse("the entry name '", printable(entry.name), "' leaves the archive");
  uint64_t flags = number(at + 8, 2), method = number(at + 10, 2);
  if (flags & kFlagEncrypted) refuse("the entry '", printable(entry.name), "' is encrypted");
  if (method != kStored && method != kDeflated)
    refuse("the entry '", entry.name, "' is compressed by method ", method, "; only stored and deflated ones are read");
  entry.deflated = method == kDeflated;
  entry.crc = static_cast<uint32_t>(number(at + 16, 4));
  entry.compressed_size = number(at + 20, 4);
  entry.size = number(at + 24, 4);
  entry.header_offset = number(at + 42, 4);
  if (number(at + 34, 2) != 0) refuse("it is spread over several disks");

  // The 64-bit field holds, in this order, those of the values that do not fit their place in the record.
  for (uint64_t field = extra_at, stop = extra_at + extra_size; stop - field >= 4;) {
    uint64_t id = number(field, 2), length = number(field + 2, 2);
    field += 4;
    if (length > stop - field) refuse("an extra field of the entry '", printable(entry.name), "' is damaged");
    if (id == kExtra64) {
      uint64_t next = field;
      for (uint64_t* value : {&entry.size, &entry.compressed_size, &entry.header_offset}) {
        if (*value != kSee64) continue;
        if (field + length - next < 8) refuse("an extra field of the entry '", printable(entry.name), "' is damaged");
        *value = number(next, 8);
        next += 8;
      }
    }
    field += length;
  }
  at = extra_at + extra_size + comment_size;
  return entry;
}

/// Finds the data by the local header, and checks that it lies before the directory.
void ZipReader::locate(ZipEntry& entry, uint64_t directory_offset) const {
  uint64_t at = entry.header_offset;
  if (at > directory_offset || directory_offset - at < kLocalHeaderSize)
    refuse("the entry '", printable(entry.name), "' is said to lie outside the file");
  if (number(at, 4) != kLocalHeader)
    refuse("the entry '", printable(entry.name), "' does not begin with a local header");
  uint64_t name_size = number(at + 26, 2), extra_size = number(at + 28, 2);
  uint64_t room = directory_offset - at - kLocalHeaderSize;
  if (room < name_size + extra_size || room - name_size - extra_size < entry.compressed_size)
    refuse("the entry '", printable(entry.name), "' claims ", entry.compressed_size,
           " bytes, which the file does not have");
  if (archive_.text().substr(at + kLocalHeaderSize, name_size) != entry.name)
    refuse("the entry '", printable(entry.name), "' has another name in its local header");
  if (number(at + 8, 2) != (entry.deflated ? kDeflated : kStored))
    refuse("the entry '", printable(entry.name), "' has another compression method in its local header");
  entry.data_offset = at + kLocalHeaderSize + name_size + extra_size;
  if (!entry.deflated && entry.size != entry.compressed_size)
    refuse("the entry '", printable(entry.name), "' is stored, and its two sizes differ");
  // Deflate cannot do better than 1032 to 1.
  if (entry.deflated && entry.size / 1032 > entry.compressed_size)
    refuse("the entry '", printable(entry.name), "' claims to unpack to ", entry.size, " bytes, which cannot be");
}

void ZipReader::check_overlaps() const {
  std::vector<const ZipEntry*> order;
  order.reserve(entries_.size());
  for (const ZipEntry& entry : entries_) order.push_back(&entry);
  std::sort(order.begin(), order.end(),
            [](const ZipEntry* a, const ZipEntry* b) { return a->header_offset < b->header_offset; });
  for (size_t i = 1; i < order.size(); ++i)
    if (order[i - 1]->data_offset + order[i - 1]->compressed_size > order[i]->header_offset)
      refuse("the entries '", printable(order[i - 1]->name), "' and '", printable(order[i]->name), "' overlap");
}

const ZipEntry* ZipReader::find(std::string_view name) const {
  auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &entries_[found->second];
}

Bytes ZipReader::read(std::string_view name) const {
  const ZipEntry* entry = find(name);
  if (!entry) fail<ValueError>("'", label_, "' has no entry '", name, "'");
  return read(*entry);
}

Bytes ZipReader::read(const ZipEntry& entry) const {
  Bytes bytes = entry.deflated ? inflate(entry) : archive_.slice(entry.data_offset, entry.size);
  if (io::crc32(bytes.data(), bytes.size()) != entry.crc)
    refuse("the entry '", printable(entry.name), "' is damaged: its checksum (CRC-32) does not match");
  return bytes;
}

Bytes ZipReader::read_lazily(const ZipEntry& entry) const {
  constexpr uint64_t kSmall = 1 << 20;
  return entry.deflated || entry.size <= kSmall ? read(entry) : archive_.slice(entry.data_offset, entry.size);
}

Bytes ZipReader::inflate(const ZipEntry& entry) const {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) fail<OutOfMemoryError>("zlib has no memory");
  struct End {
    z_stream* stream;
    ~End() { inflateEnd(stream); }
  } end{&stream};
  const std::byte* next = archive_.data() + entry.data_offset;
  uint64_t left = entry.compressed_size;
  std::string out;
  int status = Z_OK;
  // Memory grows with what really comes out, never by the size that the directory states.
  while (status == Z_OK) {
    size_t filled = out.size();
    size_t room = std::min<uint64_t>(std::max<size_t>(filled, 65536), entry.size - filled + 1);
    out.resize(filled + room);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(next));
    stream.avail_in = static_cast<uInt>(std::min<uint64_t>(left, 1u << 30));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + filled);
    stream.avail_out = static_cast<uInt>(std::min<size_t>(room, 1u << 30));
    uInt given = stream.avail_in, wanted = stream.avail_out;
    status = ::inflate(&stream, Z_NO_FLUSH);
    next += given - stream.avail_in;
    left -= given - stream.avail_in;
    out.resize(filled + (wanted - stream.avail_out));
    if (out.size() > entry.size) break;
  }
  if (status != Z_STREAM_END || out.size() != entry.size)
    refuse("the compressed entry '", printable(entry.name), "' is damaged");
  return Bytes(std::move(out));
}

std::string ZipReader::root() const {
  if (entries_.empty()) return "";
  const std::string& first = entries_.front().name;
  size_t slash = first.find('/');
  if (slash == std::string::npos) return "";
  std::string root = first.substr(0, slash + 1);
  for (const ZipEntry& entry : entries_)
    if (!entry.name.starts_with(root)) return "";
  return root;
}

}  // namespace umbra::io
