// The functions of numbers, strings and containers that programs use beside the registry's operators.
#pragma once

#include "umbra/jit/objects.h"

namespace umbra::jit {

struct Builtin {
  const char* name;
  /// The type of the result for arguments of these types, or null where the function does not take them.
  TypePtr (*rule)(const std::vector<TypePtr>& arguments);
  Value (*run)(Value* arguments, size_t count);
};

/// The functions of this name ("aten::add"), in the order in which they are tried.
const std::vector<const Builtin*>& builtins(const std::string& name);
/// The first that takes arguments of these types, or null; `result` is its type.
const Builtin* find_builtin(const std::string& name, const std::vector<TypePtr>& types, TypePtr* result);

}  // namespace umbra::jit
