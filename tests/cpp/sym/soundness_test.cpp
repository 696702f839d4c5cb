// Random expressions: whatever the normal form, ranges and facts make of them, their values stay what they are.
#include <random>

#include "sym/sym_test.h"

namespace umbra::sym {
namespace {

/// Builds expressions twice: through the table, and as plain numbers under fixed values of the symbols.
class Random : public ::testing::TestWithParam<int> {
 protected:
  struct Pair {
    const Expression* expression;
    int64_t value;
  };

  void SetUp() override {
    generator.seed(GetParam());
    SymbolOptions dynamic{.policy = Policy::Dynamic};
    for (int i = 0; i < 3; ++i) {
      values[i] = pick(2, 12);
      symbols[i] = env->expression(env->create_symbol(values[i], "x" + std::to_string(i), dynamic));
    }
    for (int i = 3; i < 5; ++i) {
      values[i] = pick(-9, 9);
      symbols[i] = env->expression(env->create_unbacked());
    }
    for (int i = 0; i < 5; ++i) bindings.set(symbols[i], values[i]);
  }

  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(generator); }

  Pair atom() {
    int64_t which = pick(0, 6);
    if (which >= 5) {
      int64_t value = pick(-6, 6);
      return {table().integer(value), value};
    }
    return {symbols[which], values[which]};
  }

  Pair integer(int depth) {
    if (depth == 0) return atom();
    Pair a = integer(depth - 1), b = integer(pick(0, depth - 1));
    const Expression* both[] = {a.expression, b.expression};
    switch (pick(0, 8)) {
      case 0:
      case 1: return {table().add(a.expression, b.expression), a.value + b.value};
      case 2: return {table().subtract(a.expression, b.expression), a.value - b.value};
      case 3:
      case 4: return {table().multiply(a.expression, b.expression), a.value * b.value};
      case 5:
      case 6: {
        if (b.value == 0) return a;
        double exact = std::floor(static_cast<double>(a.value) / static_cast<double>(b.value));
        bool quotient = pick(0, 1);
        int64_t floored = static_cast<int64_t>(exact);
        if (std::abs(a.value) > (int64_t{1} << 40)) return b;
        if (quotient) return {table().floor_divide(a.expression, b.expression), floored};
        return {table().modulo(a.expression, b.expression), a.value - floored * b.value};
      }
      case 7: return {table().extremum(Kind::Min, Terms(both, 2)), std::min(a.value, b.value)};
      default: return {table().extremum(Kind::Max, Terms(both, 2)), std::max(a.value, b.value)};
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

  void expect_value(const Expression* a, int64_t value, const char* what) {
    std::optional<Number> number = env->evaluate(a, bindings);
    ASSERT_TRUE(number.has_value()) << what << ": " << to_text(a);
    EXPECT_EQ(number->integer, value) << what << ": " << to_text(a);
  }

  ExpressionTable& table() { return env->table(); }
  IntrusivePtr<ShapeEnv> env = make_counted<ShapeEnv>();
  std::mt19937 generator;
  const Expression* symbols[5];
  int64_t values[5];
  Bindings bindings;
};

TEST_P(Random, NormalFormKeepsTheValue) {
  for (int i = 0; i < 300; ++i) {
    Pair one = integer(static_cast<int>(pick(1, 4)));
    expect_value(one.expression, one.value, "normal form");
    expect_value(table().expand(one.expression), one.value, "expanded");
    if (HasFailure()) return;
  }
}

TEST_P(Random, RangesContainTheValue) {
  for (int i = 0; i < 300; ++i) {
    Pair one = integer(static_cast<int>(pick(1, 4)));
    EXPECT_TRUE(env->range(one.expression).contains(one.value))
        << to_text(one.expression) << " = " << one.value << " in " << to_string(env->range(one.expression));
  }
}

TEST_P(Random, TextComesBackAsTheSameExpression) {
  for (int i = 0; i < 200; ++i) {
    const Expression* one = integer(static_cast<int>(pick(1, 3))).expression;
    expect_value(parse(*env, to_text(one)), env->evaluate(one, bindings)->integer, "text");
    expect_value(parse(*env, to_srepr(one)), env->evaluate(one, bindings)->integer, "srepr");
  }
}

TEST_P(Random, AnswersFollowFromFacts) {
  for (int i = 0; i < 60; ++i) {
    Pair question = condition(2);
    if (int answer = env->known(question.expression); answer >= 0) {
      EXPECT_EQ(answer, question.value) << to_text(question.expression);
    }
    // Learn something true, then ask on.
    Pair fact = condition(static_cast<int>(pick(0, 2)));
    env->assume(fact.value ? fact.expression : table().logical_not(fact.expression));
    Pair number = integer(2);
    expect_value(env->simplify(number.expression), number.value, "simplified");
    EXPECT_TRUE(env->range(number.expression).contains(number.value)) << to_text(number.expression);
    if (int answer = env->known(question.expression); answer >= 0) {
      EXPECT_EQ(answer, question.value) << to_text(question.expression) << " after " << to_text(fact.expression);
    }
    for (int j = 0; j < 5; ++j)
      EXPECT_TRUE(env->range(symbols[j]).contains(values[j]))
          << "after " << to_text(fact.expression) << (fact.value ? "" : " (false)");
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Random, ::testing::Range(0, 40));

}  // namespace
}  // namespace umbra::sym
