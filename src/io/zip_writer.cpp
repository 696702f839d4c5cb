// Writes zip files whose entries are stored as they are.

#include "io/zip_format.h"
#include "umbra/core/error.h"
#include "umbra/io/zip.h"

namespace umbra::io {

using namespace zip;

namespace {

/// Little-endian fields one after another.
class Record {
 public:
  Record& u16(uint64_t value) { return put(value, 2); }
  Record& u32(uint64_t value) { return put(value, 4); }
  Record& u64(uint64_t value) { return put(value, 8); }
  Record& text(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Record& put(uint64_t value, size_t size) {
    bytes_.append(reinterpret_cast<const char*>(&value), size);
    return *this;
  }
  std::string bytes_;
};

uint64_t clamp32(uint64_t value) { return value >= kSee64 ? kSee64 : value; }

/// The extra field with those of the values that need 64 bits; empty where none does.
std::string extra64(std::initializer_list<uint64_t> values) {
  Record wide;
  for (uint64_t value : values)
    if (value >= kSee64) wide.u64(value);
  if (wide.bytes().empty()) return "";
  return Record().u16(kExtra64).u16(wide.bytes().size()).text(wide.bytes()).bytes();
}

/// CRC and sizes follow the data of every entry that has any.
uint64_t flags_of(const ZipEntry& entry) { return kFlagUtf8 | (entry.size ? kFlagDescriptor : 0); }

/// Hashes text into the digits of an identifier: FNV-1a.
uint64_t mix(uint64_t hash, std::string_view text) {
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

void ZipWriter::emit(std::string_view bytes) {
  sink_.write(bytes);
  position_ += bytes.size();
}

void ZipWriter::add(const std::string& name, const void* data, size_t size) {
  check(!finished_, "cannot add '", name, "' to a finished archive");
  check<ValueError>(is_safe_entry_name(name) && name.size() < 0xffff, "'", name,
                    "' cannot be the name of an archive's entry");
  check<ValueError>(by_name_.emplace(name, entries_.size()).second, "the archive has an entry '", name, "' already");

  ZipEntry entry{.name = name, .size = size, .compressed_size = size, .header_offset = position_};
  bool wide = size >= kSee64;
  // A local header whose sizes are all in the descriptor still says by this field that they have 64 bits there.
  std::string extra = wide ? Record().u16(kExtra64).u16(16).u64(0).u64(0).bytes() : "";
  uint64_t unpadded = position_ + kLocalHeaderSize + name.size() + extra.size() + 4;
  uint64_t padding = (kAlignment - unpadded % kAlignment) % kAlignment;
  extra += Record().u16(kExtraPadding).u16(padding).text(std::string(padding, 'Z')).bytes();

  Record header;
  header.u32(kLocalHeader).u16(wide ? 45 : 0).u16(flags_of(entry)).u16(kStored).u32(0).u32(0);
  header.u32(wide ? kSee64 : 0).u32(wide ? kSee64 : 0).u16(name.size()).u16(extra.size()).text(name).text(extra);
  emit(header.bytes());
  entry.data_offset = position_;
  emit({static_cast<const char*>(data), size});

  entry.crc = crc32(data, size);
  if (flags_of(entry) & kFlagDescriptor) {
    Record descriptor;
    descriptor.u32(kDescriptor).u32(entry.crc);
    wide ? descriptor.u64(size).u64(size) : descriptor.u32(size).u32(size);
    emit(descriptor.bytes());
  }
  entries_.push_back(std::move(entry));
}

void ZipWriter::finish() {
  check(!finished_, "the archive is finished already");
  finished_ = true;
  uint64_t start = position_;
  for (const ZipEntry& entry : entries_) {
    std::string extra = extra64({entry.size, entry.compressed_size, entry.header_offset});
    Record record;
    record.u32(kCentralRecord).u16(0).u16(extra.empty() ? 0 : 45).u16(flags_of(entry)).u16(kStored).u32(0);
    record.u32(entry.crc).u32(clamp32(entry.compressed_size)).u32(clamp32(entry.size)).u16(entry.name.size());
    record.u16(extra.size()).u16(0).u16(0).u16(0).u32(0).u32(clamp32(entry.header_offset));
    emit(record.text(entry.name).text(extra).bytes());
  }
  uint64_t end = position_, count = entries_.size();
  constexpr uint64_t kMadeByUnix30 = 0x031e, kNeeds45 = 45;  // what PyTorch's writer states
  Record tail;
  tail.u32(kEndRecord64).u64(kEndRecord64Size - 12).u16(kMadeByUnix30).u16(kNeeds45).u32(0).u32(0);
  tail.u64(count).u64(count).u64(end - start).u64(start);
  tail.u32(kEndLocator64).u32(0).u64(end).u32(1);
  uint64_t short_count = count >= kCountSee64 ? kCountSee64 : count;
  tail.u32(kEndRecord).u16(0).u16(0).u16(short_count).u16(short_count);
  tail.u32(clamp32(end - start)).u32(clamp32(start)).u16(0);
  emit(tail.bytes());
}

std::string ZipWriter::serialization_id() const {
  uint64_t names = 0xcbf29ce484222325, contents = names;
  for (const ZipEntry& entry : entries_) {
    names = mix(names, entry.name);
    contents = mix(contents, std::string_view(reinterpret_cast<const char*>(&entry.crc), sizeof(entry.crc)));
  }
  auto digits = [](uint64_t value) {
    std::string text = std::to_string(value);
    return std::string(20 - text.size(), '0') + text;
  };
  return digits(names) + digits(contents);
}

}  // namespace umbra::io
