#include <gmock/gmock.h>

#include "sym/sym_test.h"

namespace umbra::sym {
namespace {

using ::testing::HasSubstr;

std::string round_trip(const std::string& text) {
  auto env = make_counted<ShapeEnv>();
  return to_srepr(parse(*env, text));
}

TEST(Parse, SreprOfFilesComesBackUnchanged) {
  for (const char* text : {
           "Symbol('s77', positive=True, integer=True)",
           "Symbol('u0', integer=True)",
           "Add(Symbol('u0', integer=True), Integer(-1))",
           "Add(Mul(Integer(2), Symbol('s58', positive=True, integer=True)), Integer(1))",
           "Mul(Integer(4), Pow(Symbol('s46', positive=True, integer=True), Integer(2)))",
           "Mul(Integer(4), Symbol('s77', positive=True, integer=True), Add(Symbol('u0', integer=True), Integer(-1)))",
           "GreaterThan(Symbol('u0', integer=True), Integer(0))",
           "LessThan(Symbol('u0', integer=True), Integer(1000))",
           "StrictGreaterThan(Symbol('s77', positive=True, integer=True), Integer(4))",
           "Max(Integer(1), Mul(Integer(3), Symbol('s86', integer=True)))",
           "PythonMod(Mul(Integer(-1), Symbol('s77', positive=True, integer=True)), Integer(8))",
           "IntTrueDiv(Symbol('s77', positive=True, integer=True), Integer(2))",
           "OpaqueUnaryFn_sqrt(ToFloat(Symbol('s77', positive=True, integer=True)))",
           "FloorDiv(Add(Mul(Integer(3), Symbol('s44', positive=True, integer=True)), Integer(-1)), "
           "Symbol('s44', positive=True, integer=True))",
           "FloorDiv(Add(Symbol('s77', positive=True, integer=True), PythonMod(Mul(Integer(-1), "
           "Symbol('s77', positive=True, integer=True)), Integer(8))), Integer(8))",
           "Add(Integer(3), Mul(Integer(-1), Integer(3), Symbol('u0', integer=True)))",
           "Mul(Float('0.10000000000000001', precision=53), ToFloat(Symbol('s0', positive=True, integer=True)))",
           "Or(Equality(Symbol('s1', positive=True, integer=True), Integer(4)), "
           "StrictLessThan(Symbol('s0', positive=True, integer=True), Integer(4)))",
       })
    EXPECT_EQ(round_trip(text), text);
}

TEST(Parse, InfixTextOfOlderFiles) {
  auto env = make_counted<ShapeEnv>();
  EXPECT_EQ(to_srepr(parse(*env, "2*s2 + 1")),
            "Add(Mul(Integer(2), Symbol('s2', positive=True, integer=True)), Integer(1))");
  EXPECT_EQ(to_text(parse(*env, "48*s0*s1")), "48*s0*s1");
  EXPECT_EQ(to_text(parse(*env, "s0 - 1")), "s0 - 1");
}

TEST(Parse, ExponentsBindTighterThanSigns) {
  auto env = make_counted<ShapeEnv>();
  EXPECT_EQ(to_text(parse(*env, "-s0**2")), "-s0**2");
  EXPECT_EQ(to_text(parse(*env, "2 - -s0")), "s0 + 2");
  EXPECT_EQ(to_text(parse(*env, "s0 - s1 - s2")), "s0 - s1 - s2");
  EXPECT_EQ(to_text(parse(*env, "100//7//2")), "7");
}

TEST(Parse, GuardsOverInputs) {
  auto env = make_counted<ShapeEnv>();
  ParseOptions options;
  std::vector<std::string> paths;
  options.source = [&](std::string_view path) {
    paths.emplace_back(path);
    return env->declare_symbol("s" + std::to_string(paths.size()), false);
  };
  auto text = [&](const char* guard) { return to_text(parse(*env, guard, options)); };
  EXPECT_EQ(text("(L['ids'].size()[0] % 2) == 0"), "Eq(PythonMod(s1, 2), 0)");
  EXPECT_EQ(paths.back(), "L['ids'].size()[0]");
  EXPECT_EQ(text("1 + L['n'] > -1 and 1 + L['m'] > 0"), "(s2 + 1 > -1) & (s3 + 1 > 0)");
  EXPECT_EQ(text("torch.sym_max(1, L['xs'][1].size()[0]) == 3"), "Eq(Max(1, s4), 3)");
  EXPECT_EQ(paths.back(), "L['xs'][1].size()[0]");
  EXPECT_EQ(text("((-1)*(1 if (L['parts']['a'].size()[0] // 2) > 0 else 0)) != 4"),
            "Ne(-(Where(((s5//2)) > 0, 1, 0)), 4)");
  EXPECT_EQ(text("2 <= L['x'].size()[0] <= 6"), "(s6 >= 2) & (s6 <= 6)");
}

TEST(Parse, NothingIsRun) {
  auto env = make_counted<ShapeEnv>();
  EXPECT_THROW(parse(*env, "print('A READER MUST NOT RUN THIS')"), ValueError);
  EXPECT_THROW(parse(*env, "__import__('os').system('true')"), ValueError);
  EXPECT_THROW(parse(*env, "L['x'].size()[0]"), ValueError);
}

TEST(Parse, ErrorsSayWhere) {
  auto env = make_counted<ShapeEnv>();
  for (const char* bad : {"",
                          "Add(Symbol('s77', positive=True, integer=True), ",
                          "2*",
                          "s0 +* s1",
                          "(s0",
                          "Integer(1.5)",
                          "Integer()",
                          "Symbol(s0)",
                          "Symbol('a b')",
                          "Max()",
                          "FloorDiv(s0)",
                          "s0 s1",
                          "Mod(s0, 0)",
                          "s0 < s1 + (s0 < s1)",
                          "999999999999999999999999999999999999999999",
                          "And(s0, s1)",
                          "2**-1",
                          "s0.size",
                          "'s0'",
                          "s0[",
                          "\xff"}) {
    try {
      parse(*env, bad);
      ADD_FAILURE() << "accepted: " << bad;
    } catch (const ValueError& error) {
      EXPECT_THAT(error.what(), testing::AnyOf(HasSubstr("at position"), HasSubstr("negative power"))) << bad;
    }
  }
}

TEST(Parse, HostileTextsAreRefused) {
  auto env = make_counted<ShapeEnv>();
  EXPECT_THROW(parse(*env, std::string(100000, '(')), ValueError);
  EXPECT_THROW(parse(*env, std::string(5000, '-') + "1"), ValueError);
  std::string wide = "s0", deep = "s0";
  for (int i = 1; i < 3000; ++i) wide += "+s" + std::to_string(i);
  for (int i = 0; i < 200; ++i) deep = "Max(" + deep + ", 1)";
  EXPECT_THROW(parse(*env, wide), ValueError);
  EXPECT_THROW(parse(*env, deep), ValueError);
  EXPECT_NO_THROW(parse(*env, "s0**1000000000000"));
  EXPECT_THROW(parse(*env, "7**1000000000000"), ValueError);
}

}  // namespace
}  // namespace umbra::sym
