#include "umbra/io/npy.h"

#include <charconv>
#include <optional>

#include "io/tensor_bytes.h"
#include "io/text.h"
#include "umbra/io/zip.h"

namespace umbra::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeader = 1 << 20;

constexpr std::pair<const char*, DType> kDTypes[] = {
    {"|b1", DType::Bool},      {"|u1", DType::UInt8},       {"|i1", DType::Int8},    {"<i2", DType::Int16},
    {"<u2", DType::UInt16},    {"<i4", DType::Int32},       {"<u4", DType::UInt32},  {"<i8", DType::Int64},
    {"<u8", DType::UInt64},    {"<f2", DType::Float16},     {"<f4", DType::Float32}, {"<f8", DType::Float64},
    {"<c8", DType::Complex64}, {"<c16", DType::Complex128},
};

struct Header {
  DType dtype = DType::Undefined;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

/// Reads the one form of Python dict that headers have: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& label) : text_(text), label_(label) {}

  Header run() {
    Header header;
    std::optional<std::string> descr, order, shape;
    expect('{');
    while (!accept('}')) {
      std::string key = quoted();
      expect(':');
      std::optional<std::string>* seen = key == "descr"           ? &descr
                                         : key == "fortran_order" ? &order
                                         : key == "shape"         ? &shape
                                                                  : nullptr;
      if (!seen || *seen) refuse("its header has the key '", printable(key), "', or has it twice");
      *seen = key;
      if (seen == &descr) header.dtype = dtype();
      if (seen == &order) header.fortran_order = boolean();
      if (seen == &shape) header.shape = integers();
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!descr || !order || !shape) refuse("its header is not complete");
    skip_space();
    if (!text_.empty()) refuse("its header goes on after its end");
    return header;
  }

 private:
  template <class... Args> [[noreturn]] void refuse(const Args&... args) const {
    fail<ValueError>("'", label_, "' is no readable .npy file: ", args...);
  }
  void skip_space() { text_.remove_prefix(std::min(text_.find_first_not_of(" \t\n"), text_.size())); }
  bool accept(char c) {
    skip_space();
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse("its header is damaged: '", c, "' is missing");
  }
  bool accept_word(std::string_view word) {
    skip_space();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  std::string quoted() {
    skip_space();
    char quote = text_.empty() ? '\0' : text_[0];
    if (quote != '\'' && quote != '"') refuse("its elements are not plain numbers");
    size_t end = text_.find(quote, 1);
    if (end == std::string_view::npos) refuse("its header is damaged: a text does not end");
    std::string value(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return value;
  }
  DType dtype() {
    std::string text = quoted();
    for (auto [spelling, dtype] : kDTypes)
      if (text == spelling || (spelling[0] == '|' && text.size() == 3 && text.ends_with(spelling + 1))) return dtype;
    refuse("elements of type '", printable(text), "' are not supported");
  }
  bool boolean() {
    if (accept_word("True")) return true;
    if (!accept_word("False")) refuse("its header is damaged: fortran_order is neither True nor False");
    return false;
  }
  std::vector<int64_t> integers() {
    std::vector<int64_t> values;
    expect('(');
    while (!accept(')')) {
      skip_space();
      int64_t value = 0;
      auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
      if (error != std::errc()) refuse("its header is damaged: its shape is no tuple of integers");
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      values.push_back(value);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }

  std::string_view text_;
  const std::string& label_;
};

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::string header_text(const Tensor& tensor) {
  const char* descr = nullptr;
  for (auto [spelling, dtype] : kDTypes)
    if (dtype == tensor.dtype()) descr = spelling;
  check<ValueError>(descr, "NumPy has no elements of type ", name(tensor.dtype()));
  std::string text = concat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (");
  for (int64_t d = 0; d < tensor.dim(); ++d) text += concat(d ? ", " : "", tensor.sizes()[d]);
  text += tensor.dim() == 1 ? ",), }" : "), }";
  // Magic, version, length and header together are a multiple of 64, and the last byte is a new line.
  text.append(63 - (kMagic.size() + 4 + text.size()) % 64, ' ');
  return text + "\n";
}

}  // namespace

Tensor read_npy(const Bytes& bytes, const std::string& label) {
  std::string_view text = bytes.text();
  check<ValueError>(text.starts_with(kMagic) && text.size() >= 12, "'", label,
                    "' is no readable .npy file: it does not begin as one");
  int version = text[6];
  check<ValueError>(version >= 1 && version <= 3, "'", label, "' is no readable .npy file: version ", version,
                    " is not known");
  size_t start = version == 1 ? 10 : 12;
  uint64_t size = little_endian(text.substr(8, start - 8));
  check<ValueError>(size <= kMaxHeader && size <= text.size() - start, "'", label,
                    "' is no readable .npy file: its header is said to have ", size, " bytes");
  Header header = HeaderParser(text.substr(start, size), label).run();
  std::string what = concat("'", label, "': the array");
  std::vector<int64_t> shape = header.shape;
  if (header.fortran_order) std::reverse(shape.begin(), shape.end());
  Bytes data = bytes.slice(start + size, text.size() - start - size);
  Tensor tensor = tensor_over(data, header.dtype, shape, what);
  if (!header.fortran_order) return tensor;
  std::vector<int64_t> strides = tensor.strides().vec();
  std::reverse(strides.begin(), strides.end());
  return tensor_over(tensor.storage(), header.dtype, header.shape, strides, 0, what);
}

Tensor load_npy(const std::string& path) { return read_npy(map_file(path), path); }

void write_npy(ByteSink& sink, const Tensor& tensor) {
  check_savable(tensor, "the tensor");
  check<ValueError>(!tensor.is_conj() && !tensor.is_neg(), "the tensor is a lazy conjugate; use resolve_conj() first");
  std::string header = header_text(tensor), buffer;
  sink.write(kMagic);
  uint32_t version_and_length = 1 | static_cast<uint32_t>(header.size()) << 16;
  sink.write(&version_and_length, sizeof(version_and_length));
  sink.write(header);
  sink.write(packed_bytes(tensor, buffer));
}

void save_npy(const std::string& path, const Tensor& tensor) {
  AtomicFile file(path);
  write_npy(file, tensor);
  file.commit();
}

NamedTensors read_npz(const Bytes& bytes, const std::string& label) {
  ZipReader zip(bytes, label);
  NamedTensors result;
  for (const ZipEntry& entry : zip.entries()) {
    check<ValueError>(entry.name.ends_with(".npy"), "'", label, "' is no .npz file: it holds '", entry.name, "'");
    std::string name = entry.name.substr(0, entry.name.size() - 4);
    result.emplace_back(name, read_npy(zip.read(entry), concat(label, ":", entry.name)));
  }
  return result;
}

NamedTensors load_npz(const std::string& path) { return read_npz(map_file(path), path); }

void save_npz(const std::string& path, const NamedTensors& tensors) {
  AtomicFile file(path);
  ZipWriter zip(file);
  for (const auto& [name, tensor] : tensors) {
    BufferSink entry;
    write_npy(entry, tensor);
    zip.add(name + ".npy", entry.text);
  }
  zip.finish();
  file.commit();
}

}  // namespace umbra::io
