// What a ShapeEnv looks up by name, number or expression.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "umbra/sym/shape_env.h"

namespace umbra::sym {

struct ShapeEnv::Tables final : RefCounted {
  std::unordered_map<std::string, const Expression*> names;
  std::unordered_map<int64_t, const Expression*> duck;                   // by hint
  std::unordered_map<const Expression*, Range> bounds;                   // of linear forms that are not symbols
  std::unordered_map<const Expression*, std::vector<Integer>> excluded;  // values a form is known not to have
};

}  // namespace umbra::sym
