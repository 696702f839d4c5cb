// Functions a graph may call that are no operators: getitem, arithmetic on symbolic sizes, higher-order operators.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "umbra/core/value.h"

namespace UMBRA_API umbra {
namespace fx {

/// A named function; lives as long as the process, so a pointer to it is its identity.
class Argument;
class Node;

struct Function {
  /// What it computes from its positional arguments; a tuple among them is a list. Empty: the graph cannot be run, only
  /// read.
  using Evaluate = std::function<Value(ArrayRef<Value> arguments)>;

  std::string name;    // as graphs print it: "operator.add", "torch.sym_max", "torch.ops.higher_order.cond"
  std::string format;  // how code writes it, "{} + {}"; empty: a call
  Evaluate evaluate;
  bool has_side_effects = false;  // stays in a graph though nobody uses its result
  /// A call's arguments, keywords among them, in the order of `evaluate`; without it a call has no keywords.
  std::function<std::vector<Argument>(const Node& node)> positional = {};

  /// "add": the part after the last dot, from which nodes get their names.
  std::string_view short_name() const;
  /// The name by which code calls it: "torch.sym_max", but "math_floor" and "round".
  std::string code_name() const;
};

/// The function of that name, or null.
const Function* find_function(std::string_view name);
/// The function of that name; one that nobody has defined yet can be printed but not run.
Function& function(std::string_view name);
/// Defines (or redefines) a function: `define_function({.name = "torch.ops.higher_order.cond", .evaluate = ...})`.
Function& define_function(Function definition);

/// Told of each number that a function of a running graph makes of symbolic ones; capture sets it, whose graphs make
/// the number in the same way.
using SymbolCallHook = void (*)(const Function& function, ArrayRef<Value> arguments, const Value& result);
SymbolCallHook& symbol_call_hook();

}  // namespace fx
}  // namespace umbra
