// Large numbers, deep expressions, many symbols, and symbols without their environment: right, or refused.
#include "sym/sym_test.h"

namespace umbra::sym {
namespace {

constexpr int64_t kLarge = int64_t{1} << 32;

TEST_F(Symbols, QuotientsAndRemaindersOfLargeProductsStayOpen) {
  SymInt u = env->create_unbacked({kLarge}), v = env->create_unbacked({kLarge});
  EXPECT_EQ(to_string((u * v) / 3), "((u1*u2)//3)");
  EXPECT_EQ(to_string((u * v) % 7), "Mod(u1*u2, 7)");
  Integer square = Integer{kLarge} * kLarge;
  EXPECT_EQ(env->range(env->expression(u * v)).lower, square);
  ExpressionTable& table = env->table();
  EXPECT_EQ(env->known(table.relation(Kind::Le, table.integer(square), env->expression(u * v))), 1);
  EXPECT_EQ(env->known(table.relation(Kind::Lt, table.integer(square), env->expression(u * v))), -1);
}

TEST_F(Symbols, ARangeBeyond128BitsIsNoPoint) {
  SymInt u = env->create_unbacked({kLarge}), v = env->create_unbacked({kLarge});
  SymInt product = u * u * v * v * v;  // at least 2**160
  Range range = env->range(env->expression(product));
  EXPECT_FALSE(range.is_point());
  EXPECT_EQ(range.upper, kInfinity);
  EXPECT_TRUE((product / 3).is_symbolic());
  EXPECT_FALSE(sym_eq(product, u * v).known_true());
}

TEST_F(Symbols, TheExamplesValueMayNeedMoreThan64Bits) {
  SymInt n = env->create_symbol(int64_t{1} << 31, "n", {.policy = Policy::Dynamic});
  EXPECT_TRUE(n * n * n > 100);
  EXPECT_THROW((n * n * n).guard_int(), OverflowError);
  EXPECT_EQ(env->guard_integer(env->expression(n * n * n)), Integer{1} << 93);
}

TEST_F(Symbols, AnExampleThatDoesNotFit128BitsIsRefused) {
  SymInt n = env->create_symbol(int64_t{1} << 62, "n", {.policy = Policy::Dynamic});
  SymInt m = env->create_symbol(3, "m", {.policy = Policy::Dynamic});
  EXPECT_THROW((void)(n * n * n > m), OverflowError);
  EXPECT_THROW((void)(n * (int64_t{1} << 62) * (int64_t{1} << 62) * 8), OverflowError);
}

TEST_F(Symbols, NumbersThatASymIntCannotHoldAreExpressionsOrRefused) {
  SymInt low = s0 * 0 - (int64_t{1} << 62);
  EXPECT_EQ(low.value(), -(int64_t{1} << 62));
  EXPECT_THROW(low - 5, Error);
  SymInt lower = (s0 - (int64_t{1} << 62) - 5) - s0;
  EXPECT_EQ(to_string(lower), "-4611686018427387909");
  EXPECT_EQ(lower.guard_int(), -4611686018427387909);
  EXPECT_THROW(SymInt{std::numeric_limits<int64_t>::min()}, Error);
}

TEST_F(Symbols, ContradictoryFactsAreReported) {
  SymInt v = env->create_unbacked();
  env->assume(env->expression(sym_ge(u0, 5)));
  EXPECT_FALSE(sym_lt(u0, 3).expect_true());
  EXPECT_THROW(env->constrain_range(env->expression(u0), {0, 3}), Error);
  env->assume(env->expression(sym_le(v, 2)));
  EXPECT_FALSE(sym_eq(u0, v).expect_true());
}

TEST_F(Symbols, AGuardThatDividesByZeroIsNotKept) {
  EXPECT_TRUE(s0 / (s1 - 2) == 2);  // 8 // 4
  auto check = [&](int64_t x, int64_t y) {
    return env->failing_guard([&](const std::string& source) {
      return source == source_of("x", 0) ? x : source == source_of("x", 1) ? y : 4;
    });
  };
  EXPECT_EQ(check(8, 6), std::nullopt);
  EXPECT_EQ(check(12, 8), std::nullopt);
  EXPECT_NE(check(8, 2), std::nullopt);
}

TEST_F(Symbols, ADivisionThatMayFailIsKeptButItsValueIsKnown) {
  SymInt n = env->create_symbol(7, "n", {.policy = Policy::Dynamic, .size = false});
  EXPECT_EQ(to_string(n / n), "(s3//s3)");
  EXPECT_EQ(to_string((n * s0) % n), "PythonMod(s0*s3, s3)");
  EXPECT_TRUE(sym_eq(n / n, 1).known_true());
  EXPECT_TRUE(sym_eq((n * s0) / n, s0).known_true());
  EXPECT_EQ(to_string(s0 * s1 / s0), "s1");  // sizes are not zero
}

TEST_F(Symbols, WhatAProgramTakesFromSizesOfTwoAndMoreIsChecked) {
  EXPECT_FALSE(s0 == 1);
  EXPECT_TRUE(s1 >= 0);  // holds for every size
  ASSERT_EQ(env->assumptions().size(), 1);
  EXPECT_EQ(to_text(env->assumptions()[0].condition), "Ne(s0, 1)");
  EXPECT_TRUE(env->guards().empty());
}

TEST_F(Symbols, AComparisonThatAProgramDoesNotAskStaysACondition) {
  SymBool one = sym_eq(s0, 1), all = sym_ge(s0, 0);
  EXPECT_EQ(to_string(one), "Eq(s0, 1)");
  EXPECT_FALSE(all.is_symbolic());  // holds for every size
  EXPECT_TRUE(one.known_false());
  EXPECT_TRUE(env->assumptions().empty());
  EXPECT_TRUE(sym_not(one).guard_bool());
  EXPECT_FALSE(one.guard_bool());
  ASSERT_EQ(env->assumptions().size(), 1);
  EXPECT_EQ(to_text(env->assumptions()[0].condition), "Ne(s0, 1)");
  EXPECT_TRUE(env->guards().empty());
}

TEST_F(Symbols, BitsOfSymbolsFollowPython) {
  SymInt bits = sym_bitwise(SymOp::BitAnd, s0, 6);
  EXPECT_EQ(to_string(bits), "BitwiseFn_bitwise_and(s0, 6)");
  Bindings bindings;
  bindings.set(env->expression(s0), int64_t{13});
  EXPECT_EQ(env->evaluate(bits, bindings), 4);
  EXPECT_EQ(env->evaluate(sym_bitwise(SymOp::BitXor, s0, -1), bindings), -14);
  EXPECT_TRUE(sym_le(bits, 6).known_true());
}

// ---- depth

constexpr int kLevels = 100'000;

TEST_F(Symbols, DeepExpressionsAreNotWalkedByRecursion) {
  SymInt value = u0;
  for (int i = 0; i < kLevels; ++i) value = (value * 3 + s0) % (i % 2 ? s1 : s2);
  const Expression* expression = env->expression(value);
  EXPECT_GT(expression->depth(), kLevels);
  Bindings bindings;
  bindings.set(expression->env().expression(u0), int64_t{3});
  for (SymInt symbol : {s0, s1, s2}) bindings.set(env->expression(symbol), symbol.hint());
  int64_t plain = 3;
  for (int i = 0; i < kLevels; ++i) plain = (plain * 3 + 8) % (i % 2 ? 6 : 4);
  EXPECT_EQ(env->evaluate(value, bindings), plain);
  EXPECT_GE(env->bound_range(value).lower, 0);
  EXPECT_FALSE(to_string(value).empty());
  EXPECT_THROW(to_srepr(expression), ValueError);
  EXPECT_TRUE(sym_lt(value, s1 + 7).expect_true());  // learns, and simplifies all of it again
  EXPECT_TRUE(sym_eq(s0, 8).expect_true());
  EXPECT_EQ(env->evaluate(env->simplify(value), bindings), plain);
}

TEST_F(Symbols, DeepConditionsAreNotWalkedByRecursion) {
  SymBool condition = sym_lt(u0, 5);
  for (int i = 0; i < kLevels; ++i)
    condition = i % 2 ? sym_and(condition, sym_ne(u0, i)) : sym_or(condition, sym_eq(u0, i));
  EXPECT_FALSE(condition.known_true());
  EXPECT_TRUE(condition.expect_true());
  EXPECT_TRUE(condition.known_true());
}

TEST_F(Symbols, TwoDeepExpressionsCanBeCompared) {
  SymInt a = u0, b = s0;
  for (int i = 0; i < kLevels; ++i) {
    a = a % s1 + (s1 + a) / s2;
    b = b % s1 + (s1 + b) / s2;
    if (i > 50) i += 1000;  // sums share their parts: as trees they are beyond counting
  }
  EXPECT_NE(to_string(sym_max(a, b)), "");
  EXPECT_FALSE(sym_eq(a, b).known_true());
}

// ---- many symbols

TEST_F(Symbols, LongSumsAreMadeAndFoundAgain) {
  constexpr int kCount = 20'000;
  std::vector<const Expression*> symbols;
  for (int i = 0; i < kCount; ++i) symbols.push_back(env->expression(env->create_unbacked({0, 9})));
  const Expression* sum = env->table().add(symbols);
  EXPECT_EQ(sum->args().size(), kCount);
  std::reverse(symbols.begin(), symbols.end());
  EXPECT_EQ(env->table().add(symbols), sum);
  EXPECT_EQ(env->range(sum).upper, 9 * kCount);
  EXPECT_EQ(free_symbols(sum).size(), kCount);
}

TEST_F(Symbols, SumsGrowTermByTermToTheSame) {
  std::vector<const Expression*> symbols;
  const Expression* sum = env->expression(s0 + 7);
  for (int i = 0; i < 300; ++i) {
    symbols.push_back(env->expression(env->create_unbacked()));
    sum = env->table().add(sum, symbols.back());
  }
  symbols.push_back(env->expression(s0 + 7));
  EXPECT_EQ(env->table().add(symbols), sum);
  EXPECT_EQ(env->table().subtract(sum, symbols[5]), env->table().add(sum, env->table().negate(symbols[5])));
  EXPECT_EQ(env->table().subtract(sum, sum), env->table().integer(0));
}

// ---- lifetimes

TEST(Lifetime, ASymbolicNumberThatOutlivesItsEnvironmentIsAnError) {
  SymInt size;
  SymBool question;
  SymFloat real;
  {
    auto env = make_counted<ShapeEnv>();
    size = env->create_symbol(8, "x", {.policy = Policy::Dynamic});
    question = sym_lt(size, env->create_unbacked());
    real = env->create_unbacked_float();
  }
  EXPECT_THROW((void)(size + 1), Error);
  EXPECT_THROW((void)(size == 4), Error);
  EXPECT_THROW((void)size.hint(), Error);
  EXPECT_THROW((void)question.guard_bool(), Error);
  EXPECT_THROW((void)real.guard_float(), Error);
  for (int i = 0; i < 500; ++i) make_counted<ShapeEnv>()->create_unbacked();  // others come to live there
  EXPECT_THROW((void)to_string(size), Error);
}

}  // namespace
}  // namespace umbra::sym
