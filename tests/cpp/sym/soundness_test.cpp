// Random expressions: whatever the normal form, ranges and facts make of them, their values stay what they are.
#include <limits>
#include <random>

#include "sym/sym_test.h"

namespace umbra::sym {
namespace {

/// Builds expressions twice: through the table, and as plain numbers under fixed values of the symbols. Half of the
/// seeds draw numbers of up to 64 bits, whose products need twice as many.
class Random : public ::testing::TestWithParam<int> {
 protected:
  struct Pair {
    const Expression* expression;
    Integer value;
  };

  void SetUp() override {
    generator.seed(GetParam());
    large = GetParam() % 2 == 1;
    SymbolOptions dynamic{.policy = Policy::Dynamic};
    for (int i = 0; i < 3; ++i) {
      values[i] = large && i > 0 ? pick(2, int64_t{1} << pick(20, 61)) : pick(2, 12);
      symbols[i] = env->expression(env->create_symbol(values[i], "x" + std::to_string(i), dynamic));
    }
    for (int i = 3; i < 5; ++i) {
      values[i] = large && i > 3 ? number() : pick(-9, 9);
      symbols[i] = env->expression(env->create_unbacked());
    }
    for (int i = 0; i < 5; ++i) bindings.set(symbols[i], values[i]);
  }

  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(generator); }

  int64_t number() {
    if (!large || pick(0, 2) == 0) return pick(-6, 6);
    constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
    switch (pick(0, 3)) {
      case 0: return pick(-2, 2) + (int64_t{1} << pick(30, 62));
      case 1: return pick(-2, 2) - (int64_t{1} << pick(30, 62));
      case 2: return pick(0, 1) ? kLeast : kMost;
      default: return pick(kLeast, kMost);
    }
  }

  Pair atom() {
    int64_t which = pick(0, 6);
    if (which < 5) return {symbols[which], values[which]};
    int64_t value = number();
    return {table().integer(value), value};
  }

  static Integer floored(Integer a, Integer b) {
    Integer quotient = a / b;
    return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
  }

  /// An operation on both sides; `a` alone where one of them refuses it.
  Pair combine(Pair a, Pair b) {
    const Expression* both[] = {a.expression, b.expression};
    Integer value;
    switch (pick(0, 9)) {
      case 0:
      case 1:
        if (__builtin_add_overflow(a.value, b.value, &value)) return a;
        return {table().add(a.expression, b.expression), value};
      case 2:
        if (__builtin_sub_overflow(a.value, b.value, &value)) return a;
        return {table().subtract(a.expression, b.expression), value};
      case 3:
      case 4:
        if (__builtin_mul_overflow(a.value, b.value, &value)) return a;
        return {table().multiply(a.expression, b.expression), value};
      case 5:
        if (b.value == 0) return a;
        return {table().floor_divide(a.expression, b.expression), floored(a.value, b.value)};
      case 6:
        if (b.value == 0) return a;
        return {table().modulo(a.expression, b.expression), a.value - floored(a.value, b.value) * b.value};
      case 7: return {table().extremum(Kind::Min, Terms(both, 2)), std::min(a.value, b.value)};
      case 8: return {table().bitwise(Kind::BitXor, a.expression, b.expression), a.value ^ b.value};
      default: return {table().extremum(Kind::Max, Terms(both, 2)), std::max(a.value, b.value)};
    }
  }

  Pair integer(int depth) {
    if (depth == 0) return atom();
    Pair a = integer(depth - 1), b = integer(pick(0, depth - 1));
    try {
      return combine(a, b);
    } catch (const OverflowError&) {  // a coefficient beyond 128 bits: refused
      return a;
    }
  }

  Pair condition(int depth) {
    Pair a = integer(depth), b = integer(1);
    switch (pick(0, 3)) {
      case 0: return {table().relation(Kind::Eq, a.expression, b.expression), a.value == b.value};
      case 1: return {table().relation(Kind::Ne, a.expression, b.expression), a.value != b.value};
      case 2: return {table().relation(Kind::Lt, a.expression, b.expression), a.value < b.value};
      default: return {table().relation(Kind::Le, a.expression, b.expression), a.value <= b.value};
    }
  }

  /// The value, or none where it is too large on the way there.
  void expect_value(const Expression* a, Integer value, const char* what) {
    std::optional<Number> number = env->evaluate(a, bindings);
    ASSERT_TRUE(large || number.has_value()) << what << ": " << to_text(a);
    EXPECT_TRUE(!number || number->integer == value)
        << what << ": " << to_text(a) << " is " << integer_text(number->integer) << ", not " << integer_text(value);
  }

  ExpressionTable& table() { return env->table(); }
  IntrusivePtr<ShapeEnv> env = make_counted<ShapeEnv>();
  std::mt19937 generator;
  const Expression* symbols[5];
  int64_t values[5];
  Bindings bindings;
  bool large = false;
};

TEST_P(Random, NormalFormKeepsTheValue) {
  for (int i = 0; i < 300; ++i) {
    Pair one = integer(static_cast<int>(pick(1, 4)));
    expect_value(one.expression, one.value, "normal form");
    try {
      expect_value(table().expand(one.expression), one.value, "expanded");
    } catch (const OverflowError&) {  // refused: multiplied out, it does not fit
    }
    if (HasFailure()) return;
  }
}

TEST_P(Random, RangesContainTheValue) {
  for (int i = 0; i < 300; ++i) {
    Pair one = integer(static_cast<int>(pick(1, 4)));
    EXPECT_TRUE(env->range(one.expression).contains(one.value))
        << to_text(one.expression) << " = " << integer_text(one.value) << " in "
        << to_string(env->range(one.expression));
  }
}

TEST_P(Random, TextComesBackAsTheSameExpression) {
  for (int i = 0; i < 200; ++i) {
    Pair one = integer(static_cast<int>(pick(1, 3)));
    expect_value(parse(*env, to_text(one.expression)), one.value, "text");
    expect_value(parse(*env, to_srepr(one.expression)), one.value, "srepr");
  }
}

TEST_P(Random, AnswersFollowFromFacts) {
  for (int i = 0; i < 60; ++i) {
    Pair question = condition(2);
    if (int answer = env->known(question.expression); answer >= 0) {
      EXPECT_EQ(answer, question.value != 0) << to_text(question.expression);
    }
    // Learn something true, then ask on.
    Pair fact = condition(static_cast<int>(pick(0, 2)));
    try {
      env->assume(fact.value ? fact.expression : table().logical_not(fact.expression));
    } catch (const OverflowError&) {  // refused; what else it says of true facts is a failure
      return;
    }
    Pair number = integer(2);
    expect_value(env->simplify(number.expression), number.value, "simplified");
    EXPECT_TRUE(env->range(number.expression).contains(number.value)) << to_text(number.expression);
    if (int answer = env->known(question.expression); answer >= 0) {
      EXPECT_EQ(answer, question.value != 0) << to_text(question.expression) << " after " << to_text(fact.expression);
    }
    for (int j = 0; j < 5; ++j)
      EXPECT_TRUE(env->range(symbols[j]).contains(values[j]))
          << "after " << to_text(fact.expression) << (fact.value ? "" : " (false)");
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Random, ::testing::Range(0, seeds(40)));

}  // namespace
}  // namespace umbra::sym
