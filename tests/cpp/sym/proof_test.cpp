// Answers given without a guard are theorems: z3 finds no values for which they fail.
#include <z3++.h>

#include <random>

#include "sym/sym_test.h"

namespace umbra::sym {
namespace {

class Proof : public ::testing::TestWithParam<int> {
 protected:
  struct Pair {
    const Expression* expression;
    z3::expr formula;
  };

  void SetUp() override {
    generator.seed(GetParam());
    solver.set("timeout", 200u);
    for (int i = 0; i < 3; ++i) {
      const char* name = kNames[i];
      SymInt symbol = i < 2 ? env->create_symbol(5 + i, name, {.policy = Policy::Dynamic}) : env->create_unbacked();
      symbols.push_back({env->expression(symbol), context.int_const(name)});
      if (i < 2) solver.add(symbols.back().formula >= 2);
    }
  }

  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(generator); }

  Pair integer(int depth) {
    ExpressionTable& table = env->table();
    if (depth == 0) {
      int64_t which = pick(0, 4);
      if (which < 3) return symbols[which];
      int64_t value = pick(-5, 9);
      return {table.integer(value), context.int_val(value)};
    }
    Pair a = integer(depth - 1);
    if (pick(0, 3) == 0) {
      int64_t divisor = pick(2, 4);
      const Expression* by = table.integer(divisor);
      if (pick(0, 1)) return {table.floor_divide(a.expression, by), a.formula / context.int_val(divisor)};
      return {table.modulo(a.expression, by), z3::mod(a.formula, context.int_val(divisor))};
    }
    Pair b = integer(pick(0, depth - 1));
    const Expression* both[] = {a.expression, b.expression};
    switch (pick(0, 4)) {
      case 0: return {table.subtract(a.expression, b.expression), a.formula - b.formula};
      case 1: return {table.extremum(Kind::Min, Terms(both, 2)), z3::min(a.formula, b.formula)};
      case 2: return {table.extremum(Kind::Max, Terms(both, 2)), z3::max(a.formula, b.formula)};
      case 3: {
        int64_t factor = pick(-3, 4);
        return {table.multiply(a.expression, table.integer(factor)), a.formula * context.int_val(factor)};
      }
      default: return {table.add(a.expression, b.expression), a.formula + b.formula};
    }
  }

  Pair condition(int depth) {
    Pair a = integer(depth), b = integer(1);
    switch (pick(0, 3)) {
      case 0: return {env->table().relation(Kind::Eq, a.expression, b.expression), a.formula == b.formula};
      case 1: return {env->table().relation(Kind::Ne, a.expression, b.expression), a.formula != b.formula};
      case 2: return {env->table().relation(Kind::Lt, a.expression, b.expression), a.formula < b.formula};
      default: return {env->table().relation(Kind::Le, a.expression, b.expression), a.formula <= b.formula};
    }
  }

  /// Whether some values that agree with all facts satisfy the formula; "do not know" counts as no.
  bool possible(const z3::expr& formula) {
    solver.push();
    solver.add(formula);
    bool found = solver.check() == z3::sat;
    solver.pop();
    return found;
  }

  void expect_theorem(const Pair& question) {
    int answer = env->known(question.expression);
    if (answer == 1) {
      EXPECT_FALSE(possible(!question.formula)) << to_text(question.expression) << " is not always true";
    } else if (answer == 0) {
      EXPECT_FALSE(possible(question.formula)) << to_text(question.expression) << " is not always false";
    }
    answered += answer >= 0;
  }

  static constexpr const char* kNames[] = {"a", "b", "c"};
  IntrusivePtr<ShapeEnv> env = make_counted<ShapeEnv>();
  std::mt19937 generator;
  z3::context context;
  z3::solver solver{context};
  std::vector<Pair> symbols;
  int answered = 0;
};

TEST_P(Proof, StaticAnswersHoldForAllValues) {
  for (int i = 0; i < 25; ++i) expect_theorem(condition(static_cast<int>(pick(1, 3))));
  EXPECT_GT(answered, 0);
}

TEST_P(Proof, AnswersFollowFromWhatWasAssumed) {
  for (int round = 0; round < 6; ++round) {
    Pair fact = condition(1);
    if (!possible(fact.formula) || env->known(fact.expression) >= 0) continue;
    solver.add(fact.formula);
    env->assume(fact.expression);
    for (int i = 0; i < 8; ++i) expect_theorem(condition(2));
    for (const Pair& symbol : symbols) {
      Range range = env->range(symbol.expression);
      EXPECT_FALSE(range.lower != kMinusInfinity &&
                   possible(symbol.formula < context.int_val(integer_text(range.lower).c_str())));
      EXPECT_FALSE(range.upper != kInfinity &&
                   possible(symbol.formula > context.int_val(integer_text(range.upper).c_str())));
    }
    if (HasFailure()) {
      ADD_FAILURE() << "after " << to_text(fact.expression);
      return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Proof, ::testing::Range(0, seeds(20)));

}  // namespace
}  // namespace umbra::sym
