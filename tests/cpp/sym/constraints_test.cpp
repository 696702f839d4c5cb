// Promises of Dims and what becomes of them, in the words PyTorch 2.15 has for the same programs.
#include "umbra/sym/constraints.h"

#include <gmock/gmock.h>

#include "sym/sym_test.h"

namespace umbra::sym {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kMore = "! For more information, run with TORCH_LOGS=\"+dynamic\".\n";

class Constraints : public ::testing::Test {
 protected:
  SymInt dim(const std::string& name, int64_t hint, const std::string& tensor, int index = 0, Range range = {0}) {
    return env->create_symbol(hint, source_of(tensor, index), {.policy = Policy::Dynamic, .range = range, .dim = name});
  }
  std::string violation(bool force = true) {
    return constraint_violation(*env, {.force_specializations = force}).value_or("");
  }
  IntrusivePtr<ShapeEnv> env = make_counted<ShapeEnv>();
};

TEST_F(Constraints, KeptPromisesAreNoViolation) {
  SymInt batch = dim("batch", 4, "x");
  EXPECT_TRUE(batch * 2 > 3);
  EXPECT_EQ(violation(), "");
  EXPECT_NO_THROW(check_constraints(*env));
}

TEST_F(Constraints, AnExcludedValueIsAViolation) {
  SymInt batch = dim("batch", 4, "x");
  EXPECT_FALSE(batch == 7);
  EXPECT_EQ(violation(),
            "Constraints violated (batch)! For more information, run with TORCH_LOGS=\"+dynamic\".\n"
            "  - Not all values of batch = L['x'].size()[0] in the specified range satisfy the generated guard "
            "L['x'].size()[0] != 7.\n");
}

TEST_F(Constraints, ASpecialisedDim) {
  EXPECT_TRUE(dim("batch", 4, "x") == 4);
  EXPECT_EQ(
      violation(),
      std::string("Constraints violated (batch)") + kMore +
          "  - You marked batch as dynamic but your code specialized it to be a constant (4). If you're using "
          "mark_dynamic, either remove it or use maybe_mark_dynamic. If you're using Dim.DYNAMIC, replace it with "
          "either Dim.STATIC or Dim.AUTO.\n"
          "Suggested fixes:\n  batch = 4\n");
  EXPECT_THROW(check_constraints(*env), ConstraintViolationError);
}

TEST_F(Constraints, ADimOfSizeOne) {
  dim("dy", 1, "y");
  EXPECT_THAT(violation(), AllOf(HasSubstr("(dy)!"), HasSubstr("a constant (1)"), HasSubstr("  dy = 1\n")));
}

TEST_F(Constraints, AMarkedDimensionHasItsSourceForAName) {
  SymInt x = env->create_symbol(5, source_of("x"), {.policy = Policy::Dynamic, .marked_dynamic = true});
  EXPECT_EQ(x.guard_int(), 5);
  EXPECT_THAT(violation(),
              AllOf(StartsWith("Constraints violated (L['x'].size()[0])!"), Not(HasSubstr("Suggested fixes"))));
}

TEST_F(Constraints, ANarrowedRange) {
  EXPECT_TRUE(dim("dim", 5, "x", 0, {3}) <= 6);
  EXPECT_EQ(
      violation(),
      std::string("Constraints violated (dim)") + kMore +
          "  - Not all values of dim = L['x'].size()[0] in the specified range 3 <= dim satisfy the generated guard "
          "3 <= L['x'].size()[0] and L['x'].size()[0] <= 6\n"
          "Suggested fixes:\n  dim = Dim('dim', min=3, max=6)\n");
}

TEST_F(Constraints, ANarrowedRangeWithoutAMinimum) {
  EXPECT_TRUE(dim("dim", 5, "x") <= 6);
  EXPECT_THAT(violation(),
              AllOf(HasSubstr("in the specified range satisfy the generated guard 2 <= L['x'].size()[0] and "
                              "L['x'].size()[0] <= 6\n"),
                    HasSubstr("  dim = Dim('dim', max=6)\n")));
}

TEST_F(Constraints, AMaximumIsKeptInTheFix) {
  EXPECT_TRUE(dim("dim", 9, "x", 0, {0, 100}) > 6);
  EXPECT_THAT(violation(),
              AllOf(HasSubstr("in the specified range dim <= 100 satisfy the generated guard 7 <= L['x'].size()[0] "
                              "and L['x'].size()[0] <= 100\n"),
                    HasSubstr("  dim = Dim('dim', min=7, max=100)\n")));
}

TEST_F(Constraints, EqualDims) {
  SymInt x = dim("dx", 5, "x"), y = dim("dy", 5, "y");
  EXPECT_TRUE(x == y);
  EXPECT_EQ(violation(), std::string("Constraints violated (dy)") + kMore +
                             "  - The values of dy = L['y'].size()[0] and dx = L['x'].size()[0] must always be equal.\n"
                             "Suggested fixes:\n  dy = dx\n");
}

TEST_F(Constraints, RelatedDims) {
  SymInt x = dim("dimx", 5, "x", 0, {3, 6}), y = dim("dimy", 6, "y", 0, {4, 7});
  EXPECT_TRUE(x == y - 1);
  EXPECT_EQ(violation(), std::string("Constraints violated (dimy)") + kMore +
                             "  - The values of dimy = L['y'].size()[0] must always be related to the values of dimx = "
                             "L['x'].size()[0] by dimy = dimx + 1.\n"
                             "Suggested fixes:\n  dimy = dimx + 1\n");
}

TEST_F(Constraints, DeclaredRelationsAreNoViolation) {
  SymInt x = dim("dimx", 5, "x", 0, {3, 6}), y = dim("dimx + 1", 6, "y", 0, {4, 7});
  env->declare_equal(y, x + 1);
  EXPECT_TRUE(x == y - 1);
  EXPECT_EQ(violation(), "");
  EXPECT_EQ(to_string(y), "s0 + 1");
}

TEST_F(Constraints, ADivisibleDim) {
  EXPECT_TRUE(dim("batch", 4, "x", 0, {0, 64}) % 2 == 0);
  EXPECT_EQ(
      violation(),
      std::string("Constraints violated (batch)") + kMore +
          "  - Not all values of batch = L['x'].size()[0] in the specified range batch <= 64 satisfy the generated "
          "guard (L['x'].size()[0] % 2) == 0.\n"
          "Suggested fixes:\n  _batch = Dim('_batch', min=1, max=32)\n  batch = 2*_batch\n");
}

TEST_F(Constraints, NewRootsForSeveralDims) {
  SymInt x = dim("dx", 11, "x"), y = dim("dy", 12, "y"), z = dim("dz", 14, "z");
  EXPECT_TRUE(x >= 5);
  EXPECT_TRUE(x <= 36);
  EXPECT_TRUE(y % 3 == 0);
  EXPECT_TRUE(x == y - 1);
  EXPECT_TRUE(x == z - 3);
  EXPECT_THAT(
      violation(),
      HasSubstr("Suggested fixes:\n  _dx = Dim('_dx', max=12)\n  dx = 3*_dx - 1\n  dy = 3*_dx\n  dz = 3*_dx + 2\n"));
}

TEST_F(Constraints, GuardsTooComplexForceNumbers) {
  SymInt x0 = dim("dim0_x", 3, "x", 0, {3}), x1 = dim("dim1_x", 4, "x", 1, {0, 8000});
  EXPECT_TRUE((x0 * x1) % (x0 - 1) == 0);
  EXPECT_THAT(violation(), AllOf(HasSubstr("Specializations unexpectedly required (dim0_x)!"),
                                 HasSubstr("L['x'].size()[0] resulted in a specialized value of 3"),
                                 HasSubstr("  dim0_x = 3\n  dim1_x = 2*_dim1_x\n")));
  EXPECT_EQ(violation(false), "");
}

TEST_F(Constraints, ProductsForceNumbersUnlessToldOtherwise) {
  SymInt w0 = dim("dw0", 3, "w", 0), w1 = dim("dw1", 4, "w", 1), x0 = dim("dx0", 12, "x"), y = dim("dy", 5, "y"),
         z = dim("dz", 5, "z");
  EXPECT_TRUE(w0 * w1 == x0);
  EXPECT_TRUE(y == z);
  EXPECT_THAT(violation(), AllOf(HasSubstr("Specializations unexpectedly required (dw0, dw1, dx0)!"),
                                 HasSubstr("  dw0 = 3\n  dw1 = 4\n  dx0 = 12\n  dz = dy\n")));
  EXPECT_THAT(violation(false), AllOf(StartsWith("Constraints violated (dz)!"),
                                      HasSubstr("Suggested fixes:\n  dz = dy\n"), Not(HasSubstr("dw0"))));
}

TEST_F(Constraints, ASpecialisedRootOfDerivedDims) {
  SymInt y = dim("dy", 12, "y", 0, {6}), x = y - 6;
  env->add_use(env->expression(y), {"dy - 6", "L['x'].size()[0]", 1, -6});
  env->add_use(env->expression(y), {"dy", "L['y'].size()[0]"});
  EXPECT_TRUE(x * 2 == y);
  EXPECT_THAT(
      violation(),
      AllOf(
          StartsWith("Constraints violated (dy - 6)!"), HasSubstr("Specializations unexpectedly required (dy)!"),
          HasSubstr("solving the guards generated for dy - 6 = L['x'].size()[0] resulted in a specialized value of 6"),
          HasSubstr("\n  dy = 12\n"), Not(HasSubstr("dy - 6 = 6"))));
}

TEST_F(Constraints, ANumberIsOneInDerivedDimsToo) {
  SymInt y = dim("dy", 12, "y");
  env->add_use(env->expression(y), {"dy", "L['y'].size()[0]"});
  env->add_use(env->expression(y), {"2*dy - 1", "L['x'].size()[0]", 2, -1});
  EXPECT_TRUE(y == 12);
  EXPECT_THAT(violation(),
              AllOf(StartsWith("Constraints violated (2*dy - 1, dy)!"), HasSubstr("You marked dy as dynamic"),
                    HasSubstr("You marked 2*dy - 1 as dynamic but your code specialized it to be a constant (23)"),
                    HasSubstr("Suggested fixes:\n  dy = 12\n")));
}

TEST_F(Constraints, FactsAboutUnbackedSymbolsNarrowDims) {
  SymInt t = dim("t", 8, "y"), u = env->create_unbacked();
  EXPECT_TRUE(sym_ge(u, 2).expect_true());
  EXPECT_TRUE(sym_lt(u, t).expect_true());
  EXPECT_THAT(violation(), HasSubstr("  t = Dim('t', min=3)\n"));
}

TEST_F(Constraints, ExportedRangesAllowZeroAndOneWhereTheDimDoes) {
  SymInt x = dim("dx", 2, "x", 0, {1, 2}), y = dim("dx + 1", 3, "y", 0, {2, 3});
  env->declare_equal(y, x + 1);
  EXPECT_EQ(exported_range(*env, env->expression(x)), (Range{1, 2}));
  EXPECT_EQ(exported_range(*env, env->expression(y)), (Range{2, 3}));
}

TEST_F(Constraints, RootsThatNoInputHasFollowFromDerivedOnes) {
  SymInt w = dim("2*dimx", 10, "w", 0, {6, 12});
  SymInt root = env->create_symbol(5, "", {.policy = Policy::Dynamic, .range = Range{3, 6}, .dim = "dimx"});
  env->declare_equal(w, root * 2);
  EXPECT_EQ(to_string(w), "2*s1");
  EXPECT_TRUE(w % 2 == 0);
  EXPECT_EQ(violation(), "");
  auto failing = [&](int64_t value) { return env->failing_guard([&](const std::string&) { return value; }); };
  EXPECT_EQ(failing(8), std::nullopt);
  EXPECT_EQ(failing(9), "L['w'].size()[0] == 2*dimx");
  EXPECT_EQ(failing(14), "6 <= L['w'].size()[0] and L['w'].size()[0] <= 12");
}

}  // namespace
}  // namespace umbra::sym
