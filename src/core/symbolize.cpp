#include "core/symbolize.h"

#include <backtrace.h>
#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace umbra {

namespace {

void ignore_error(void*, const char*, int) {}

struct TextQuery {
  uintptr_t address;
  TextRange text;
};

int match_segment(dl_phdr_info* info, size_t, void* data) {
  auto& query = *static_cast<TextQuery*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X)) continue;
    uintptr_t low = info->dlpi_addr + segment.p_vaddr, high = low + segment.p_memsz;
    if (query.address < low || query.address >= high) continue;
    query.text = {low, high, !info->dlpi_name || !*info->dlpi_name};
    return 1;
  }
  return 0;
}

/// What starts the program and its threads is not the user's.
bool is_system_object(std::string_view path) {
  return path.find("/libc.so") != std::string_view::npos || path.find("/libstdc++.so") != std::string_view::npos;
}

/// Whether an address is a return address into a program's code: the bytes before it are a call.
bool is_return_address(const void* address) {
  TextRange text = find_text(address);
  constexpr uintptr_t kLongestCall = 7;
  if (text.low == text.high || reinterpret_cast<uintptr_t>(address) - text.low < kLongestCall) return false;
  Dl_info info;
  if (dladdr(address, &info) && info.dli_fname && is_system_object(info.dli_fname)) return false;
#if defined(__x86_64__)
  auto* code = static_cast<const uint8_t*>(address);
  if (code[-5] == 0xe8) return true;
  // call through a register or memory: ff /2, of two to seven bytes, the addressing mode in the second
  for (int length = 2; length <= static_cast<int>(kLongestCall); ++length)
    if (code[-length] == 0xff && (code[-length + 1] & 0x38) == 0x10) return true;
  return false;
#else
  return true;
#endif
}

std::string demangle(const char* name) {
  if (!name) return "?";
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return short_function_name(text ? text.get() : name);
}

std::string trimmed(const std::string& line) {
  size_t from = line.find_first_not_of(" \t\r");
  return from == std::string::npos ? "" : line.substr(from, line.find_last_not_of(" \t\r") - from + 1);
}

/// Reads debug information and source files; both are kept, since the nodes of one program come from few files.
class Symbolizer {
 public:
  std::vector<SourceFrame> lines(const void* return_address) {
    std::lock_guard lock(mutex_);
    Lines found{this, {}};
    // The return address may be the next statement's first: the byte before it belongs to the call.
    backtrace_pcinfo(state(), reinterpret_cast<uintptr_t>(return_address) - 1, add_line, ignore_error, &found);
    return std::move(found.frames);
  }

  SourceFrame describe(const void* return_address) {
    std::lock_guard lock(mutex_);
    auto address = reinterpret_cast<uintptr_t>(return_address);
    SourceFrame frame;
    frame.function = offset_text("", address);
    Dl_info info;
    if (dladdr(return_address, &info)) {
      frame.file = info.dli_fname ? info.dli_fname : "";
      frame.function = offset_text("", address - reinterpret_cast<uintptr_t>(info.dli_fbase));
    }
    backtrace_syminfo(state(), address - 1, name_symbol, ignore_error, &frame);
    return frame;
  }

 private:
  struct Lines {
    Symbolizer* owner;
    std::vector<SourceFrame> frames;
  };

  static int add_line(void* data, uintptr_t, const char* file, int line, const char* function) {
    auto& found = *static_cast<Lines*>(data);
    if (!file || is_library_header(file)) return 0;
    std::string name = source_file(file);
    found.frames.push_back({name, line, demangle(function), found.owner->code(name, line)});
    return 0;
  }

  static void name_symbol(void* data, uintptr_t address, const char* symbol, uintptr_t start, uintptr_t) {
    if (symbol) static_cast<SourceFrame*>(data)->function = offset_text(demangle(symbol), address + 1 - start);
  }

  static std::string offset_text(const std::string& name, uintptr_t offset) {
    char digits[24];
    std::snprintf(digits, sizeof(digits), "+0x%lx", static_cast<unsigned long>(offset));
    return name + digits;
  }

  static int count_objects(dl_phdr_info* info, size_t, void* data) {
    *static_cast<unsigned long long*>(data) = info->dlpi_adds;
    return 1;
  }

  /// The reader looks at the loaded objects once; it is made anew when more were loaded since.
  backtrace_state* state() {
    unsigned long long loaded = 0;
    dl_iterate_phdr(count_objects, &loaded);
    if (!state_ || loaded != loaded_) state_ = backtrace_create_state(nullptr, 0, ignore_error, nullptr);
    loaded_ = loaded;
    return state_;
  }

  std::string code(const std::string& file, int line) {
    auto [entry, added] = files_.try_emplace(file);
    if (added) {
      std::ifstream in(file);
      for (std::string text; std::getline(in, text);) entry->second.push_back(trimmed(text));
    }
    bool known = line > 0 && static_cast<size_t>(line) <= entry->second.size();
    return known ? entry->second[static_cast<size_t>(line) - 1] : "";
  }

  std::mutex mutex_;
  backtrace_state* state_ = nullptr;
  unsigned long long loaded_ = 0;
  std::unordered_map<std::string, std::vector<std::string>> files_;
};

Symbolizer& symbolizer() {
  static auto* one = new Symbolizer;  // never destroyed: errors are read while the process ends, too
  return *one;
}

}  // namespace

TextRange find_text(const void* address) {
  TextQuery query{reinterpret_cast<uintptr_t>(address), {}};
  dl_iterate_phdr(match_segment, &query);
  return query.text;
}

std::string short_function_name(std::string name) {
  if (name == "operator()") return "<lambda>";  // one inside a function has no name of its own
  auto ends_with = [&](std::string_view end) { return std::string_view(name).ends_with(end); };
  if (ends_with(" const")) name.resize(name.size() - 6);
  // The parameters: the last group of parentheses, found from its end.
  if (ends_with(")") && !ends_with("operator()")) {
    int depth = 0;
    size_t at = name.size();
    do {
      char c = name[--at];
      depth += c == ')' ? 1 : c == '(' ? -1 : 0;
    } while (depth > 0 && at > 0);
    if (at > 0) name.resize(at);
  }
  // `{lambda(int)#1}::operator()`, which Clang writes `$_0::operator()`, is what Python calls <lambda>.
  constexpr std::string_view kCall = "::operator()";
  auto replace_lambda = [&](size_t from, size_t end) {
    end += name.compare(end, kCall.size(), kCall) == 0 ? kCall.size() : 0;
    name.replace(from, end - from, "<lambda>");
  };
  for (size_t from; (from = name.find("{lambda(")) != std::string::npos;) {
    size_t end = name.find('}', from);
    if (end == std::string::npos) break;
    replace_lambda(from, end + 1);
  }
  for (size_t from; (from = name.find("$_")) != std::string::npos;)
    replace_lambda(from, std::min(name.find_first_not_of("0123456789", from + 2), name.size()));
  // A template's return type stands before the name, with a space outside all brackets.
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name.compare(i, 8, "operator") == 0) break;
    depth += name[i] == '<' || name[i] == '(' ? 1 : name[i] == '>' || name[i] == ')' ? -1 : 0;
    if (name[i] == ' ' && depth == 0) start = i + 1;
  }
  return name.substr(start);
}

std::string source_file(const std::string& name) {
  size_t slashes = name.rfind("//");
  if (slashes == std::string::npos || std::filesystem::exists(name)) return name;
  std::string from_root = name.substr(slashes + 1);
  return std::filesystem::exists(from_root) ? from_root : name;
}

bool is_library_header(std::string_view file) {
  return file.starts_with("include/umbra/") || file.find("/include/umbra/") != std::string_view::npos ||
         file.find("/include/c++/") != std::string_view::npos;
}

std::vector<SourceFrame> symbolize(const void* return_address) {
  if (!is_return_address(return_address)) return {};
  return symbolizer().lines(return_address);
}

SourceFrame describe_address(const void* return_address) { return symbolizer().describe(return_address); }

}  // namespace umbra
