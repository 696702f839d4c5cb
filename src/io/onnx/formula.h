// What calls become, as text: nodes of ONNX inside of each other.
//
//     "Sub(Exp(self), 1)"                                     arguments in the result's type, numbers too
//     "x = @self; ReduceSum{keepdims=0}(Mul(x, x), [-1])"     a value with a name; an argument as it is; attributes; a
//     list "Range(#0, Size(@self), #1)"                            whole numbers (int64) of no dimensions
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "io/onnx/call.h"

namespace umbra::io::onnx {

/// Values that a formula may name beside the call's arguments.
using Bindings = std::vector<std::pair<std::string_view, Name>>;

/// Emits a formula's nodes; gives its value.
Name evaluate(const Call& c, std::string_view formula, Bindings bindings = {});

/// An operator of one result that a formula describes.
struct Formula {
  const char* name;
  const char* text;
};

}  // namespace umbra::io::onnx
