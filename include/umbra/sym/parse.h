// Reading expressions: sympy's srepr as .pt2 files hold it, and the infix form that people and older files write.
//
//   parse(env, "Add(Mul(Integer(2), Symbol('s58', positive=True, integer=True)), Integer(1))")
//   parse(env, "2*s58 + 1")
//   parse(env, "(L['x'].size()[0] % 2) == 0", {.source = ...})
//
// The text is read by a grammar and nothing in it is ever run. Length, depth and size are limited, so that a hostile
// text costs an error and not the process.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "umbra/sym/expression.h"

namespace UMBRA_API umbra {
namespace sym {

struct ParseOptions {
  /// The symbol of a name. `positive` is what the text says of it, if it says anything. By default the env's symbol of
  /// that name, declared if need be.
  std::function<const Expression*(std::string_view name, std::optional<bool> positive)> symbol;
  /// The meaning of a path into the inputs, `L['xs'][0].size()[1]`. Without it, paths are an error.
  std::function<const Expression*(std::string_view path)> source;
};

/// Throws ValueError, with the place in the text, if it is not an expression.
const Expression* parse(ShapeEnv& env, std::string_view text, const ParseOptions& options = {});

}  // namespace sym
}  // namespace umbra
