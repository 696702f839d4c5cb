// Where a node came from: the user's source line and the module that was running.
#pragma once

#include <string>
#include <vector>

#include "umbra/core/intrusive.h"

namespace umbra::fx {

/// One line of a stack trace.
struct SourceFrame {
  std::string file;
  int line = 0;
  std::string function;
  std::string code;  // the text of the line, where it could be read
};

/// A place in the user's program. Capturing keeps what is cheap to take (return addresses, code objects with offsets);
/// it becomes text only when someone reads it.
class SourceLocation : public RefCounted {
 public:
  /// The frames, outermost first.
  virtual std::vector<SourceFrame> frames() const = 0;
  /// The stack trace as Python prints one.
  virtual std::string text() const;
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

/// A module that was running when a node was made.
struct ModuleFrame {
  std::string key;   // tells two calls of the same module apart
  std::string path;  // "layers.0.attention"; "" for the root
  std::string type;  // "torch.nn.modules.linear.Linear"
  bool operator==(const ModuleFrame&) const = default;
};

/// The modules that were running, outermost first; shared by all nodes made in the same place.
class ModuleStack final : public RefCounted {
 public:
  explicit ModuleStack(std::vector<ModuleFrame> frames) : frames_(std::move(frames)) {}
  const std::vector<ModuleFrame>& frames() const { return frames_; }

 private:
  std::vector<ModuleFrame> frames_;
};

}  // namespace umbra::fx
