#include "umbra/dispatch/schema.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <limits>

#include "umbra/core/dtype_number.h"

namespace umbra {

namespace {

using Base = SchemaType::Base;

struct BaseName {
  const char* name;
  Base base;
};
constexpr BaseName kBases[] = {{"Tensor", Base::Tensor},
                               {"int", Base::Int},
                               {"SymInt", Base::SymInt},
                               {"float", Base::Float},
                               {"SymFloat", Base::SymFloat},
                               {"bool", Base::Bool},
                               {"SymBool", Base::SymBool},
                               {"Scalar", Base::Scalar},
                               {"complex", Base::Complex},
                               {"str", Base::String},
                               {"Device", Base::Device},
                               {"ScalarType", Base::DType},
                               {"Layout", Base::Layout},
                               {"MemoryFormat", Base::MemoryFormat},
                               {"Generator", Base::Generator},
                               {"Storage", Base::Storage},
                               {"Any", Base::Any},
                               {"Callable", Base::Callable}};

/// A cursor over the text; every error shows where it stands.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Schema parse() {
    Schema schema;
    parse_name(schema);
    expect('(');
    bool keyword_only = false;
    while (!accept(')')) {
      if (accept('*')) keyword_only = true;
      else schema.arguments.push_back(argument(keyword_only));
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    expect('-');
    expect('>');
    if (accept_no_results()) return schema;
    if (accept('(')) {
      while (!accept(')')) {
        schema.returns.push_back(result());
        if (!accept(',')) {
          expect(')');
          break;
        }
      }
    } else {
      schema.returns.push_back(result());
    }
    skip_space();
    if (at_ != text_.size()) error("unexpected text after the returns");
    return schema;
  }

 private:
  void parse_name(Schema& schema) {
    std::string first = word();
    if (text_.substr(at_, 2) == "::") {
      at_ += 2;
      schema.space = first;
      first = word();
    }
    schema.name = first;
    if (peek() == '.') {
      ++at_;
      schema.overload = word();
      if (schema.overload == "default") schema.overload.clear();
    }
  }

  /// `-> None`, as Python's functions write it, is `-> ()`.
  bool accept_no_results() {
    skip_space();
    std::string_view rest = text_.substr(at_);
    rest = rest.substr(0, rest.find_last_not_of(" \t\n") + 1);
    return rest == "None" || rest == "(None)";
  }

  /// `(a!)`, `(a -> *)`, or `!` alone, which is a set that nothing else belongs to.
  void aliases(AliasInfo& alias) {
    if (accept('!')) {
      alias = {"$" + std::to_string(unnamed_sets_++), true};
    } else if (accept_here('(')) {
      while (peek() != ')' && at_ < text_.size()) {
        char c = text_[at_++];
        if (c == '!') alias.write = true;
        else if (c == '-' || c == '|') continue;
        else if (!std::isspace(static_cast<unsigned char>(c)) && c != '>') alias.set += c;
      }
      expect(')');
    }
  }

  SchemaType type(AliasInfo& alias) {
    SchemaType out;
    std::string base = word();
    bool known = false;
    for (const BaseName& b : kBases)
      if (base == b.name) out.base = b.base, known = true;
    if (!known) error("unknown type '" + base + "'");
    aliases(alias);
    bool optional = accept_here('?');
    if (accept_here('[')) {
      out.list = true;
      out.element_optional = optional;
      if (!accept(']')) {
        out.list_size = static_cast<int>(number().to_int());
        expect(']');
      }
      aliases(alias);
      optional = accept_here('?');
    }
    out.optional = optional;
    return out;
  }

  SchemaArgument argument(bool keyword_only) {
    SchemaArgument out;
    out.type = type(out.alias);
    out.name = word();
    out.keyword_only = keyword_only;
    if (accept('=')) out.default_value = default_value(out.type);
    if (out.type.base == Base::Tensor && out.default_value && !out.default_value->is_none() && !out.type.list)
      error("a tensor has no default but None");
    return out;
  }

  SchemaReturn result() {
    SchemaReturn out;
    out.type = type(out.alias);
    skip_space();
    if (std::isalpha(static_cast<unsigned char>(peek())) || peek() == '_') out.name = word();
    return out;
  }

  Value default_value(const SchemaType& type) {
    skip_space();
    if (peek() == '[') return default_list(type);
    if (peek() == '\'' || peek() == '"') return type.base == Base::Device ? Value(Device(quoted())) : Value(quoted());
    if (peek() == '-' || peek() == '.' || std::isdigit(static_cast<unsigned char>(peek()))) {
      Value v = number();
      if (type.base == Base::DType && !type.list) {
        DType dtype = dtype_of_number(v.to_int());
        if (dtype == DType::Undefined) error("no type of elements has the number " + std::to_string(v.to_int()));
        return dtype;
      }
      if (type.list && type.base != Base::Float) return std::vector<int64_t>(std::max(type.list_size, 1), v.to_int());
      if (type.base == Base::Float && !type.list) return v.to_double();
      return v;
    }
    std::string name = word();
    if (name == "None") return {};
    if (name == "True") return true;
    if (name == "False") return false;
    if (name == "Mean") return 1;
    if (name == "Sum") return 2;
    if (name == "inf") return std::numeric_limits<double>::infinity();
    if (name == "contiguous_format") return MemoryFormat::Contiguous;
    if (name == "preserve_format") return MemoryFormat::Preserve;
    if (name == "long") return DType::Int64;
    if (name == "strided") return Layout::Strided;
    if (DType dtype = dtype_from_name(name); type.base == Base::DType && dtype != DType::Undefined) return dtype;
    error("unknown default '" + name + "'");
  }

  Value default_list(const SchemaType& type) {
    expect('[');
    std::vector<Value> items;
    while (!accept(']')) {
      SchemaType element = type;
      element.list = false;
      items.push_back(default_value(element));
      accept(',');
    }
    if (type.base == Base::Bool) {
      std::vector<bool> bits;
      for (Value& v : items) bits.push_back(v.to_bool());
      return bits;
    }
    if (type.base == Base::Int || type.base == Base::SymInt) {
      std::vector<int64_t> ints;
      for (Value& v : items) ints.push_back(v.to_int());
      return ints;
    }
    return items;
  }

  Value number() {
    skip_space();
    size_t start = at_;
    bool real = false;
    if (peek() == '-') ++at_;
    while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '.' ||
           (peek() == '-' && text_[at_ - 1] == 'e')) {
      real |= peek() == '.' || peek() == 'e';
      ++at_;
    }
    std::string text(text_.substr(start, at_ - start));
    try {
      if (real) return std::stod(text);
      return static_cast<int64_t>(std::stoll(text));
    } catch (const std::exception&) {
      error("not a number: '" + text + "'");
    }
  }

  std::string quoted() {
    char quote = text_[at_++];
    size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) error("string without an end");
    std::string out(text_.substr(at_, end - at_));
    at_ = end + 1;
    return out;
  }

  std::string word() {
    skip_space();
    size_t start = at_;
    while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '_') ++at_;
    if (start == at_) error("expected a name");
    return std::string(text_.substr(start, at_ - start));
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() {
    while (std::isspace(static_cast<unsigned char>(peek()))) ++at_;
  }
  bool accept_here(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  bool accept(char c) {
    skip_space();
    return accept_here(c);
  }
  void expect(char c) {
    if (!accept(c)) error(std::string("expected '") + c + "'");
  }
  [[noreturn]] void error(const std::string& what) const {
    fail("schema: ", what, " at position ", at_, " of \"", std::string(text_), "\"");
  }

  std::string_view text_;
  size_t at_ = 0;
  int unnamed_sets_ = 0;
};

// Floats as C++ streams write them with all digits: `0.`, `0.5`, `1.0000000000000001e-05`.
std::string float_text(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.17g", value);
  std::string out = text;
  return out.find_first_not_of("-0123456789") == std::string::npos ? out + "." : out;
}

std::string default_text(const SchemaType& type, const Value& v) {
  // `int[2] stride=1` stands for a list of equal numbers; symbols are written out.
  if (type.base == Base::Int && v.is_int_list()) {
    SymIntArrayRef numbers = v.int_list();
    bool equal = std::all_of(numbers.begin(), numbers.end(), [&](const SymInt& n) { return n.same(numbers[0]); });
    if (numbers.size() > 1 && equal) return to_string(numbers[0]);
  }
  switch (v.tag()) {
    case Value::Tag::String: return "\"" + v.to_string() + "\"";
    case Value::Tag::Double: return float_text(v.to_double());
    case Value::Tag::Device: return to_string(v.to_device());
    // TorchScript knows these as numbers.
    case Value::Tag::DType: return std::to_string(number_of(v.to_dtype()));
    case Value::Tag::Layout: return std::to_string(static_cast<int>(v.to_layout()));
    case Value::Tag::MemoryFormat: return std::to_string(static_cast<int>(v.to_memory_format()));
    default: return to_string(v);
  }
}

}  // namespace

std::string Schema::full_name() const { return space + "::" + name + (overload.empty() ? "" : "." + overload); }

bool Schema::is_mutable() const {
  for (const SchemaArgument& a : arguments)
    if (a.alias.write) return true;
  return false;
}

bool Schema::is_inplace() const {
  return !arguments.empty() && arguments[0].alias.write && !arguments[0].keyword_only && name.back() == '_' &&
         !name.ends_with("__");
}

bool Schema::has_out() const {
  for (const SchemaArgument& a : arguments)
    if (a.is_out()) return true;
  return false;
}

bool Schema::is_view() const {
  if (is_mutable()) return false;
  for (const SchemaReturn& r : returns)
    if (!r.alias.set.empty()) return true;
  return false;
}

int Schema::find(std::string_view argument) const {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name == argument) return static_cast<int>(i);
  return -1;
}

Schema parse_schema(std::string_view text) { return Parser(text).parse(); }

std::string to_string(const SchemaType& type, const AliasInfo& alias) {
  std::string out;
  for (const BaseName& b : kBases)
    if (b.base == type.base) out = b.name;
  if (!alias.set.empty() || alias.write) {
    size_t star = alias.set.find('*');
    std::string set = star == std::string::npos ? alias.set : alias.set.substr(0, star) + " -> *";
    out += "(" + set + (alias.write ? "!" : "") + (set.starts_with('$') ? " -> " : "") + ")";
  }
  if (type.list) {
    if (type.element_optional) out += "?";
    out += type.list_size ? "[" + std::to_string(type.list_size) + "]" : "[]";
  }
  return type.optional ? out + "?" : out;
}

std::string to_string(const Schema& schema) {
  std::string out = schema.full_name() + "(";
  bool star = false, first = true;
  for (const SchemaArgument& a : schema.arguments) {
    if (!first) out += ", ";
    first = false;
    if (a.keyword_only && !star) {
      out += "*, ";
      star = true;
    }
    out += to_string(a.type, a.alias) + " " + a.name;
    if (a.default_value) out += "=" + default_text(a.type, *a.default_value);
  }
  out += ") -> ";
  auto one = [](const SchemaReturn& r) { return to_string(r.type, r.alias) + (r.name.empty() ? "" : " " + r.name); };
  if (schema.returns.size() == 1 && schema.returns[0].name.empty()) return out + one(schema.returns[0]);
  out += "(";
  for (size_t i = 0; i < schema.returns.size(); ++i) out += (i ? ", " : "") + one(schema.returns[i]);
  return out + ")";
}

}  // namespace umbra
