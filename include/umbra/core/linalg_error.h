// A matrix that an algorithm of linear algebra could not go on with: singular, not positive-definite, without
// convergence. Python's torch.linalg.LinAlgError.
#pragma once

#include "umbra/core/error.h"

namespace UMBRA_API umbra {

class LinAlgError : public Error {
 public:
  using Error::Error;
};

}  // namespace umbra
