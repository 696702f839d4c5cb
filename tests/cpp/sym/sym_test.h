// A ShapeEnv with a few symbols, for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "umbra/core/error.h"
#include "umbra/sym/parse.h"
#include "umbra/sym/print.h"
#include "umbra/sym/shape_env.h"

namespace umbra::sym {

/// How many seeds random tests go through: UMBRA_SEEDS says more.
inline int seeds(int usual) {
  const char* asked = std::getenv("UMBRA_SEEDS");
  return asked ? std::atoi(asked) : usual;
}

inline std::string source_of(const std::string& tensor, int dim = 0) {
  return "L['" + tensor + "'].size()[" + std::to_string(dim) + "]";
}

class Symbols : public ::testing::Test {
 protected:
  Symbols() {
    SymbolOptions dynamic{.policy = Policy::Dynamic};
    s0 = env->create_symbol(8, source_of("x", 0), dynamic);
    s1 = env->create_symbol(6, source_of("x", 1), dynamic);
    s2 = env->create_symbol(4, source_of("y", 0), dynamic);
    u0 = env->create_unbacked();
  }
  /// What was recorded, as text.
  std::vector<std::string> guards() const {
    std::vector<std::string> texts;
    for (const Guard& guard : env->guards()) texts.push_back(to_text(guard.condition));
    return texts;
  }
  Range range(SymInt value) { return env->bound_range(value); }

  IntrusivePtr<ShapeEnv> env = make_counted<ShapeEnv>();
  SymInt s0, s1, s2, u0;
};

}  // namespace umbra::sym
