// Values that unbacked symbols were seen to have in a run on data that goes along with a fake one. A question that
// nothing else answers is answered by them, and the answer becomes an assertion of the program.
#pragma once

#include <optional>

#include "umbra/core/scalar.h"
#include "umbra/sym/shape_env.h"

namespace UMBRA_API umbra {
namespace sym {

/// Notes the value of an unbacked symbol; anything else is left alone.
void observe(const Scalar& symbol, const Scalar& value);
/// The value of an expression whose symbols all have hints or were seen; none where one was not.
std::optional<Number> observed(const Expression* a);
std::optional<Scalar> observed(const Scalar& value);
/// Forgets what was seen of an environment that goes.
void forget_observed(const ShapeEnv& env) noexcept;

}  // namespace sym
}  // namespace umbra
