#include <gmock/gmock.h>

#include "sym/sym_test.h"

namespace umbra::sym {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- making symbols
TEST(ShapeEnvSymbols, DuckShapingSharesASymbolAmongEqualSizes) {
  auto env = make_counted<ShapeEnv>();
  SymInt a = env->create_symbol(8, source_of("x")), b = env->create_symbol(8, source_of("y"));
  EXPECT_TRUE(a.same(b));
  EXPECT_FALSE(a.same(env->create_symbol(9, source_of("z"))));
  EXPECT_THAT(env->guard_texts(), ElementsAre("L['y'].size()[0] == L['x'].size()[0]"));
}

TEST(ShapeEnvSymbols, DuckShapingCanBeSwitchedOff) {
  auto env = make_counted<ShapeEnv>(ShapeEnvOptions{.duck_shape = false});
  EXPECT_FALSE(env->create_symbol(8, "a").same(env->create_symbol(8, "b")));
}

TEST(ShapeEnvSymbols, ZeroAndOneAreNumbers) {
  auto env = make_counted<ShapeEnv>();
  EXPECT_FALSE(env->create_symbol(1, "a").is_symbolic());
  EXPECT_FALSE(env->create_symbol(0, "a").is_symbolic());
  auto general = make_counted<ShapeEnv>(ShapeEnvOptions{.specialize_zero_one = false});
  EXPECT_TRUE(general->create_symbol(1, "a").is_symbolic());
}

TEST(ShapeEnvSymbols, StaticSizesAreNumbers) {
  auto env = make_counted<ShapeEnv>();
  EXPECT_TRUE(env->create_symbol(7, "a", {.policy = Policy::Static}).same(7));
}

TEST(ShapeEnvSymbols, NamesFollowTheSourceIfAsked) {
  auto env = make_counted<ShapeEnv>(ShapeEnvOptions{.naming = Naming::BySource});
  EXPECT_EQ(to_string(env->create_symbol(5, "L['x'].size()[0]")), "s77");
  EXPECT_EQ(to_string(env->create_symbol(6, "L['x'].size()[1]")), "s27");
  EXPECT_EQ(to_string(env->create_symbol(7, "L['n']", {.size = false})), "s86");
}

TEST(ShapeEnvSymbols, AHintOutsideThePromisedRangeIsAnError) {
  auto env = make_counted<ShapeEnv>();
  try {
    env->create_symbol(5, "a", {.policy = Policy::Dynamic, .range = Range{6}});
    FAIL();
  } catch (const ConstraintViolationError& error) {
    EXPECT_STREQ(error.what(), "5 not in range [6, int_oo]");
  }
}

TEST(ShapeEnvSymbols, APromisedRangeIsKnown) {
  auto env = make_counted<ShapeEnv>();
  SymInt a = env->create_symbol(5, "a", {.policy = Policy::Dynamic, .range = Range{3, 6}});
  EXPECT_EQ(env->bound_range(a), (Range{3, 6}));
  EXPECT_TRUE(a < 7);
  EXPECT_TRUE(a >= 3);
  EXPECT_TRUE(env->guards().empty());
}

// ---- what is known without guards
class Known : public Symbols {};

TEST_F(Known, SizesAreAtLeastTwo) {
  EXPECT_FALSE(s0 == 0);
  EXPECT_FALSE(s0 == 1);
  EXPECT_TRUE(s0 * s1 > 3);
  EXPECT_TRUE(s0 + s1 != 3);
  EXPECT_TRUE(env->guards().empty());
}

TEST_F(Known, ProductsOfSumsAreMultipliedOut) {
  EXPECT_TRUE((s0 + 1) * (s1 + 2) == s0 * s1 + s0 * 2 + s1 + 2);
  EXPECT_TRUE(s0 * (s1 + 1) > s0 * s1);
  EXPECT_TRUE(env->guards().empty());
}

TEST_F(Known, WholeBlocksAndRestsAddUp) {
  EXPECT_TRUE(s0 / 4 * 4 + s0 % 4 == s0);
  EXPECT_TRUE(s0 / s1 * s1 + s0 % s1 == s0);
  EXPECT_TRUE(s0 / 4 * 4 <= s0);
  EXPECT_TRUE(s0 % 4 < 4);
  EXPECT_TRUE(env->guards().empty());
}

TEST_F(Known, AMaximumIsAtLeastEachOfItsArguments) {
  SymInt most = sym_max(sym_max(s0, s1), u0), least = sym_min(s0, u0);
  for (SymInt one : {s0, s1, u0}) EXPECT_TRUE(sym_le(0, most - one).known_true());
  EXPECT_TRUE(sym_le(least, u0).known_true());
  EXPECT_TRUE(sym_le(2 * s0 + 1, 2 * most + 1).known_true());
  EXPECT_FALSE(sym_lt(0, most - s0).known_true());
  EXPECT_FALSE(sym_le(0, sym_min(s0, s1) - s0).known_true());
}

TEST_F(Known, ParityDecidesEquality) {
  EXPECT_FALSE(s0 * 2 == s1 * 2 + 1);
  EXPECT_FALSE(s0 * 4 + s1 * 6 == 7);
  EXPECT_TRUE(env->guards().empty());
}

TEST_F(Known, TheLargestIntegerIsANumberLikeOthers) {
  EXPECT_FALSE(sym_lt(u0 * s0, INT64_MAX).known_true());
  EXPECT_FALSE(sym_lt(u0 * s0, INT64_MAX).known_false());
  EXPECT_TRUE(s0 < INT64_MAX);
  EXPECT_THAT(guards(), ElementsAre("s0 < 9223372036854775807"));
}

TEST_F(Known, AQuestionAskedStaticallyLeavesNoGuard) {
  EXPECT_FALSE(known_equal(s0, s1));
  EXPECT_FALSE(sym_lt(s0, 100).known_true());
  EXPECT_FALSE(sym_lt(s0, 100).known_false());
  EXPECT_TRUE(env->guards().empty());
}

// ---- guards
class Guards : public Symbols {};

TEST_F(Guards, ABranchOnASizeIsAnsweredByTheHintAndRemembered) {
  EXPECT_TRUE(s0 > 4);
  EXPECT_THAT(guards(), ElementsAre("s0 > 4"));
  EXPECT_TRUE(s0 > 4);
  EXPECT_TRUE(s0 >= 5);
  EXPECT_FALSE(s0 <= 3);
  EXPECT_EQ(env->guards().size(), 1u);
  EXPECT_EQ(range(s0), (Range{5}));
}

TEST_F(Guards, AFalseAnswerRecordsTheOpposite) {
  EXPECT_FALSE(s0 == s1);
  EXPECT_FALSE(s0 < 5);
  EXPECT_THAT(guards(), ElementsAre("Ne(s0, s1)", "s0 >= 5"));
  EXPECT_FALSE(s1 == s0);
  EXPECT_EQ(env->guards().size(), 2u);
}

TEST_F(Guards, EqualSizesBecomeOneSymbol) {
  SymInt other = env->create_symbol(8, "z", {.policy = Policy::Dynamic});
  EXPECT_TRUE(s0 == other);
  EXPECT_EQ(to_string(other), "s0");
  EXPECT_TRUE((other + s1).same(s0 + s1));
  EXPECT_TRUE(other * 2 == s0 * 2);
  EXPECT_EQ(env->guards().size(), 1u);
}

TEST_F(Guards, AnEquationIsSolvedForTheYoungestSymbol) {
  EXPECT_TRUE(s0 == s2 + 4);
  EXPECT_EQ(to_string(s2), "s0 - 4");
  EXPECT_EQ(range(s0), (Range{6}));
  EXPECT_TRUE(s2 * 2 == s0 * 2 - 8);
  EXPECT_EQ(env->guards().size(), 1u);
}

TEST_F(Guards, AskingForTheNumberSpecialises) {
  EXPECT_EQ(s0.guard_int(), 8);
  EXPECT_THAT(guards(), ElementsAre("Eq(s0, 8)"));
  EXPECT_EQ(to_string(s0 * 2 + s1), "s1 + 16");
  EXPECT_TRUE((s0 + 1).same(9));
}

TEST_F(Guards, SpecialisingAProductKeepsTheRelation) {
  EXPECT_EQ((s0 * s1).guard_int(), 48);
  EXPECT_TRUE(s0 * s1 == 48);
  EXPECT_EQ(env->guards().size(), 1u);
  EXPECT_EQ(range(s0), (Range{2}));
}

TEST_F(Guards, DivisibilityIsRemembered) {
  EXPECT_TRUE(s0 % 4 == 0);
  EXPECT_TRUE((s0 % 4).same(0));
  EXPECT_TRUE(s0 / 4 * 4 == s0);
  EXPECT_THAT(guards(), ElementsAre("Eq(Mod(s0, 4), 0)"));
}

TEST_F(Guards, BoundsPropagateThroughRelations) {
  EXPECT_TRUE(s2 < s1);
  EXPECT_TRUE(s2 > 3);
  EXPECT_EQ(range(s1), (Range{5}));
  EXPECT_TRUE(s0 / 2 >= 4);
  EXPECT_EQ(range(s0), (Range{8}));
}

TEST_F(Guards, TheyKnowWhereTheyComeFrom) {
  EXPECT_TRUE(s0 > 4);
  ASSERT_TRUE(env->guards()[0].location);
  EXPECT_THAT(env->guards()[0].location->text(), HasSubstr("TestBody"));  // with or without debug information
}

TEST_F(Guards, AFrozenEnvAnswersAndRecordsNothing) {
  env->freeze();
  EXPECT_TRUE(s0 > 4);
  EXPECT_EQ(s0.guard_int(), 8);
  EXPECT_TRUE(env->guards().empty());
}

TEST_F(Guards, PythonTextOverTheInputs) {
  EXPECT_TRUE(s0 % 2 == 0);
  EXPECT_TRUE(s1 * 3 != 1);
  EXPECT_TRUE(s0 * s1 * 3 >= 20);
  EXPECT_TRUE(s2 == s1 - 2);
  EXPECT_TRUE(s1 * 2 != s0);
  EXPECT_THAT(env->guard_texts(),
              ElementsAre("(L['x'].size()[0] % 2) == 0", "3*L['x'].size()[0]*L['x'].size()[1] >= 20",
                          "L['y'].size()[0] == ((-2) + L['x'].size()[1])", "L['x'].size()[0] != (2*L['x'].size()[1])"));
}

TEST_F(Guards, InputsAreCheckedAgainstThem) {
  EXPECT_TRUE(s0 % 2 == 0);
  EXPECT_TRUE(s1 > 4);
  auto failing = [&](int64_t x0, int64_t x1, int64_t y0) {
    return env->failing_guard([&](const std::string& source) {
      return source == source_of("x", 0) ? x0 : source == source_of("x", 1) ? x1 : y0;
    });
  };
  EXPECT_EQ(failing(10, 5, 3), std::nullopt);
  EXPECT_EQ(failing(9, 5, 3), "(L['x'].size()[0] % 2) == 0");
  EXPECT_EQ(failing(10, 4, 3), "L['x'].size()[1] > 4");
  EXPECT_EQ(failing(10, 5, 1), "2 <= L['y'].size()[0]");
}

TEST_F(Guards, SymbolsOfTwoEnvsDoNotMix) {
  auto other = make_counted<ShapeEnv>();
  EXPECT_THROW(s0 + other->create_symbol(5, "a"), Error);
}

// ---- unbacked symbols
class Unbacked : public Symbols {};

TEST_F(Unbacked, ABranchIsAnErrorThatSaysWhatToDo) {
  try {
    if (u0 == 0) FAIL();
    FAIL();
  } catch (const GuardOnDataDependentSymNode& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("Could not guard on data-dependent expression Eq(u0, 0) (unhinted: Eq(u0, 0)).  "
                          "(Size-like symbols: none)"));
    EXPECT_THAT(error.what(), HasSubstr("torch._check(u0 != 0)"));
  }
  EXPECT_THROW(u0.guard_int(), GuardOnDataDependentSymNode);
}

TEST_F(Unbacked, AnExpectationBecomesAFactAndARuntimeAssert) {
  EXPECT_TRUE(sym_ge(u0, 2).expect_true("u0 must be large"));
  EXPECT_TRUE(sym_lt(u0, s0).expect_true());
  EXPECT_TRUE(u0 >= 2);
  EXPECT_TRUE(u0 != 0);
  EXPECT_EQ(range(s0), (Range{3}));
  ASSERT_EQ(env->runtime_asserts().size(), 2u);
  EXPECT_EQ(to_text(env->runtime_asserts()[0].condition), "u0 >= 2");
  EXPECT_EQ(env->runtime_asserts()[0].message, "u0 must be large");
  EXPECT_TRUE(env->guards().empty());
}

TEST_F(Unbacked, AnExpectationKnownToFailIsFalse) {
  EXPECT_TRUE(sym_ge(u0, 5).expect_true());
  EXPECT_FALSE(sym_lt(u0, 3).expect_true());
}

TEST_F(Unbacked, AnEqualityReplacesIt) {
  EXPECT_TRUE(sym_eq(u0, s0 * 2).expect_true());
  EXPECT_EQ(to_string(u0 + 1), "2*s0 + 1");
  EXPECT_TRUE(u0 > 15);
  EXPECT_THAT(guards(), ElementsAre("2*s0 > 15"));
}

TEST_F(Unbacked, SizeLikeSymbolsAreTakenToBeAboveOneWhereThatIsAsked) {
  EXPECT_FALSE(sym_eq(u0, 1).guard_or(false));
  EXPECT_TRUE(sym_eq(u0, 1).guard_or(true));
  EXPECT_THROW(env->guard_size_oblivious(env->expression(sym_eq(u0, 1))), GuardOnDataDependentSymNode);
  env->mark_size_like(u0);
  EXPECT_TRUE(sym_eq(u0, 1).guard_or(true));
  EXPECT_FALSE(env->guard_size_oblivious(env->expression(sym_eq(u0, 1))));
  EXPECT_TRUE(env->guard_size_oblivious(env->expression(sym_gt(u0 * 2, 3))));
  EXPECT_EQ(range(u0), (Range{0}));
  EXPECT_THROW((void)(u0 == 1), GuardOnDataDependentSymNode);
}

TEST_F(Unbacked, BoolsAndFloats) {
  SymBool flag = env->create_unbacked_bool();
  EXPECT_EQ(to_string(flag), "Eq(u1, 1)");
  SymFloat number = env->create_unbacked_float();
  EXPECT_EQ(to_string(sym_float_binary(SymOp::Add, number, 1.0)), "zuf0 + 1.0");
}

// ---- evaluation
TEST_F(Symbols, ExpressionsEvaluateUnderBindings) {
  Bindings bindings;
  bindings.set(env->expression(s0), int64_t{10});
  EXPECT_EQ(env->evaluate(s0 * 3 + s0 / 4, bindings), 32);
  EXPECT_EQ(env->evaluate(s0 * s1, bindings), std::nullopt);
}

TEST_F(Symbols, SubstitutionRebuilds) {
  const Expression* a = env->expression(s0 * s1 + 1);
  const Expression* b = env->substitute(
      a, [&](const Expression* symbol) { return symbol == env->expression(s0) ? env->table().integer(3) : symbol; });
  EXPECT_EQ(to_text(b), "3*s1 + 1");
  EXPECT_EQ(free_symbols(a).size(), 2u);
}

}  // namespace
}  // namespace umbra::sym
