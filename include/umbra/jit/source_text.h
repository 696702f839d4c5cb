// The text of programs, and places in it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "umbra/core/error.h"

namespace UMBRA_API umbra {
namespace jit {

struct SourceText;
using SourcePtr = std::shared_ptr<const SourceText>;

/// A part of a program's text, or none.
struct SourceRange {
  SourcePtr source;
  size_t begin = 0, end = 0;
  /// The lines with marks under them and those around, as errors show them; `function` is the one that was running.
  std::string pointed(const std::string& function = "") const;
  /// The part of the text that this one was written from, where an archive tells it.
  SourceRange origin() const;
};

/// From an offset on, a text was written from that range; in the order of offsets.
using SourceOrigins = std::vector<std::pair<size_t, SourceRange>>;

/// Those of one text, read when they are first needed.
class LateOrigins {
 public:
  explicit LateOrigins(std::function<SourceOrigins()> load) : load_(std::move(load)) {}
  const SourceOrigins& get() const;

 private:
  std::function<SourceOrigins()> load_;
  mutable std::once_flag once_;
  mutable SourceOrigins origins_;
};

/// The text of a program and where it came from. Without a file it is no program but a place, to be shown as it is.
struct SourceText {
  std::string text, file;
  int first_line = 1;
  size_t indent = 0;  // so far its lines were moved to the left
  std::shared_ptr<const LateOrigins> origins;
  /// "file.py:12:4"
  std::string place(size_t offset) const;
  /// The text with its lines moved back, and where an offset is then.
  std::string moved_back() const;
  size_t moved_back(size_t offset) const;
};

}  // namespace jit
}  // namespace umbra
