// Text, and the functions that print and warn.
#include <algorithm>
#include <cstdio>

#include "jit/builtin_rules.h"
#include "umbra/core/warning.h"
#include "umbra/jit/interpreter.h"

namespace umbra::jit {
namespace {

bool starts_with_string(const Types& t, size_t least, size_t most) {
  return t.size() >= least && t.size() <= most && is_string(t[0]);
}
bool all_strings(const Types& t) { return std::all_of(t.begin(), t.end(), is_string); }
TypePtr text_to_text(const Types& t) { return t.size() == 1 && all_strings(t) ? string_type() : nullptr; }
TypePtr text_to_bool(const Types& t) { return t.size() == 1 && all_strings(t) ? bool_type() : nullptr; }
TypePtr texts_to_bool(const Types& t) { return t.size() == 2 && all_strings(t) ? bool_type() : nullptr; }
TypePtr join_texts(const Types& t) { return t.size() == 2 && all_strings(t) ? string_type() : nullptr; }
TypePtr strip_rule(const Types& t) { return t.size() <= 2 && !t.empty() && all_strings(t) ? string_type() : nullptr; }
TypePtr split_rule(const Types& t) {
  bool fits = starts_with_string(t, 1, 3) && (t.size() < 2 || is_string(t[1]) || t[1]->is(TypeKind::None)) &&
              (t.size() < 3 || is_int(t[2]));
  return fits ? list_type(string_type()) : nullptr;
}
TypePtr replace_rule(const Types& t) { return t.size() == 3 && all_strings(t) ? string_type() : nullptr; }
TypePtr join_rule(const Types& t) {
  return t.size() == 2 && is_string(t[0]) && is_list(t[1]) && is_string(t[1]->element()) ? string_type() : nullptr;
}
TypePtr text_item(const Types& t) { return t.size() == 2 && is_string(t[0]) && is_int(t[1]) ? string_type() : nullptr; }
TypePtr text_slice(const Types& t) { return starts_with_string(t, 1, 4) ? string_type() : nullptr; }
TypePtr format_rule(const Types& t) { return !t.empty() && is_string(t[0]) ? string_type() : nullptr; }
TypePtr str_rule(const Types& t) { return t.size() == 1 ? string_type() : nullptr; }
TypePtr ord_rule(const Types& t) { return t.size() == 1 && is_string(t[0]) ? int_type() : nullptr; }
TypePtr chr_rule(const Types& t) { return t.size() == 1 && is_int(t[0]) ? string_type() : nullptr; }
TypePtr print_rule(const Types&) { return none_type(); }
TypePtr letters_rule(const Types& t) { return t.size() == 1 && is_string(t[0]) ? list_type(string_type()) : nullptr; }

TypePtr found_rule(const Types& t) {  // text, part, start, end
  bool fits = t.size() >= 2 && t.size() <= 4 && is_string(t[0]) && is_string(t[1]) && (t.size() < 3 || is_int(t[2])) &&
              (t.size() < 4 || is_int(t[3]));
  return fits ? int_type() : nullptr;
}
TypePtr starts_rule(const Types& t) { return found_rule(t) ? bool_type() : nullptr; }
TypePtr padded_rule(const Types& t) {
  bool fits = (t.size() == 2 || t.size() == 3) && is_string(t[0]) && is_int(t[1]) && (t.size() < 3 || is_string(t[2]));
  return fits ? string_type() : nullptr;
}
TypePtr width_rule(const Types& t) {
  return t.size() == 2 && is_string(t[0]) && is_int(t[1]) ? string_type() : nullptr;
}
TypePtr tabs_rule(const Types& t) { return width_rule(t) ? string_type() : text_to_text(t); }
TypePtr partition_rule(const Types& t) {
  return t.size() == 2 && all_strings(t) ? tuple_type({string_type(), string_type(), string_type()}) : nullptr;
}
TypePtr lines_rule(const Types& t) {
  bool fits = starts_with_string(t, 1, 2) && (t.size() < 2 || is_bool(t[1]));
  return fits ? list_type(string_type()) : nullptr;
}

const std::string& text(const Value& v) { return v.to_string(); }

/// The part of a text that `start` and `end` leave, and where it begins.
std::pair<std::string_view, int64_t> searched(const Value* a, size_t n) {
  std::string_view all = text(a[0]);
  auto size = static_cast<int64_t>(all.size());
  auto bring = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  int64_t start = n > 2 ? bring(a[2].to_int()) : 0, end = n > 3 ? bring(a[3].to_int()) : size;
  return {all.substr(static_cast<size_t>(start), static_cast<size_t>(std::max<int64_t>(end - start, 0))), start};
}

int64_t position(const Value* a, size_t n, bool last) {
  auto [part, start] = searched(a, n);
  size_t at = last ? part.rfind(text(a[1])) : part.find(text(a[1]));
  return at == std::string_view::npos ? -1 : static_cast<int64_t>(at) + start;
}

Value position_or_fail(const Value* a, size_t n, bool last) {
  int64_t at = position(a, n, last);
  check<ValueError>(at >= 0, "ValueError: substring not found");
  return Value(at);
}

/// Room to the left and right of a text, filled up to a width.
Value padded(const Value* a, size_t n, double share_left) {
  const std::string& s = text(a[0]);
  std::string fill = n > 2 ? text(a[2]) : " ";
  check<TypeError>(fill.size() == 1, "TypeError: The fill character must be exactly one character long");
  int64_t room = std::max<int64_t>(a[1].to_int() - static_cast<int64_t>(s.size()), 0);
  auto left = static_cast<int64_t>(static_cast<double>(room) * share_left);
  return Value(std::string(static_cast<size_t>(left), fill[0]) + s +
               std::string(static_cast<size_t>(room - left), fill[0]));
}

Value partitioned(const Value* a, bool last) {
  const std::string &s = text(a[0]), &by = text(a[1]);
  size_t at = last ? s.rfind(by) : s.find(by);
  if (at == std::string::npos)
    return last ? Value(std::vector<Value>{Value(""), Value(""), Value(s)})
                : Value(std::vector<Value>{Value(s), Value(""), Value("")});
  return Value(std::vector<Value>{Value(s.substr(0, at)), Value(by), Value(s.substr(at + by.size()))});
}

Value lines_of(const Value* a, size_t n) {
  bool keep = n > 1 && a[1].to_bool();
  std::vector<Value> out;
  std::string_view rest = text(a[0]);
  while (!rest.empty()) {
    size_t end = std::min(rest.find('\n'), rest.size());
    out.emplace_back(std::string(rest.substr(0, end)));
    if (keep && end < rest.size()) out.emplace_back("\n");
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return make_list(string_type(), std::move(out));
}

/// Words begin with a capital.
std::string titled(const std::string& s) {
  std::string out = s;
  bool inside = false;
  for (char& c : out) {
    bool letter = ::isalpha(static_cast<unsigned char>(c)) != 0;
    if (letter) c = static_cast<char>(inside ? ::tolower(c) : ::toupper(c));
    inside = letter;
  }
  return out;
}

std::string without_tabs(const std::string& s, int64_t width) {
  std::string out;
  size_t column = 0;
  for (char c : s) {
    if (c == '\t' && width > 0) {
      size_t more = static_cast<size_t>(width) - column % static_cast<size_t>(width);
      out.append(more, ' ');
      column += more;
    } else if (c != '\t') {
      out += c;
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    }
  }
  return out;
}

bool is_identifier(const std::string& s) {
  if (s.empty() || ::isdigit(static_cast<unsigned char>(s[0]))) return false;
  return std::all_of(s.begin(), s.end(), [](unsigned char c) { return ::isalnum(c) || c == '_'; });
}

template <class F> Value mapped(const Value& v, F&& f) {
  std::string out = text(v);
  std::transform(out.begin(), out.end(), out.begin(), f);
  return Value(std::move(out));
}
template <class F> Value all_characters(const Value& v, F&& f) {
  const std::string& s = text(v);
  return Value(!s.empty() &&
               std::all_of(s.begin(), s.end(), [&](char c) { return f(static_cast<unsigned char>(c)) != 0; }));
}

/// Parts from the end on.
Value split_from_the_end(const Value& v, const std::string& by, int64_t most) {
  check<ValueError>(!by.empty(), "empty separator");
  std::vector<Value> out;
  std::string_view rest = text(v);
  size_t at;
  while (most-- != 0 && (at = rest.rfind(by)) != std::string_view::npos) {
    out.insert(out.begin(), Value(std::string(rest.substr(at + by.size()))));
    rest = rest.substr(0, at);
  }
  out.insert(out.begin(), Value(std::string(rest)));
  return make_list(string_type(), std::move(out));
}

Value split(const Value& v, const Value& separator, int64_t most) {
  std::vector<Value> out;
  std::string_view rest = text(v);
  if (separator.is_none()) {
    const char* space = " \t\n\r\f\v";
    while (true) {
      size_t start = rest.find_first_not_of(space);
      if (start == std::string_view::npos) break;
      rest.remove_prefix(start);
      size_t end = most == 0 ? std::string_view::npos : rest.find_first_of(space);
      --most;
      out.emplace_back(std::string(rest.substr(0, end)));
      if (end == std::string_view::npos) break;
      rest.remove_prefix(end);
    }
    return make_list(string_type(), std::move(out));
  }
  const std::string& by = text(separator);
  check<ValueError>(!by.empty(), "empty separator");
  size_t at;
  while (most-- != 0 && (at = rest.find(by)) != std::string_view::npos) {
    out.emplace_back(std::string(rest.substr(0, at)));
    rest.remove_prefix(at + by.size());
  }
  out.emplace_back(std::string(rest));
  return make_list(string_type(), std::move(out));
}

std::string stripped(const Value* a, size_t n, bool left, bool right) {
  std::string_view s = text(a[0]);
  std::string set = n == 2 ? text(a[1]) : " \t\n\r\f\v";
  if (left) s.remove_prefix(std::min(s.find_first_not_of(set), s.size()));
  if (right) s = s.substr(0, s.find_last_not_of(set) + 1);
  return std::string(s);
}

/// "{} and {}".format(a, b)
std::string formatted(Value* a, size_t n) {
  const std::string& pattern = text(a[0]);
  std::string out;
  size_t next = 1;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern.compare(i, 2, "{}") == 0) {
      check(next < n, "Too few arguments for format string: ", pattern);
      out += to_text(a[next++]);
      ++i;
    } else {
      out += pattern[i];
    }
  }
  return out;
}

std::string kind_of(const Value& v) { return v.is_string() ? "String" : type_of(v)->annotation(); }

void check_number(const Value& v, char specifier) {
  check(v.is_scalar(), "%", specifier, " requires a number for formatting, but got ", kind_of(v));
}

/// "%s has %d" % (a, b)
std::string percent_formatted(Value* a, size_t n) {
  const std::string& pattern = text(a[0]);
  std::vector<Value> values = n == 2 && a[1].is_list() ? a[1].list().vec() : std::vector<Value>(a + 1, a + n);
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      out += pattern[i];
      continue;
    }
    check(++i < pattern.size(), "Incomplete format specifier");
    if (pattern[i] == '%') {
      out += '%';
      continue;
    }
    check(next < values.size(), "Too few arguments for format string");
    const Value& v = values[next++];
    char buffer[512];  // the longest double
    switch (pattern[i]) {
      case 's': out += to_text(v); break;
      case 'd':
      case 'i':
        check_number(v, pattern[i]);
        out += std::to_string(v.is_double() ? static_cast<int64_t>(v.to_double()) : v.to_int());
        break;
      case 'e':
      case 'E':
      case 'f':
      case 'F': {
        check_number(v, pattern[i]);
        const char* form = pattern[i] == 'e' ? "%e" : pattern[i] == 'E' ? "%E" : "%f";
        std::snprintf(buffer, sizeof buffer, form, v.to_double());
        out += buffer;
        break;
      }
      case 'c':
        check(v.is_int() || (v.is_string() && text(v).size() == 1),
              "%c requires an int or char for formatting, but got ", kind_of(v));
        out += v.is_int() ? std::string(1, static_cast<char>(v.to_int())) : text(v);
        break;
      default: fail("The specifier %", pattern[i], " is not supported in TorchScript format strings");
    }
  }
  check(next == values.size(), "Too many arguments for format string");
  return out;
}

}  // namespace

const std::vector<Builtin> kStringBuiltins = {
    {"aten::add", join_texts, [](Value* a, size_t) { return Value(text(a[0]) + text(a[1])); }},
    {"aten::eq", texts_to_bool, [](Value* a, size_t) { return Value(text(a[0]) == text(a[1])); }},
    {"aten::ne", texts_to_bool, [](Value* a, size_t) { return Value(text(a[0]) != text(a[1])); }},
    {"aten::lt", texts_to_bool, [](Value* a, size_t) { return Value(text(a[0]) < text(a[1])); }},
    {"aten::gt", texts_to_bool, [](Value* a, size_t) { return Value(text(a[0]) > text(a[1])); }},
    {"aten::le", texts_to_bool, [](Value* a, size_t) { return Value(text(a[0]) <= text(a[1])); }},
    {"aten::ge", texts_to_bool, [](Value* a, size_t) { return Value(text(a[0]) >= text(a[1])); }},
    {"aten::__contains__", texts_to_bool,
     [](Value* a, size_t) { return Value(text(a[0]).find(text(a[1])) != std::string::npos); }},
    {"aten::__getitem__", text_item,
     [](Value* a, size_t) {
       int64_t i = wrapped_index(a[1].to_int(), text(a[0]).size(), "string index out of range");
       return Value(std::string(1, text(a[0])[static_cast<size_t>(i)]));
     }},
    {"aten::slice", text_slice,
     [](Value* a, size_t n) {
       std::string out;
       auto bound = [&](size_t i) { return n > i ? a[i] : Value(); };
       slice_range(bound(1), bound(2), bound(3), text(a[0]).size()).each([&](size_t i) { out += text(a[0])[i]; });
       return Value(out);
     }},
    {"aten::list", letters_rule,
     [](Value* a, size_t) {
       std::vector<Value> out;
       for (char c : text(a[0])) out.emplace_back(std::string(1, c));
       return make_list(string_type(), std::move(out));
     }},
    {"aten::str", str_rule, [](Value* a, size_t) { return Value(to_text(a[0])); }},
    {"aten::format", format_rule, [](Value* a, size_t n) { return Value(formatted(a, n)); }},
    {"aten::percentFormat", format_rule, [](Value* a, size_t n) { return Value(percent_formatted(a, n)); }},
    {"aten::upper", text_to_text, [](Value* a, size_t) { return mapped(a[0], ::toupper); }},
    {"aten::lower", text_to_text, [](Value* a, size_t) { return mapped(a[0], ::tolower); }},
    {"aten::capitalize", text_to_text,
     [](Value* a, size_t) {
       std::string out = text(mapped(a[0], ::tolower));
       if (!out.empty()) out[0] = static_cast<char>(::toupper(out[0]));
       return Value(out);
     }},
    {"aten::isdigit", text_to_bool, [](Value* a, size_t) { return all_characters(a[0], ::isdigit); }},
    {"aten::isalpha", text_to_bool, [](Value* a, size_t) { return all_characters(a[0], ::isalpha); }},
    {"aten::isalnum", text_to_bool, [](Value* a, size_t) { return all_characters(a[0], ::isalnum); }},
    {"aten::isspace", text_to_bool, [](Value* a, size_t) { return all_characters(a[0], ::isspace); }},
    {"aten::isupper", text_to_bool, [](Value* a, size_t) { return all_characters(a[0], ::isupper); }},
    {"aten::islower", text_to_bool, [](Value* a, size_t) { return all_characters(a[0], ::islower); }},
    {"aten::isdecimal", text_to_bool, [](Value* a, size_t) { return all_characters(a[0], ::isdigit); }},
    {"aten::isnumeric", text_to_bool, [](Value* a, size_t) { return all_characters(a[0], ::isdigit); }},
    {"aten::isprintable", text_to_bool,
     [](Value* a, size_t) { return Value(text(a[0]).empty() || all_characters(a[0], ::isprint).to_bool()); }},
    {"aten::isidentifier", text_to_bool, [](Value* a, size_t) { return Value(is_identifier(text(a[0]))); }},
    {"aten::istitle", text_to_bool,
     [](Value* a, size_t) {
       const std::string& s = text(a[0]);
       return Value(std::any_of(s.begin(), s.end(), [](unsigned char c) { return ::isalpha(c); }) && titled(s) == s);
     }},
    {"aten::title", text_to_text, [](Value* a, size_t) { return Value(titled(text(a[0]))); }},
    {"aten::swapcase", text_to_text,
     [](Value* a, size_t) {
       return mapped(a[0], [](unsigned char c) { return ::isupper(c) ? ::tolower(c) : ::toupper(c); });
     }},
    {"aten::expandtabs", tabs_rule,
     [](Value* a, size_t n) { return Value(without_tabs(text(a[0]), n > 1 ? a[1].to_int() : 8)); }},
    {"aten::center", padded_rule, [](Value* a, size_t n) { return padded(a, n, 0.5); }},
    {"aten::ljust", padded_rule, [](Value* a, size_t n) { return padded(a, n, 0); }},
    {"aten::rjust", padded_rule, [](Value* a, size_t n) { return padded(a, n, 1); }},
    {"aten::zfill", width_rule,
     [](Value* a, size_t) {
       std::string s = text(a[0]);
       size_t sign = !s.empty() && (s[0] == '-' || s[0] == '+') ? 1 : 0;
       auto width = static_cast<size_t>(std::max<int64_t>(a[1].to_int(), 0));
       if (s.size() < width) s.insert(sign, std::string(width - s.size(), '0'));
       return Value(s);
     }},
    {"aten::partition", partition_rule, [](Value* a, size_t) { return partitioned(a, false); }},
    {"aten::rpartition", partition_rule, [](Value* a, size_t) { return partitioned(a, true); }},
    {"aten::splitlines", lines_rule, [](Value* a, size_t n) { return lines_of(a, n); }},
    {"aten::startswith", starts_rule,
     [](Value* a, size_t n) { return Value(searched(a, n).first.starts_with(text(a[1]))); }},
    {"aten::endswith", starts_rule,
     [](Value* a, size_t n) { return Value(searched(a, n).first.ends_with(text(a[1]))); }},
    {"aten::find", found_rule, [](Value* a, size_t n) { return Value(position(a, n, false)); }},
    {"aten::rfind", found_rule, [](Value* a, size_t n) { return Value(position(a, n, true)); }},
    {"aten::index", found_rule, [](Value* a, size_t n) { return position_or_fail(a, n, false); }},
    {"aten::rindex", found_rule, [](Value* a, size_t n) { return position_or_fail(a, n, true); }},
    {"aten::rsplit", split_rule,
     [](Value* a, size_t n) {
       return split_from_the_end(a[0], n > 1 && !a[1].is_none() ? text(a[1]) : " ", n > 2 ? a[2].to_int() : -1);
     }},
    {"aten::count", found_rule,
     [](Value* a, size_t n) {
       int64_t count = 0;
       std::string_view s = searched(a, n).first;
       const std::string& part = text(a[1]);
       if (part.empty()) return Value(static_cast<int64_t>(s.size()) + 1);
       for (size_t at = 0; (at = s.find(part, at)) != std::string_view::npos; at += part.size()) ++count;
       return Value(count);
     }},
    {"aten::strip", strip_rule, [](Value* a, size_t n) { return Value(stripped(a, n, true, true)); }},
    {"aten::lstrip", strip_rule, [](Value* a, size_t n) { return Value(stripped(a, n, true, false)); }},
    {"aten::rstrip", strip_rule, [](Value* a, size_t n) { return Value(stripped(a, n, false, true)); }},
    {"aten::replace", replace_rule,
     [](Value* a, size_t) {
       std::string out = text(a[0]);
       const std::string &from = text(a[1]), &to = text(a[2]);
       check<NotImplementedError>(!from.empty(), "TorchScript: str.replace of an empty text");
       for (size_t at = 0; (at = out.find(from, at)) != std::string::npos; at += to.size())
         out.replace(at, from.size(), to);
       return Value(out);
     }},
    {"aten::split", split_rule,
     [](Value* a, size_t n) { return split(a[0], n > 1 ? a[1] : Value(), n > 2 ? a[2].to_int() : -1); }},
    {"aten::join", join_rule,
     [](Value* a, size_t) {
       std::string out;
       auto& items = items_of(a[1]);
       for (size_t i = 0; i < items.size(); ++i) out += (i ? text(a[0]) : "") + text(items[i]);
       return Value(out);
     }},
    {"aten::ord", ord_rule,
     [](Value* a, size_t) {
       check<TypeError>(text(a[0]).size() == 1, "String for ord() must be 1 character");
       return Value(static_cast<int64_t>(static_cast<unsigned char>(text(a[0])[0])));
     }},
    {"aten::chr", chr_rule, [](Value* a, size_t) { return Value(std::string(1, static_cast<char>(a[0].to_int()))); }},
    {"prim::Print", print_rule,
     [](Value* a, size_t n) {
       std::string out;
       for (size_t i = 0; i < n; ++i) out += (i ? " " : "") + to_text(a[i]);
       print_line(out + "\n");
       return Value();
     }},
    {"aten::warn", print_rule, [](Value* a, size_t) { return warn(to_text(a[0])), Value(); }},
};

}  // namespace umbra::jit
