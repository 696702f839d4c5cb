// Where a node came from: the user's source line and the module that was running.
#pragma once

#include <string>
#include <vector>

#include "umbra/core/source.h"

namespace UMBRA_API umbra {
namespace fx {

using umbra::SourceFrame;
using umbra::SourceLocation;
using umbra::TextLocation;

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

}  // namespace fx
}  // namespace umbra
