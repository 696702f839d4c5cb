// The result of a call that is written as if there were one.
#pragma once

#include <string>
#include <vector>

#include "umbra/core/value.h"

namespace UMBRA_API umbra {
namespace detail {

/// The tensor that a call of one result gave. Where it gave several, the others would be lost without a word.
inline Tensor only_result(const std::vector<Value>& results) {
  if (results.size() != 1)
    throw TypeError("the call gives " + std::to_string(results.size()) + " results: run() gives them as a list");
  return results[0].tensor();
}

}  // namespace detail
}  // namespace umbra
