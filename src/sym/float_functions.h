// The functions of one float that expressions know.
#pragma once

#include <string_view>

#include "umbra/sym/expression.h"

namespace umbra::sym {

struct FloatFunction {
  Kind kind;
  std::string_view name;  // "cos"; PyTorch's are torch._sym_cos and OpaqueUnaryFn_cos
  double (*of)(double);
};

ArrayRef<FloatFunction> float_functions();
/// Null where the kind is another.
const FloatFunction* float_function(Kind kind);

/// Python's round(value, digits).
double round_decimal(double value, int64_t digits);

}  // namespace umbra::sym
