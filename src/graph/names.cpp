#include "graph/names.h"

#include <charconv>
#include <unordered_map>
#include <unordered_set>

#include "umbra/graph/graph.h"

namespace umbra::fx {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_word(char c) { return is_lower(c) || is_upper(c) || is_digit(c) || c == '_'; }

/// Replaces each run of characters that no identifier may have by one underscore.
std::string legal_identifier(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_word(text[i])) out += text[i];
    else if (i == 0 || is_word(text[i - 1])) out += '_';
  }
  if (out.empty()) return "_unnamed";
  return is_digit(out[0]) ? "_" + out : out;
}

struct NumberedName {
  std::string_view base;
  int64_t number = -1;  // -1: none
};

/// "add_12" -> "add" and 12.
NumberedName split_number(std::string_view name) {
  size_t digits = name.size();
  while (digits > 0 && is_digit(name[digits - 1])) --digits;
  if (digits == name.size() || name.size() - digits > 15 || digits < 2 || name[digits - 1] != '_') return {name};
  NumberedName result{name.substr(0, digits - 1), 0};
  std::from_chars(name.data() + digits, name.data() + name.size(), result.number);
  return result;
}

}  // namespace

bool is_identifier(std::string_view text) {
  if (text.empty() || is_digit(text[0])) return false;
  for (char c : text)
    if (!is_word(c) && static_cast<unsigned char>(c) < 0x80) return false;
  return true;
}

namespace {

/// Words that cannot be names, and names that generated code imports.
bool is_word_of_code(std::string_view name) {
  static const std::unordered_set<std::string_view> kNames = {
      "False", "None",     "True",  "and",    "as",        "assert", "async",  "await",    "break",
      "class", "continue", "def",   "del",    "elif",      "else",   "except", "finally",  "for",
      "from",  "global",   "if",    "import", "in",        "is",     "lambda", "nonlocal", "not",
      "or",    "pass",     "raise", "return", "try",       "while",  "with",   "yield",    "inf",
      "nan",   "NoneType", "torch", "device", "fx_pytree", "pytree"};
  return kNames.contains(name);
}

}  // namespace

bool is_reserved_name(std::string_view name) {
  static const std::unordered_set<std::string_view> kNames = {
      // builtin functions and types
      "__build_class__", "__debug__", "__doc__", "__import__", "__loader__", "__name__", "__package__", "__spec__",
      "abs", "aiter", "all", "anext", "any", "ascii", "bin", "bool", "breakpoint", "bytearray", "bytes", "callable",
      "chr", "classmethod", "compile", "complex", "copyright", "credits", "delattr", "dict", "dir", "divmod",
      "enumerate", "eval", "exec", "exit", "filter", "float", "format", "frozenset", "getattr", "globals", "hasattr",
      "hash", "help", "hex", "id", "input", "int", "isinstance", "issubclass", "iter", "len", "license", "list",
      "locals", "map", "max", "memoryview", "min", "next", "object", "oct", "open", "ord", "pow", "print", "property",
      "quit", "range", "repr", "reversed", "round", "set", "setattr", "slice", "sorted", "staticmethod", "str", "sum",
      "super", "tuple", "type", "vars", "zip", "Ellipsis", "NotImplemented",
      // builtin exceptions
      "ArithmeticError", "AssertionError", "AttributeError", "BaseException", "BaseExceptionGroup", "BlockingIOError",
      "BrokenPipeError", "BufferError", "BytesWarning", "ChildProcessError", "ConnectionAbortedError",
      "ConnectionError", "ConnectionRefusedError", "ConnectionResetError", "DeprecationWarning", "EOFError",
      "EncodingWarning", "EnvironmentError", "Exception", "ExceptionGroup", "FileExistsError", "FileNotFoundError",
      "FloatingPointError", "FutureWarning", "GeneratorExit", "IOError", "ImportError", "ImportWarning",
      "IndentationError", "IndexError", "InterruptedError", "IsADirectoryError", "KeyError", "KeyboardInterrupt",
      "LookupError", "MemoryError", "ModuleNotFoundError", "NameError", "NotADirectoryError", "NotImplementedError",
      "OSError", "OverflowError", "PendingDeprecationWarning", "PermissionError", "ProcessLookupError",
      "RecursionError", "ReferenceError", "ResourceWarning", "RuntimeError", "RuntimeWarning", "StopAsyncIteration",
      "StopIteration", "SyntaxError", "SyntaxWarning", "SystemError", "SystemExit", "TabError", "TimeoutError",
      "TypeError", "UnboundLocalError", "UnicodeDecodeError", "UnicodeEncodeError", "UnicodeError",
      "UnicodeTranslateError", "UnicodeWarning", "UserWarning", "ValueError", "Warning", "ZeroDivisionError"};
  return is_word_of_code(name) || kNames.contains(name);
}

std::string name_in_code(const Node& node) {
  if (node.op() != Op::Placeholder || !is_reserved_name(node.name())) return node.name();
  std::string name;
  for (int number = 1; name.empty() || node.graph().find_node(name); ++number)
    name = node.name() + "_" + std::to_string(number);
  return name;
}

std::string name_from(std::string_view target) {
  if (target.size() >= 4 && target.starts_with("__") && target.ends_with("__"))
    target = target.substr(2, target.size() - 4);
  std::string out;
  for (size_t i = 0; i < target.size(); ++i) {
    if (i > 0 && is_upper(target[i]) && is_lower(target[i - 1])) out += '_';
    out += is_upper(target[i]) ? static_cast<char>(target[i] + ('a' - 'A')) : target[i];
  }
  return out;
}

struct Namespace::Entries final : RefCounted {
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  struct Entry {
    bool used = false;  // as a whole name
    int64_t count = 0;  // the last number given to it as a base
  };
  std::unordered_map<std::string, Entry, Hash, std::equal_to<>> names;
};

Namespace::Namespace() : entries_(make_counted<Entries>()) {}
Namespace::~Namespace() = default;

bool Namespace::contains(std::string_view name) const {
  auto found = entries_->names.find(name);
  return found != entries_->names.end() && found->second.used;
}

std::string Namespace::create(std::string_view candidate) {
  std::string fixed;
  bool legal = !candidate.empty() && !is_digit(candidate[0]);
  for (char c : candidate) legal = legal && is_word(c);
  if (!legal) candidate = fixed = legal_identifier(candidate);

  NumberedName split = split_number(candidate);
  std::string base(split.base), name(candidate);
  int64_t number = split.number;
  bool taken = contains(name);
  Entries::Entry& counter = entries_->names[base];  // stays where it is: the map's nodes do not move
  if (number < 0 || taken) {
    number = counter.count;
    if (is_reserved_name(name)) {
      name = base + "_" + std::to_string(++number);
      taken = contains(name);
    }
  }
  while (taken) {
    name = base + "_" + std::to_string(++number);
    taken = contains(name);
  }
  counter.count = number;
  entries_->names[name].used = true;
  return name;
}

std::string Namespace::take(std::string_view name) {
  if (!is_identifier(name) || is_word_of_code(name) || contains(name)) return create(name);
  entries_->names[std::string(name)].used = true;
  return std::string(name);
}

}  // namespace umbra::fx
