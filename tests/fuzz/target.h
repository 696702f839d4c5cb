// What fuzz targets share. A target is one file of targets/: `run` takes any bytes and gives a value or an
// umbra::Error. Anything else ends the process: another exception, a report of a sanitizer, an allocation beyond what
// the input can ask for, a run that does not end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "umbra/core/error.h"
#include "umbra/io/zip.h"

namespace umbra::fuzz {

/// The target's own part.
void run(std::string_view input);

/// An archive as one text, so that a change of a byte changes what an entry holds and not its checksum: for each entry
/// a line "@@@ name" and its bytes. Gives the archive.
inline io::Bytes pack(std::string_view text) {
  constexpr std::string_view kMark = "@@@ ";
  io::BufferSink sink;
  io::ZipWriter zip(sink);
  size_t at = text.starts_with(kMark) ? 0 : text.find("\n@@@ ");
  while (at < text.size()) {
    at += text[at] == '\n' ? kMark.size() + 1 : kMark.size();
    size_t line = text.find('\n', at);
    if (line == std::string_view::npos) break;
    size_t next = text.find("\n@@@ ", line);
    std::string name(text.substr(at, line - at));
    if (!io::is_safe_entry_name(name)) fail<ValueError>("an entry has an unsafe name");
    std::string_view contents = next == line ? std::string_view() : text.substr(line + 1, next - line - 1);
    zip.add(name, contents);
    at = next;
  }
  zip.finish();
  return io::Bytes(std::move(sink.text));
}

}  // namespace umbra::fuzz
