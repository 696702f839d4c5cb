// What runs on behalf of a node of a graph stands at the node's line.
#pragma once

#include "umbra/core/source.h"

namespace UMBRA_API umbra {

/// While it lives, current_location() on this thread is the one given; null changes nothing.
class AtLocation {
 public:
  explicit AtLocation(const SourceLocation* location);
  ~AtLocation();
  AtLocation(const AtLocation&) = delete;
  AtLocation& operator=(const AtLocation&) = delete;

 private:
  const SourceLocation* before_;
};

}  // namespace umbra
