// Plain numbers in SymInts: what fits, what is refused.
#include "umbra/core/sym_int.h"

#include <gtest/gtest.h>

#include "umbra/core/error.h"

namespace umbra {
namespace {

TEST(SymInt, ArithmeticThatDoesNotFitIsAnError) {
  SymInt most = INT64_MAX;
  EXPECT_THROW(most + 1, Error);
  EXPECT_THROW(most * 2, Error);
  EXPECT_THROW(SymInt(-(int64_t{1} << 62)) - most, Error);
  EXPECT_EQ((most - 1).value(), INT64_MAX - 1);
}

TEST(SymInt, NumbersAreNeverTakenForPointers) {
  EXPECT_THROW(SymInt(INT64_MIN), Error);
  EXPECT_THROW(SymInt(size_t{1} << 63), Error);
  std::vector<int64_t> low = {INT64_MIN, 0};
  EXPECT_THROW(as_sym(low), Error);
}

}  // namespace
}  // namespace umbra
