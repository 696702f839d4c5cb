// Text, and the functions that print and warn.
#include <algorithm>
#include <cstdio>

#include "jit/builtin_rules.h"
#include "umbra/core/warning.h"

namespace umbra::jit {
namespace {

bool starts_with_string(const Types& t, size_t least, size_t most) {
  return t.size() >= least && t.size() <= most && is_string(t[0]);
}
bool all_strings(const Types& t) { return std::all_of(t.begin(), t.end(), is_string); }
TypePtr text_to_text(const Types& t) { return t.size() == 1 && all_strings(t) ? string_type() : nullptr; }
TypePtr text_to_bool(const Types& t) { return t.size() == 1 && all_strings(t) ? bool_type() : nullptr; }
TypePtr texts_to_bool(const Types& t) { return t.size() == 2 && all_strings(t) ? bool_type() : nullptr; }
TypePtr texts_to_int(const Types& t) { return t.size() == 2 && all_strings(t) ? int_type() : nullptr; }
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
TypePtr text_slice(const Types& t) { return t.size() == 4 && is_string(t[0]) ? string_type() : nullptr; }
TypePtr format_rule(const Types& t) { return !t.empty() && is_string(t[0]) ? string_type() : nullptr; }
TypePtr str_rule(const Types& t) { return t.size() == 1 ? string_type() : nullptr; }
TypePtr ord_rule(const Types& t) { return t.size() == 1 && is_string(t[0]) ? int_type() : nullptr; }
TypePtr chr_rule(const Types& t) { return t.size() == 1 && is_int(t[0]) ? string_type() : nullptr; }
TypePtr print_rule(const Types&) { return none_type(); }
TypePtr letters_rule(const Types& t) { return t.size() == 1 && is_string(t[0]) ? list_type(string_type()) : nullptr; }

const std::string& text(const Value& v) { return v.to_string(); }

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
    if (pattern.compare(i, 2, "{{") == 0 || pattern.compare(i, 2, "}}") == 0) {
      out += pattern[i++];
    } else if (pattern.compare(i, 2, "{}") == 0) {
      check(next < n, "Too few arguments for format string: ", pattern);
      out += to_text(a[next++]);
      ++i;
    } else {
      out += pattern[i];
    }
  }
  check(next == n, "Too many arguments for format string: ", pattern);
  return out;
}

/// "%s has %d" % (a, b)
std::string percent_formatted(Value* a, size_t n) {
  const std::string& pattern = text(a[0]);
  std::string out;
  size_t next = 1;
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
    check(next < n, "Too few arguments for format string");
    const Value& v = a[next++];
    char buffer[64];
    switch (pattern[i]) {
      case 's': out += to_text(v); break;
      case 'd':
      case 'i': out += std::to_string(v.is_double() ? static_cast<int64_t>(v.to_double()) : v.to_int()); break;
      case 'e':
      case 'f':
      case 'g':
        std::snprintf(buffer, sizeof buffer, pattern[i] == 'e' ? "%e" : pattern[i] == 'f' ? "%f" : "%g", v.to_double());
        out += buffer;
        break;
      case 'c': out += v.is_int() ? std::string(1, static_cast<char>(v.to_int())) : text(v); break;
      default: fail("The specifier %", pattern[i], " is not supported in TorchScript format strings");
    }
  }
  check(next == n, "Too many arguments for format string");
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
     [](Value* a, size_t) {
       std::string out;
       slice_range(a[1], a[2], a[3], text(a[0]).size()).each([&](size_t i) { out += text(a[0])[i]; });
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
    {"aten::startswith", texts_to_bool, [](Value* a, size_t) { return Value(text(a[0]).starts_with(text(a[1]))); }},
    {"aten::endswith", texts_to_bool, [](Value* a, size_t) { return Value(text(a[0]).ends_with(text(a[1]))); }},
    {"aten::find", texts_to_int,
     [](Value* a, size_t) {
       size_t at = text(a[0]).find(text(a[1]));
       return Value(at == std::string::npos ? int64_t{-1} : static_cast<int64_t>(at));
     }},
    {"aten::count", texts_to_int,
     [](Value* a, size_t) {
       int64_t count = 0;
       const std::string &s = text(a[0]), &part = text(a[1]);
       if (part.empty()) return Value(static_cast<int64_t>(s.size()) + 1);
       for (size_t at = 0; (at = s.find(part, at)) != std::string::npos; at += part.size()) ++count;
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
       std::puts(out.c_str());
       return Value();
     }},
    {"aten::warn", print_rule, [](Value* a, size_t) { return warn(to_text(a[0])), Value(); }},
};

}  // namespace umbra::jit
