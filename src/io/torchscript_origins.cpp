#include "io/torchscript_origins.h"

#include <algorithm>
#include <map>

#include "io/script_pickle.h"

namespace umbra::io {
namespace {

constexpr const char* kFormat = "FORMAT_WITH_STRING_TABLE";

/// (format, texts, ((offset, ((numbers of lines, number of the file's name, first line), begin, end), tag), ...))
class OriginsWriter : private ScriptPickleWriter {
 public:
  std::string run(const jit::SourceOrigins& origins) {
    intern("");
    for (const auto& [offset, range] : origins) add(*range.source);
    return program([&] {
      text(kFormat);
      opcode(op::kMark);
      for (const std::string& line : texts_) text(line);
      opcode(op::kTuple);
      opcode(op::kMark);
      int64_t tag = 0;
      for (const auto& [offset, range] : origins) record(offset, range, tag++);
      opcode(op::kTuple);
      opcode(op::kTuple3);
    });
  }

 private:
  int64_t intern(const std::string& line) {
    auto [found, fresh] = numbers_.try_emplace(line, static_cast<int64_t>(texts_.size()));
    if (fresh) texts_.push_back(line);
    return found->second;
  }

  void add(const jit::SourceText& source) {
    auto [found, fresh] = sources_.try_emplace(&source);
    if (!fresh) return;
    std::string whole = source.moved_back();
    for (size_t at = 0; at < whole.size();) {
      size_t stop = std::min(whole.find('\n', at), whole.size() - 1) + 1;
      found->second.push_back(intern(whole.substr(at, stop - at)));
      at = stop;
    }
    intern(source.file);
  }

  /// Where it is needed again, it is taken from the memo.
  void text_of(const jit::SourceText& source) {
    auto [found, fresh] = memo_.try_emplace(&source, memo_.size());
    if (!fresh) {
      opcode(op::kLongBinGet);
      return bytes(found->second, 4);
    }
    global("torch.jit._pickle", "build_intlist");
    opcode(op::kEmptyList);
    opcode(op::kMark);
    for (int64_t line : sources_.at(&source)) integer(line);
    opcode(op::kAppends);
    opcode(op::kTuple1);
    opcode(op::kReduce);
    integer(numbers_.at(source.file));
    integer(source.first_line);
    opcode(op::kTuple3);
    opcode(op::kLongBinPut);
    bytes(found->second, 4);
  }

  void record(size_t offset, const jit::SourceRange& range, int64_t tag) {
    const jit::SourceText& source = *range.source;
    integer(static_cast<int64_t>(offset));
    text_of(source);
    integer(static_cast<int64_t>(source.moved_back(range.begin)));
    integer(static_cast<int64_t>(source.moved_back(range.end)));
    opcode(op::kTuple3);
    integer(tag);
    opcode(op::kTuple3);
  }

  std::vector<std::string> texts_;
  std::map<std::string, int64_t> numbers_;
  std::map<const jit::SourceText*, std::vector<int64_t>> sources_;
  std::map<const jit::SourceText*, size_t> memo_;
};

/// Reads what the writer above writes, and refuses everything else.
class OriginsReader {
 public:
  explicit OriginsReader(const PickleValue& texts) : texts_(texts.items()) {}

  std::pair<size_t, jit::SourceRange> record(const PickleValue& v) {
    const auto& parts = tuple(v, 3);
    const auto& range = tuple(parts[1], 3);
    return {number(parts[0]), {source(range[0]), number(range[1]), number(range[2])}};
  }

 private:
  static const std::vector<PickleValue>& tuple(const PickleValue& v, size_t count) {
    check<ValueError>(v.is_sequence() && v.items().size() == count, "broken debug information");
    return v.items();
  }
  static size_t number(const PickleValue& v) {
    check<ValueError>(v.kind() == PickleValue::Kind::Int && v.as_int() >= 0, "broken debug information");
    return static_cast<size_t>(v.as_int());
  }
  const std::string& line(const PickleValue& v) {
    size_t i = number(v);
    check<ValueError>(i < texts_.size() && texts_[i].is_string(), "broken debug information");
    return texts_[i].as_string();
  }
  jit::SourcePtr source(const PickleValue& v) {
    auto found = sources_.find(v.identity());
    if (v.identity() && found != sources_.end()) return found->second;
    const auto& parts = tuple(v, 3);
    auto made = std::make_shared<jit::SourceText>();
    check<ValueError>(parts[0].is_sequence(), "broken debug information");
    for (const PickleValue& i : parts[0].items()) made->text += line(i);
    made->file = line(parts[1]);
    made->first_line = static_cast<int>(number(parts[2]));
    if (v.identity()) sources_[v.identity()] = made;
    return made;
  }

  const std::vector<PickleValue>& texts_;
  std::map<const void*, jit::SourcePtr> sources_;
};

}  // namespace

std::string write_origins(const jit::SourceOrigins& origins) { return OriginsWriter().run(origins); }

jit::SourceOrigins read_origins(const PickleValue& value) {
  bool known = value.is_sequence() && value.items().size() == 3 && value.items()[0].is_string() &&
               value.items()[0].as_string() == kFormat && value.items()[1].is_sequence() &&
               value.items()[2].is_sequence();
  jit::SourceOrigins out;
  if (!known) return out;
  OriginsReader reader(value.items()[1]);
  for (const PickleValue& v : value.items()[2].items()) {
    out.push_back(reader.record(v));
    if (out.back().second.source->text.empty()) out.back().second = {};
  }
  std::ranges::stable_sort(out, {}, &jit::SourceOrigins::value_type::first);
  return out;
}

}  // namespace umbra::io
