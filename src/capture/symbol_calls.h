// Symbolic numbers as calls of Python's operators.
#pragma once

#include <functional>

#include "umbra/graph/graph.h"
#include "umbra/sym/shape_env.h"

namespace umbra {

/// A symbolic number as a node's value.
Value symbol_value(const sym::Expression* e);

/// The calls that compute an expression which is neither a number nor a symbol. `part` gives the argument for one of
/// its parts, `call` makes a call of a function ("operator.add") that computes `result`.
struct SymbolCalls {
  std::function<fx::Argument(const sym::Expression* part)> part;
  std::function<fx::Node*(const char* function, fx::Arguments arguments, const sym::Expression* result)> call;
  bool as_written = false;  // `2 * size`, as the expression has it

  fx::Argument compute(const sym::Expression* e) const;
};

}  // namespace umbra
