#include "umbra/io/safetensors.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "io/tensor_bytes.h"
#include "umbra/io/json.h"

namespace umbra::io {
namespace {

constexpr const char* kMetadata = "__metadata__";
constexpr uint64_t kMaxHeader = 100'000'000;  // the format's own limit

/// In the order in which the library sorts them: the later, the earlier in the file.
constexpr std::pair<const char*, DType> kDTypes[] = {
    {"BOOL", DType::Bool},          {"U8", DType::UInt8},    {"I8", DType::Int8},    {"F8_E5M2", DType::Float8E5M2},
    {"F8_E4M3", DType::Float8E4M3}, {"I16", DType::Int16},   {"U16", DType::UInt16}, {"F16", DType::Float16},
    {"BF16", DType::BFloat16},      {"I32", DType::Int32},   {"U32", DType::UInt32}, {"F32", DType::Float32},
    {"C64", DType::Complex64},      {"F64", DType::Float64}, {"I64", DType::Int64},  {"U64", DType::UInt64},
};

size_t rank_of(DType dtype, const std::string& what) {
  for (size_t i = 0; i < std::size(kDTypes); ++i)
    if (kDTypes[i].second == dtype) return i;
  fail<ValueError>(what, " has dtype ", name(dtype), ", which the safetensors format does not have");
}

struct Described {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  int64_t begin, end;
};

DType parse_dtype(const std::string& text, const std::string& what) {
  for (auto [spelling, dtype] : kDTypes)
    if (text == spelling) return dtype;
  fail<ValueError>(what, " has the unknown dtype '", text, "'");
}

Described describe(const std::string& name, const Json& json, const std::string& what) {
  try {
    const Json *dtype = json.find("dtype"), *shape = json.find("shape"), *offsets = json.find("data_offsets");
    check<ValueError>(dtype && shape && offsets, "it needs dtype, shape and data_offsets");
    Described result{name, parse_dtype(dtype->as_string(), "it"), {}, 0, 0};
    for (const Json& size : shape->array()) result.shape.push_back(size.as_int());
    check<ValueError>(offsets->array().size() == 2, "data_offsets must be two numbers");
    result.begin = offsets->array()[0].as_int();
    result.end = offsets->array()[1].as_int();
    return result;
  } catch (const Error& error) {
    fail<ValueError>(what, ": ", error.what());
  }
}

/// The data must be the tensors one after another: nothing before, between, after, and nothing twice.
void check_layout(std::vector<Described> tensors, uint64_t data_size, const std::string& label) {
  std::sort(tensors.begin(), tensors.end(), [](const Described& a, const Described& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  int64_t position = 0;
  for (const Described& tensor : tensors) {
    check<ValueError>(tensor.begin >= 0 && tensor.end >= tensor.begin, "'", label, "': the offsets of tensor '",
                      tensor.name, "' are reversed or negative");
    check<ValueError>(static_cast<uint64_t>(tensor.end) <= data_size, "'", label, "': tensor '", tensor.name,
                      "' ends after the file");
    check<ValueError>(tensor.begin >= position, "'", label, "': tensor '", tensor.name, "' overlaps the one before it");
    check<ValueError>(tensor.begin == position, "'", label, "': there is a hole before tensor '", tensor.name, "'");
    position = tensor.end;
  }
  check<ValueError>(static_cast<uint64_t>(position) == data_size, "'", label,
                    "': ", data_size - static_cast<uint64_t>(position), " bytes follow the last tensor");
}

NamedTexts parse_metadata(const Json& json, const std::string& label) {
  NamedTexts metadata;
  for (const auto& [key, value] : json.object()) {
    check<ValueError>(value.is_string(), "'", label, "': the metadata '", key, "' is not a string");
    metadata.emplace_back(key, value.as_string());
  }
  return metadata;
}

/// A tensor to write, and the place of its dtype in the library's order.
struct Item {
  const std::string* name;
  const Tensor* tensor;
  size_t rank;
};

std::vector<Item> sorted_items(const NamedTensors& tensors) {
  std::vector<Item> items;
  std::unordered_set<std::string_view> names;
  for (const auto& [name, tensor] : tensors) {
    std::string what = concat("tensor '", name, "'");
    check<ValueError>(name != kMetadata && names.insert(name).second, what, " cannot be saved under that name");
    check_savable(tensor, what);
    check<ValueError>(!tensor.is_conj() && !tensor.is_neg(), what, " is a lazy conjugate; use resolve_conj() first");
    items.push_back({&name, &tensor, rank_of(tensor.dtype(), what)});
  }
  std::sort(items.begin(), items.end(),
            [](const Item& a, const Item& b) { return a.rank != b.rank ? a.rank > b.rank : *a.name < *b.name; });
  return items;
}

std::string header_of(const std::vector<Item>& items, const NamedTexts& metadata) {
  auto quoted = [](const std::string& text) { return write_json(Json(text)); };
  std::string header = "{";
  const char* separator = "";
  if (!metadata.empty()) {
    header += concat("\"", kMetadata, "\":{");
    for (const char* comma = ""; const auto& [key, value] : metadata)
      header += concat(std::exchange(comma, ","), quoted(key), ":", quoted(value));
    header += "}";
    separator = ",";
  }
  int64_t position = 0;
  for (const Item& item : items) {
    int64_t end = position + item.tensor->numel() * item.tensor->item_size();
    header += concat(std::exchange(separator, ","), quoted(*item.name), ":{\"dtype\":\"", kDTypes[item.rank].first,
                     "\",\"shape\":[");
    for (const char* comma = ""; int64_t size : item.tensor->sizes()) header += concat(std::exchange(comma, ","), size);
    header += concat("],\"data_offsets\":[", position, ",", end, "]}");
    position = end;
  }
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');  // the data begins aligned
  return header;
}

}  // namespace

Safetensors read_safetensors(const Bytes& bytes, const std::string& label) {
  check<ValueError>(bytes.size() >= 8, "'", label, "' is no safetensors file: it is too short");
  uint64_t header_size;
  std::memcpy(&header_size, bytes.data(), sizeof(header_size));
  check<ValueError>(header_size <= kMaxHeader && header_size <= bytes.size() - 8, "'", label,
                    "' is no safetensors file: its header is said to have ", header_size, " bytes");
  std::string_view header = bytes.slice(8, header_size).text();
  check<ValueError>(header.starts_with('{'), "'", label, "' is no safetensors file: its header is no JSON object");
  Json json = parse_json(header, label, 8);
  Bytes data = bytes.slice(8 + header_size, bytes.size() - 8 - header_size);

  Safetensors result;
  std::vector<Described> described;
  for (const auto& [name, value] : json.object()) {
    if (name == kMetadata) {
      result.metadata = parse_metadata(value, label);
    } else {
      described.push_back(describe(name, value, concat("'", label, "': tensor '", name, "'")));
    }
  }
  check_layout(described, data.size(), label);
  for (Described& tensor : described) {
    Bytes part = data.slice(static_cast<size_t>(tensor.begin), static_cast<size_t>(tensor.end - tensor.begin));
    std::string what = concat("'", label, "': tensor '", tensor.name, "'");
    result.tensors.emplace_back(std::move(tensor.name), tensor_over(part, tensor.dtype, tensor.shape, what));
  }
  return result;
}

NamedTensors load_safetensors(const std::string& path) { return read_safetensors(map_file(path), path).tensors; }

void write_safetensors(ByteSink& sink, const NamedTensors& tensors, const NamedTexts& metadata) {
  std::vector<Item> items = sorted_items(tensors);
  std::string header = header_of(items, metadata);
  uint64_t header_size = header.size();
  check<ValueError>(header_size <= kMaxHeader, "the header would have ", header_size,
                    " bytes, more than the format allows");
  sink.write(&header_size, sizeof(header_size));
  sink.write(header);
  std::string buffer;
  for (const Item& item : items) sink.write(packed_bytes(*item.tensor, buffer));
}

void save_safetensors(const std::string& path, const NamedTensors& tensors, const NamedTexts& metadata) {
  AtomicFile file(path);
  write_safetensors(file, tensors, metadata);
  file.commit();
}

}  // namespace umbra::io
