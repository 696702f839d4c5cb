#include "umbra/core/print.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <ostream>

#include "core/per_thread.h"
#include "umbra/core/sparse.h"

namespace umbra {

namespace {

/// An element as it is printed: a number of its kind, or two for complex ones.
struct Element {
  double real = 0, imag = 0;
  std::string exact;  // of integers and bools
};

template <class T> T load(const void* at) {
  T v;
  std::memcpy(&v, at, sizeof(T));
  return v;
}

Element read_element(const void* at, DType dtype) {
  switch (dtype) {
    case DType::Bool: return {0, 0, load<uint8_t>(at) ? "True" : "False"};
    case DType::UInt8: return {0, 0, std::to_string(load<uint8_t>(at))};
    case DType::Int8: return {0, 0, std::to_string(load<int8_t>(at))};
    case DType::Int16: return {0, 0, std::to_string(load<int16_t>(at))};
    case DType::Int32: return {0, 0, std::to_string(load<int32_t>(at))};
    case DType::Int64: return {0, 0, std::to_string(load<int64_t>(at))};
    case DType::UInt16: return {0, 0, std::to_string(load<uint16_t>(at))};
    case DType::UInt32: return {0, 0, std::to_string(load<uint32_t>(at))};
    case DType::UInt64: return {0, 0, std::to_string(load<uint64_t>(at))};
    case DType::Float16: return {static_cast<float>(load<Half>(at)), 0, {}};
    case DType::BFloat16: return {static_cast<float>(load<BFloat16>(at)), 0, {}};
    case DType::Float8E4M3: return {static_cast<float>(load<Float8E4M3>(at)), 0, {}};
    case DType::Float8E5M2: return {static_cast<float>(load<Float8E5M2>(at)), 0, {}};
    case DType::Float8E4M3FNUZ: return {static_cast<float>(load<Float8E4M3FNUZ>(at)), 0, {}};
    case DType::Float8E5M2FNUZ: return {static_cast<float>(load<Float8E5M2FNUZ>(at)), 0, {}};
    case DType::Float8E8M0FNU: return {static_cast<float>(load<Float8E8M0FNU>(at)), 0, {}};
    case DType::Float32: return {load<float>(at), 0, {}};
    case DType::Float64: return {load<double>(at), 0, {}};
    case DType::Complex64: return {load<float>(at), load<float>(static_cast<const float*>(at) + 1), {}};
    case DType::Complex128: return {load<double>(at), load<double>(static_cast<const double*>(at) + 1), {}};
    case DType::Complex32: {
      auto* parts = static_cast<const Half*>(at);
      return {static_cast<float>(parts[0]), static_cast<float>(parts[1]), {}};
    }
    case DType::Undefined: break;
  }
  return {};
}

std::string fixed(double v, int precision) {
  return fmt::format("{:.{}f}", std::isnan(v) ? std::fabs(v) : v, precision);
}
std::string scientific(double v, int precision) {
  return fmt::format("{:.{}e}", std::isnan(v) ? std::fabs(v) : v, precision);
}

/// One layout for all numbers of a tensor: whole, with decimals or with exponents, all of the same width.
class Formatter {
 public:
  explicit Formatter(const std::vector<double>& values) {
    const PrintOptions& options = print_options();
    double least = INFINITY, most = 0;
    std::vector<double> counted;
    for (double v : values) {
      if (!std::isfinite(v) || v == 0) continue;
      counted.push_back(v);
      least = std::min(least, std::fabs(v));
      most = std::max(most, std::fabs(v));
      if (v != std::ceil(v)) whole_ = false;
    }
    if (counted.empty()) return;
    scientific_ = options.sci_mode.value_or(most / least > 1000.0 || most > 1e8 || least < 1e-4);
    for (double v : counted) {
      size_t width = scientific_ ? scientific(v, options.precision).size()
                     : whole_    ? fixed(v, 0).size() + 1
                                 : fixed(v, options.precision).size();
      width_ = std::max(width_, width);
    }
  }

  size_t width() const { return width_; }

  std::string operator()(double v) const {
    int precision = print_options().precision;
    std::string text = scientific_ ? scientific(v, precision) : whole_ ? fixed(v, 0) : fixed(v, precision);
    if (whole_ && !scientific_ && std::isfinite(v)) text += ".";
    return padded(std::move(text), width_);
  }

  static std::string padded(std::string text, size_t width) {
    return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
  }

 private:
  bool whole_ = true, scientific_ = false;
  size_t width_ = 1;
};

/// Prints the elements of one tensor.
class Printer {
 public:
  explicit Printer(const Tensor& t)
      : tensor_(t),
        sizes_(t.sizes().vec()),
        summarize_(t.numel() > print_options().threshold),
        real_({}),
        imaginary_({}) {
    std::vector<double> real, imaginary;
    // Numbers are laid out by those that are not zero; 8-bit scales have their least number for it.
    double zero = t.dtype() == DType::Float8E8M0FNU ? 0x1p-127 : 0;
    visit(0, data(), [&](const Element& e) {
      width_ = std::max(width_, e.exact.size());
      real.push_back(e.real == zero ? 0 : e.real);
      imaginary.push_back(e.imag);
    });
    if (!exact()) real_ = Formatter(real);
    if (is_complex(t.dtype())) imaginary_ = Formatter(imaginary);
  }

  std::string print(size_t indent) const {
    if (tensor_.numel() == 0) return "[]";
    return print(0, data(), indent);
  }

 private:
  const char* data() const { return tensor_.numel() ? static_cast<const char*>(tensor_.raw_data()) : nullptr; }
  bool exact() const { return !is_floating(tensor_.dtype()) && !is_complex(tensor_.dtype()); }
  int64_t step(size_t dim) const { return tensor_.strides()[dim] * tensor_.item_size(); }
  bool cut(size_t dim) const { return summarize_ && sizes_[dim] > 2 * print_options().edge_items; }

  /// The indices of a dimension that are shown; -1 stands for the dots.
  std::vector<int64_t> shown(size_t dim) const {
    std::vector<int64_t> out;
    int64_t n = sizes_[dim], edge = print_options().edge_items;
    bool dots = cut(dim);
    for (int64_t i = 0; i < (dots ? edge : n); ++i) out.push_back(i);
    if (dots) {
      out.push_back(-1);
      for (int64_t i = n - edge; i < n; ++i) out.push_back(i);
    }
    return out;
  }

  Element element(const char* at) const {
    Element e = read_element(at, tensor_.dtype());
    if (tensor_.is_conj()) e.imag = -e.imag;
    if (tensor_.is_neg()) e.real = -e.real, e.imag = -e.imag;
    return e;
  }

  template <class F> void visit(size_t dim, const char* at, const F& see) const {
    if (tensor_.numel() == 0) return;
    if (dim == sizes_.size()) return see(element(at));
    for (int64_t i : shown(dim))
      if (i >= 0) visit(dim + 1, at + i * step(dim), see);
  }

  std::string text(const char* at) const {
    Element e = element(at);
    if (exact()) return Formatter::padded(e.exact, width_);
    if (!is_complex(tensor_.dtype())) return real_(e.real);
    std::string imaginary = imaginary_(e.imag) + "j";
    imaginary.erase(0, imaginary.find_first_not_of(' '));
    return real_(e.real) + (imaginary[0] == '-' ? "" : "+") + imaginary;
  }

  std::string print(size_t dim, const char* at, size_t indent) const {
    if (dim == sizes_.size()) return text(at);
    if (dim + 1 == sizes_.size()) return print_vector(dim, at, indent);
    std::string separator = "," + std::string(sizes_.size() - dim - 1, '\n') + std::string(indent + 1, ' ');
    std::string out;
    for (int64_t i : shown(dim)) {
      if (!out.empty()) out += separator;
      out += i < 0 ? "..." : print(dim + 1, at + i * step(dim), indent + 1);
    }
    return "[" + out + "]";
  }

  std::string print_vector(size_t dim, const char* at, size_t indent) const {
    size_t length = (exact() ? width_ : real_.width()) + 2;
    if (is_complex(tensor_.dtype())) length += imaginary_.width() + 1;
    int64_t room = print_options().line_width - static_cast<int64_t>(indent);
    int64_t per_line = std::max<int64_t>(1, room / static_cast<int64_t>(length));
    std::string out;
    int64_t count = 0;
    for (int64_t i : shown(dim)) {
      if (count > 0) out += count % per_line == 0 ? ",\n" + std::string(indent + 1, ' ') : ", ";
      out += i < 0 ? " ..." : text(at + i * step(dim));
      ++count;
    }
    return "[" + out + "]";
  }

  const Tensor& tensor_;
  std::vector<int64_t> sizes_;
  bool summarize_;
  size_t width_ = 1;
  Formatter real_, imaginary_;
};

std::string size_fact(const Tensor& t) {
  std::string out = "size=(";
  for (int64_t i = 0; i < t.dim(); ++i) out += (i ? ", " : "") + to_string(t.sym_sizes()[static_cast<size_t>(i)]);
  return out + (t.dim() == 1 ? ",)" : ")");
}

/// A type that elements show by themselves.
bool is_usual(DType type) {
  DType usual_complex = default_dtype() == DType::Float64 ? DType::Complex128 : DType::Complex64;
  return type == default_dtype() || type == usual_complex || type == DType::Int64 || type == DType::Bool;
}

/// What the elements alone do not tell: device, size, dtype.
std::vector<std::string> own_facts(const Tensor& t, bool has_elements) {
  std::vector<std::string> facts;
  if (t.device().type != DeviceType::CPU) facts.push_back("device='" + to_string(t.device()) + "'");
  bool usual = is_usual(t.dtype());
  if (!has_elements) {
    facts.push_back(size_fact(t));
    usual = t.dtype() == default_dtype();
  } else if (t.numel() == 0) {
    if (t.dim() != 1) facts.push_back(size_fact(t));
    usual = t.dtype() == default_dtype();
  } else if (print_options().edge_items == 0) {
    facts.push_back(size_fact(t));
  }
  if (!usual) facts.push_back("dtype=" + to_string(t.dtype()));
  return facts;
}

}  // namespace

PrintOptions& print_options() {
  static PrintOptions options;
  return options;
}

std::string format_tensor(const Tensor& tensor, const std::string& head, const std::vector<std::string>& more) {
  size_t indent = head.size() + 1;
  bool has_elements = !tensor.is_fake() && tensor.storage() && tensor.storage()->has_data();
  std::string out = head + "(" + (has_elements ? Printer(tensor).print(indent) : "...");
  std::vector<std::string> facts = own_facts(tensor, has_elements);
  facts.insert(facts.end(), more.begin(), more.end());
  // PyTorch counts the last line so, the column of the line break included.
  size_t line_break = out.rfind('\n');
  size_t column = line_break == std::string::npos ? out.size() + 2 : out.size() - line_break + 1;
  for (const std::string& fact : facts) {
    if (static_cast<int64_t>(column + fact.size() + 2) > print_options().line_width) {
      out += ",\n" + std::string(indent, ' ') + fact;
      column = indent + fact.size();
    } else {
      out += ", " + fact;
      column += fact.size() + 2;
    }
  }
  return out + ")";
}

namespace {

/// "values=tensor([...])", without the type, which is said of the whole.
std::string part_text(const std::string& name, const Tensor& part, size_t indent) {
  std::string head = name + "=tensor(";
  if (part.numel() == 0) return head + "[], " + size_fact(part) + ")";
  return head + Printer(part).print(indent + head.size()) + ")";
}

/// The parts, then what is to be said of the whole; of a COO tensor that begins a line of its own.
std::string format_sparse(const Tensor& tensor, const std::string& fact) {
  constexpr size_t kIndent = sizeof("tensor(") - 1;
  const SparseParts& parts = sparse_parts(tensor);
  std::string margin = "\n" + std::string(kIndent, ' '), out = "tensor(";
  if (is_compressed(tensor.layout())) {
    bool rows = tensor.layout() == Layout::SparseCsr || tensor.layout() == Layout::SparseBsr;
    out += part_text(rows ? "crow_indices" : "ccol_indices", parts.compressed, kIndent) + "," + margin;
    out += part_text(rows ? "col_indices" : "row_indices", parts.indices, kIndent) + "," + margin;
    out += part_text("values", parts.values, kIndent) + ", ";
  } else {
    out += part_text("indices", parts.indices, kIndent) + "," + margin;
    out += part_text("values", parts.values, kIndent) + "," + margin;
  }
  std::vector<std::string> facts{size_fact(tensor), concat("nnz=", parts.indices.size(-1))};
  if (!is_usual(tensor.dtype())) facts.push_back(concat("dtype=", tensor.dtype()));
  facts.push_back(concat("layout=", tensor.layout()));
  if (!fact.empty()) facts.push_back(fact);
  size_t column = out.size() - out.rfind('\n') - 1;
  for (size_t i = 0; i < facts.size(); ++i) {
    bool fits = static_cast<int64_t>(column + facts[i].size() + 2) <= print_options().line_width;
    if (i > 0) out += fits ? ", " : "," + margin;
    if (!fits) column = kIndent;
    out += facts[i];
    column += facts[i].size() + 2;
  }
  return out + ")";
}

}  // namespace

std::string to_string(const Tensor& tensor) {
  if (!tensor.defined()) return "tensor(undefined)";
  if (is_sparse(tensor.layout()) && !tensor.is_fake()) return format_sparse(tensor, grad_fact(tensor));
  std::vector<std::string> facts;
  if (std::string fact = grad_fact(tensor); !fact.empty()) facts.push_back(std::move(fact));
  return format_tensor(tensor, tensor.is_fake() ? "FakeTensor" : "tensor", facts);
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << to_string(tensor); }
std::ostream& operator<<(std::ostream& out, IntArrayRef values) { return out << to_string(values); }
std::ostream& operator<<(std::ostream& out, SymIntArrayRef values) { return out << to_string(values); }
std::ostream& operator<<(std::ostream& out, SymInt value) { return out << to_string(value); }
std::ostream& operator<<(std::ostream& out, DType type) { return out << to_string(type); }
std::ostream& operator<<(std::ostream& out, Device device) { return out << to_string(device); }
std::ostream& operator<<(std::ostream& out, Layout layout) { return out << to_string(layout); }
std::ostream& operator<<(std::ostream& out, MemoryFormat format) { return out << to_string(format); }
std::ostream& operator<<(std::ostream& out, const Scalar& value) { return out << to_string(value); }

std::ostream& operator<<(std::ostream& out, const TensorOptions& options) {
  std::string given;
  auto add = [&](const char* name, auto value) { given += concat(given.empty() ? "" : ", ", name, "=", value); };
  if (options.dtype) add("dtype", *options.dtype);
  if (options.layout) add("layout", *options.layout);
  if (options.device) add("device", *options.device);
  if (options.pin_memory) add("pin_memory", *options.pin_memory ? "true" : "false");
  if (options.requires_grad) add("requires_grad", "true");
  return out << "TensorOptions(" << given << ")";
}

namespace UMBRA_API detail {
/// A tensor in one line, for debuggers (tools/gdb): they know this function by its name. Good until the next call.
const char* debug_text(const Tensor* tensor) {
  static PerThread<std::string> of_thread;
  std::string& text = *of_thread;
  if (!tensor->defined()) return "Tensor (undefined)";
  constexpr int64_t kShown = 8;
  text = concat("Tensor ", name(tensor->dtype()), tensor->sym_sizes(), " ", tensor->device());
  if (tensor->is_fake() || !tensor->storage() || !tensor->storage()->has_data() || tensor->is_symbolic())
    return text.c_str();
  int64_t count = std::min(tensor->numel(), kShown);
  Tensor first = alias_tensor(*tensor, {SymInt(count)}, {SymInt(1)}, tensor->sym_storage_offset());
  if (tensor->is_contiguous()) text += " " + Printer(first).print(0);
  if (tensor->numel() > kShown) text += " ...";
  return text.c_str();
}
}  // namespace detail

}  // namespace umbra
