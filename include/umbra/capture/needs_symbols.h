// Numbers and sizes that only a run tells, met where no ShapeEnv is there to make symbols of them.
#pragma once

#include "umbra/core/error.h"

namespace UMBRA_API umbra {

/// A capture with symbols can do what one without them cannot. `torch.compile` captures once more.
class NeedsSymbols : public NotImplementedError {
 public:
  using NotImplementedError::NotImplementedError;
};

}  // namespace umbra
