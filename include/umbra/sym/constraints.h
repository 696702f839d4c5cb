// Whether a captured program keeps what its Dims promise, and what to write instead where it does not.
#pragma once

#include <optional>
#include <string>

#include "umbra/sym/shape_env.h"

namespace UMBRA_API umbra {
namespace sym {

struct ConstraintOptions {
  /// Dimensions whose guards relate several of them in ways no Dim can express must become numbers. Without it such
  /// guards stay, to be checked when the program runs.
  bool force_specializations = true;
};

/// The text of the violation, in PyTorch's words and with suggested fixes; nothing where all promises are kept.
std::optional<std::string> constraint_violation(ShapeEnv& env, const ConstraintOptions& options = {});

/// Throws ConstraintViolationError with that text.
void check_constraints(ShapeEnv& env, const ConstraintOptions& options = {});

/// Whether a condition holds for all values that the ranges of its symbols allow.
bool follows_from_ranges(const ShapeEnv& env, const Expression* condition);

/// The range an exported program declares for a size: sizes 0 and 1 are allowed where the Dim promised them.
Range exported_range(ShapeEnv& env, const Expression* a);
Range exported_range(const Symbol& symbol);

}  // namespace sym
}  // namespace umbra
