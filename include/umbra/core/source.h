// A place in the user's program, as nodes, guards and errors keep it.
#pragma once

#include "umbra/core/call_site.h"
#include "umbra/core/intrusive.h"

namespace UMBRA_API umbra {

/// A place in the user's program. Capturing keeps what is cheap to take (return addresses, code objects with offsets);
/// it becomes text only when someone reads it.
class SourceLocation : public RefCounted {
 public:
  /// The frames, outermost first.
  virtual std::vector<SourceFrame> frames() const = 0;
  /// The stack trace as Python prints one.
  virtual std::string text() const { return to_string(frames()); }
};

/// A stack trace that is text already: read from a file, or given by hand.
class TextLocation final : public SourceLocation {
 public:
  explicit TextLocation(std::string text) : text_(std::move(text)) {}
  std::vector<SourceFrame> frames() const override;
  std::string text() const override { return text_; }

 private:
  std::string text_;
};

/// Where the user's program stands on this thread: the C++ call site, or else what the front end says. Null: not known.
IntrusivePtr<SourceLocation> current_location();
/// Asked where there is no user's code in C++; the Python binding sets it.
void set_location_source(IntrusivePtr<SourceLocation> (*source)());

}  // namespace umbra
