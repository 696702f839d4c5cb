// Places in programs, as errors show them.
#include <algorithm>

#include "core/per_thread.h"
#include "umbra/jit/ast.h"

namespace umbra::jit {

namespace {

size_t line_begin(const std::string& text, size_t at) {
  size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  return before == std::string::npos ? 0 : before + 1;
}

long line_number(const SourceText& source, size_t at) {
  return source.first_line + std::count(source.text.begin(), source.text.begin() + static_cast<long>(at), '\n');
}

}  // namespace

std::string SourceText::place(size_t offset) const {
  offset = std::min(offset, text.size());
  return concat(file, ":", line_number(*this, offset), ":", offset - line_begin(text, offset) + indent);
}

std::string SourceText::moved_back() const {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t stop = std::min(text.find('\n', at), text.size() - 1) + 1;
    if (text[at] != '\n') out.append(indent, ' ');
    out.append(text, at, stop - at);
    at = stop;
  }
  return out;
}

size_t SourceText::moved_back(size_t offset) const {
  offset = std::min(offset, text.size());
  size_t lines = 0;
  for (size_t at = 0; at <= offset && at < text.size(); at = std::min(text.find('\n', at), text.size()) + 1)
    lines += text[at] != '\n';
  return offset + lines * indent;
}

const SourceOrigins& LateOrigins::get() const {
  std::call_once(once_, [&] { origins_ = load_(); });
  return origins_;
}

std::string SourceRange::pointed(const std::string& function) const {
  if (!source) return "";
  const std::string& text = source->text;
  if (source->file.empty() || (begin == 0 && end >= text.size())) return text;  // a place, as Python's stacks are
  constexpr int kAround = 2;                                                    // lines shown before and after
  const size_t size = text.find_last_not_of(" \t\n") + 1;                       // of a text of nothing: 0
  const size_t first = std::min(begin, size), last = std::clamp(end, first, size);
  std::string out = concat("  File \"", source->file, "\", line ", line_number(*source, first));
  out += (function.empty() ? "" : ", in " + function) + "\n";
  size_t at = line_begin(text, first);
  for (int i = 0; i < kAround && at > 0; ++i) at = line_begin(text, at - 1);
  for (int after = 0; at <= size && after <= kAround; ++at) {
    size_t stop = std::min(text.find('\n', at), size);
    if (stop > at) out.append(source->indent, ' ').append(text, at, stop - at);
    out += "\n";
    bool ends_here = last <= stop;
    if (first <= stop && after == 0) {
      size_t from = std::max(first, std::min(text.find_first_not_of(" \t", at), stop)), to = std::min(last, stop);
      out.append(from - at + (stop > at ? source->indent : 0), ' ').append(std::max(to, from) - from, '~');
      out += ends_here ? " <--- HERE\n" : "\n";
    }
    after += ends_here;
    at = stop;
  }
  return out;
}

SourceRange SourceRange::origin() const {
  if (!source || !source->origins) return {};
  const SourceOrigins& origins = source->origins->get();
  auto after = std::ranges::upper_bound(origins, begin, {}, &SourceOrigins::value_type::first);
  return after == origins.begin() ? SourceRange{} : std::prev(after)->second;
}

// ---- trees ----

SourceRange whole_range(const Tree& t) {
  SourceRange out{t.source, t.begin, t.end};
  auto last_of = [&](const std::vector<TreePtr>& trees) {
    for (const TreePtr& c : trees)
      if (c && c->source == t.source) out.end = std::max(out.end, whole_range(*c).end);
  };
  switch (t.kind) {
    case Syntax::String: out.end = std::min(t.end, t.begin + t.text.size() + 1); break;
    case Syntax::Subscript:
      out.begin = whole_range(*t.children[0]).begin;
      out.end = std::min(t.end, whole_range(*t.children[1]).end + 1);
      break;
    case Syntax::Attribute: out.begin = whole_range(*t.children[0]).begin; break;
    case Syntax::Name:
    case Syntax::Number:
    case Syntax::Constant: break;
    default: {
      bool has_parts = !t.children.empty() || !t.body.empty();
      if (!has_parts) break;
      bool starts_with_child = t.kind == Syntax::Call || t.kind == Syntax::Binary || t.kind == Syntax::Compare ||
                               t.kind == Syntax::Expression;
      if (starts_with_child) out.begin = whole_range(*t.children[0]).begin;
      out.end = out.begin;
      last_of(t.children);
      last_of(t.body);
      last_of(t.orelse);
      if (out.end == out.begin) out.end = t.end;
    }
  }
  return out;
}

SourceRange shown_range(const Tree& t) { return whole_range(t.kind == Syntax::Call ? *t.children[0] : t); }

// ---- functions that are compiled ----

namespace {
struct Frame {
  std::string function;
  const Tree* reached = nullptr;
};
std::vector<Frame>& frames() {
  static PerThread<std::vector<Frame>> of_thread;
  return *of_thread;
}
}  // namespace

Compilation::Compilation(std::string function) { frames().push_back({std::move(function)}); }
Compilation::~Compilation() { frames().pop_back(); }

void Compilation::reach(const Tree& tree) {
  if (!frames().empty()) frames().back().reached = &tree;
}

const Tree* Compilation::reached() { return frames().empty() ? nullptr : frames().back().reached; }

std::string Compilation::waiting() {
  std::string out;
  for (size_t i = frames().size(); i-- > 1;) {
    const Frame& caller = frames()[i - 1];
    out += concat("'", frames()[i].function, "' is being compiled since it was called from '", caller.function, "'\n");
    if (caller.reached) out += whole_range(*caller.reached).pointed();
  }
  return out;
}

}  // namespace umbra::jit
