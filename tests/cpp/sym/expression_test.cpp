// The normal form and its text, against what sympy and PyTorch 2.15 print for the same operations.
#include <gtest/gtest.h>

#include "sym/sym_test.h"

namespace umbra::sym {
namespace {

struct Case {
  const char* input;
  const char* text;
};

class ExpressionText : public Symbols {
 protected:
  void expect_all(std::initializer_list<Case> cases) {
    for (const Case& one : cases) EXPECT_EQ(to_text(parse(*env, one.input)), one.text) << one.input;
  }
};

TEST_F(ExpressionText, SumsPrintHighestDegreeFirstAndConstantsLast) {
  expect_all({{"2*s0 + 1", "2*s0 + 1"},
              {"1 - s0", "1 - s0"},
              {"3 - 2*s0", "3 - 2*s0"},
              {"-3 - s0", "-s0 - 3"},
              {"3 - s0*s1", "-s0*s1 + 3"},
              {"3 - s0**2", "3 - s0**2"},
              {"s1 - s0", "-s0 + s1"},
              {"3 - s0 - s1", "-s0 - s1 + 3"},
              {"s0*s1 + s0 + s1**2 + 3", "s0*s1 + s0 + s1**2 + 3"},
              {"s1*s0**2 + s1**2*s0", "s0**2*s1 + s0*s1**2"},
              {"s0**3 + s0**2 + s0 + 1", "s0**3 + s0**2 + s0 + 1"},
              {"s10 + s2 + s0", "s0 + s10 + s2"},
              {"-s0 + s1**2", "-s0 + s1**2"}});
}

TEST_F(ExpressionText, ProductsKeepSumsAsFactors) {
  expect_all({{"s1*s0*2", "2*s0*s1"},
              {"2*(s0 + 1)", "2*s0 + 2"},
              {"s0*(s0 + 1)", "s0*(s0 + 1)"},
              {"(s0 + 1)*(s1 + 2)", "(s0 + 1)*(s1 + 2)"},
              {"2*s0*(s1 - 1)", "2*s0*(s1 - 1)"},
              {"-2*s0*(s1 - 1) + 4", "-2*s0*(s1 - 1) + 4"},
              {"2*(s0 + 1)*s1 + 3", "s1*(2*s0 + 2) + 3"},
              {"(s0 + 1)*(s0 + 1)*s0", "s0*(s0 + 1)**2"},
              {"(2*s0)**2", "4*s0**2"},
              {"(s0*s1)**2", "s0**2*s1**2"},
              {"3 - (s0 + 1)*s1", "-s1*(s0 + 1) + 3"},
              {"(u0 + 1) + s0*(u0 + 1)", "s0*(u0 + 1) + u0 + 1"},
              {"-s0*(1 - u0)", "-s0*(1 - u0)"}});
}

TEST_F(ExpressionText, FloorDivisionCancelsWhatItCan) {
  expect_all({{"s0//2", "(s0//2)"},
              {"s0//2 + 1", "((s0//2)) + 1"},
              {"2*(s0//2)", "2*((s0//2))"},
              {"(s0 + 1)//2*s1", "s1*(((s0 + 1)//2))"},
              {"(s0 + 1)//(s1 + 1)", "((s0 + 1)//(s1 + 1))"},
              {"(8*s0)//4", "2*s0"},
              {"(2*s0 + 3)//2", "s0 + 1"},
              {"(2*s0 - 1)//2", "s0 - 1"},
              {"(2*s0 + s1 + 3)//2", "s0 + (((s1 + 3)//2))"},
              {"(s0*s1)//s1", "s0"},
              {"(s0*s1 + s1)//s1", "s0 + 1"},
              {"(s0*s1 + s0)//s1", "((s0*s1 + s0)//s1)"},
              {"(4*s0)//6", "((2*s0)//3)"},
              {"(4*s0 + 2)//6", "((2*s0 + 1)//3)"},
              {"s0//2//3", "(s0//6)"},
              {"(s0//2)//s1", "(s0//(2*s1))"},
              {"(-s0)//2", "((-s0)//2)"},
              {"s0//(-1)", "-s0"},
              {"s0//(-2)", "(s0//(-2))"},
              {"(4*s0)//(6*s1)", "((2*s0)//(3*s1))"},
              {"(s0*s1*s2)//(s1*s0)", "s2"},
              {"(4*s0*(u0 - 1))//(2*u0 - 2)", "2*s0"},
              {"(s0 - s1)//(s1 - s0)", "-1"},
              {"u0//u0", "1"},
              {"0//u0", "0"},
              {"3*s0//(s1//2)", "((3*s0)//((s1//2)))"}});
}

TEST_F(ExpressionText, RemainderDropsMultiplesOfTheModulus) {
  expect_all({{"s0 % 2", "Mod(s0, 2)"},
              {"(2*s0) % 2", "0"},
              {"(4*s0 + 1) % 2", "1"},
              {"(s0*s1) % s1", "0"},
              {"(s0 + s1) % s1", "Mod(s0, s1)"},
              {"(s0 + 5) % 4", "Mod(s0 + 1, 4)"},
              {"(-s0) % 8", "PythonMod(-s0, 8)"},
              {"u0 % 2 + 1", "(PythonMod(u0, 2)) + 1"},
              {"s0 + (-s0) % 8", "s0 + (PythonMod(-s0, 8))"},
              {"(s0 % 4) % 4", "Mod(s0, 4)"},
              {"s0 % 1", "0"},
              {"(-7) % 4", "1"}});
}

TEST_F(ExpressionText, ExtremaDropWhatAnotherValueCovers) {
  expect_all({{"Max(1, s0)", "s0"},
              {"Max(s0, 5, s1)", "Max(5, s0, s1)"},
              {"Max(1, Max(u0, 3))", "Max(3, u0)"},
              {"Min(3, u0, 5)", "Min(3, u0)"},
              {"Max(s0, s0 + 1)", "s0 + 1"},
              {"Max(1, Min(u0, 3))", "Max(1, Min(3, u0))"},
              {"Max(u0 - 1, 1) + 1", "Max(1, u0 - 1) + 1"},
              {"-Max(u0 - 1, 1)", "-Max(1, u0 - 1)"},
              {"s1*Max(u0 - 1, 1)", "s1*Max(1, u0 - 1)"}});
}

TEST_F(ExpressionText, FunctionsInSumsAreParenthesisedAsSympyDoes) {
  expect_all({{"s0*s1 + u0*(s1//3) - s0 % 3 - 4*Max(s0, u0)", "s0*s1 + u0*((s1//3)) - (Mod(s0, 3)) - 4*Max(s0, u0)"},
              {"s0 % 3 + s0//2 + u0 % 3 + Max(s0, u0) + Min(s0, u0)",
               "((s0//2)) + (Mod(s0, 3)) + (PythonMod(u0, 3)) + Max(s0, u0) + Min(s0, u0)"},
              {"(s0//2)**2", "((s0//2))**2"},
              {"Max(s0, u0)**2", "Max(s0, u0)**2"}});
}

TEST_F(ExpressionText, FloatsPrintWithFifteenDigits) {
  expect_all({{"ToFloat(s0)*2.0", "2.0*ToFloat(s0)"},
              {"ToFloat(s0) + 0.5", "ToFloat(s0) + 0.5"},
              {"ToFloat(s0) - 1.5", "ToFloat(s0) - 1.5"},
              {"ToFloat(s0)*1e20", "1.0e+20*ToFloat(s0)"},
              {"ToFloat(s0)*1e-5", "1.0e-5*ToFloat(s0)"},
              {"ToFloat(s0)*0.33333333333333331", "0.333333333333333*ToFloat(s0)"},
              {"ToFloat(s0)*123456789.123", "123456789.123*ToFloat(s0)"},
              {"s0/2", "IntTrueDiv(s0, 2)"},
              {"IntTrueDiv(s0, 2) + 1.0", "(IntTrueDiv(s0, 2)) + 1.0"},
              {"FloorToInt(OpaqueUnaryFn_sqrt(ToFloat(s0)))", "FloorToInt(OpaqueUnaryFn_sqrt(ToFloat(s0)))"}});
}

TEST_F(ExpressionText, ConditionsPrintWithTheNumberOnTheRight) {
  expect_all({{"Eq(s0, 4)", "Eq(s0, 4)"},
              {"4 == s0", "Eq(s0, 4)"},
              {"s0 + 1 > 4", "s0 + 1 > 4"},
              {"4 < s0", "s0 > 4"},
              {"s0//2 < 4", "((s0//2)) < 4"},
              {"(s0 < 4) | Eq(s1, 4)", "Eq(s1, 4) | (s0 < 4)"},
              {"Eq(s1, 4) & (s0 < 4) & (u0 >= 1)", "Eq(s1, 4) & (u0 >= 1) & (s0 < 4)"},
              {"~((s0 < 4) & (s1 < 4))", "~((s0 < 4) & (s1 < 4))"},
              {"~Eq(s0, 4)", "Ne(s0, 4)"},
              {"~(s0 < s1)", "s0 >= s1"},
              {"(s0 < 4) & (s0 >= 4)", "False"},
              {"(s0 < 4) | (s0 >= 4)", "True"}});
}

TEST_F(ExpressionText, EqualExpressionsAreOneObject) {
  EXPECT_EQ(parse(*env, "2*s0 + s1*s0"), parse(*env, "s0*s1 + s0 + s0"));
  EXPECT_TRUE((s0 * 2 + s1).same(s1 + s0 + s0));
  for (int twice = 0; twice < 2; ++twice) EXPECT_EQ(to_string(s0 * s1 + 7), "s0*s1 + 7");
  EXPECT_TRUE((s0 - s0).same(0));
  EXPECT_FALSE((s0 - s0).is_symbolic());
}

TEST_F(ExpressionText, OverflowIsAnError) {
  SymInt large = s0 * (int64_t{1} << 61);
  EXPECT_EQ(to_string(large * 8), "18446744073709551616*s0");
  EXPECT_THROW(large * 8 * (int64_t{1} << 62) * 2, OverflowError);
}

TEST_F(ExpressionText, DivisionByZeroIsAnError) {
  EXPECT_THROW(s0 / 0, Error);
  EXPECT_THROW(s0 % 0, Error);
  EXPECT_THROW(SymInt(4) / 0, Error);
}

TEST_F(ExpressionText, IntegersDivideAsInPython) {
  EXPECT_EQ((SymInt(-7) / 2).value(), -4);
  EXPECT_EQ((SymInt(-7) % 2).value(), 1);
  EXPECT_EQ((SymInt(7) / -2).value(), -4);
  EXPECT_EQ((SymInt(7) % -2).value(), -1);
}

}  // namespace
}  // namespace umbra::sym
