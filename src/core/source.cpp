// The user's line: where the program is now, and lines that come as text from files and from Python.
#include <charconv>
#include <string_view>

#include "umbra/core/at_location.h"

namespace umbra {

namespace {

std::string_view strip(std::string_view text) {
  size_t from = text.find_first_not_of(" \t\r\n");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t\r\n") - from + 1);
}

/// Reads `File "name.py", line 12, in forward`; false for any other line.
bool read_frame(std::string_view line, SourceFrame& frame) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ", kIn = ", in ";
  if (!line.starts_with(kFile)) return false;
  size_t number = line.rfind(kLine);
  if (number == std::string_view::npos) return false;
  size_t in = line.find(kIn, number + kLine.size());
  if (in == std::string_view::npos) return false;
  frame.file = line.substr(kFile.size(), number - kFile.size());
  std::from_chars(line.data() + number + kLine.size(), line.data() + in, frame.line);
  frame.function = line.substr(in + kIn.size());
  return true;
}

}  // namespace

std::vector<SourceFrame> TextLocation::frames() const {
  std::vector<SourceFrame> frames;
  std::string_view rest = text_;
  bool code_may_follow = false;
  while (!rest.empty()) {
    size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = strip(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    SourceFrame frame;
    if (read_frame(line, frame)) {
      frames.push_back(std::move(frame));
      code_may_follow = true;
    } else if (code_may_follow) {
      frames.back().code = line;
      code_may_follow = false;
    }
  }
  return frames;
}

// ---- where the program stands

namespace {

class CallLocation final : public SourceLocation {
 public:
  explicit CallLocation(const CallSite& site) : site_(site) {}
  std::vector<SourceFrame> frames() const override { return site_.frames(); }

 private:
  CallSite site_;
};

IntrusivePtr<SourceLocation> (*g_source)() = nullptr;
thread_local const SourceLocation* g_at = nullptr;

}  // namespace

AtLocation::AtLocation(const SourceLocation* location) : before_(g_at) {
  if (location) g_at = location;
}
AtLocation::~AtLocation() { g_at = before_; }

IntrusivePtr<SourceLocation> current_location() {
  if (g_at) return IntrusivePtr<SourceLocation>(const_cast<SourceLocation*>(g_at));
  CallSite site = CallSite::here();
  if (site.known()) return make_counted<CallLocation>(site);
  return g_source ? g_source() : nullptr;
}

void set_location_source(IntrusivePtr<SourceLocation> (*source)()) { g_source = source; }

}  // namespace umbra
