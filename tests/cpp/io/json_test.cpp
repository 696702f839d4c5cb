#include "umbra/io/json.h"

#include <gmock/gmock.h>

#include "io/testing.h"

namespace umbra::io {
namespace {

using ::testing::HasSubstr;

std::string parsing_error(const std::string& text) {
  return error_of<ValueError>([&] { parse_json(text, "test.json"); });
}

TEST(Json, KeepsOrderAndIntegers) {
  Json value = parse_json(R"({"z": 9223372036854775807, "a": [-9223372036854775808, 1.5, true, null, "x"]})", "t");
  EXPECT_EQ(value.object()[0].first, "z");
  EXPECT_EQ(value.find("z")->as_int(), INT64_MAX);
  EXPECT_EQ(value.find("a")->array()[0].as_int(), INT64_MIN);
  EXPECT_EQ(value.find("none"), nullptr);
  EXPECT_EQ(write_json(value), R"({"z": 9223372036854775807, "a": [-9223372036854775808, 1.5, true, null, "x"]})");
}

TEST(Json, IntegersBeyond64BitsAreNoIntegers) {
  EXPECT_THAT(error_of([] { parse_json("9223372036854775808", "t").as_int(); }), HasSubstr("expected an integer"));
  EXPECT_THAT(parsing_error("1e999"), HasSubstr("not valid JSON"));
}

TEST(Json, BareWordsOfPythonBecomeStrings) {
  Json value = parse_json(R"([Infinity, -Infinity, NaN, "a \" Infinity"])", "t");
  EXPECT_EQ(value.array()[0].as_string(), "Infinity");
  EXPECT_EQ(value.array()[1].as_string(), "-Infinity");
  EXPECT_EQ(value.array()[2].as_string(), "NaN");
  EXPECT_EQ(value.array()[3].as_string(), "a \" Infinity");
}

TEST(Json, RefusesWhatIsNotJson) {
  EXPECT_THAT(parsing_error(""), HasSubstr("no bytes"));
  EXPECT_THAT(parsing_error("{\"a\": "), HasSubstr("'test.json' is not valid JSON at byte"));
  EXPECT_THAT(parsing_error("{} x"), HasSubstr("not valid"));
  EXPECT_THAT(parsing_error("\"\xff\""), HasSubstr("not valid"));
  EXPECT_THAT(parsing_error(R"({"a": 1, "a": 2})"), HasSubstr("'a' twice"));
  EXPECT_THAT(parsing_error(std::string(200'000, '[')), HasSubstr("deeper than 512"));
  EXPECT_THAT(parsing_error("Infinityx"), HasSubstr("not valid"));
}

TEST(Json, WritesStringsAsPythonDoes) {
  EXPECT_EQ(write_json(Json("a\"b\\c\n\t\x01\x7f")), R"("a\"b\\c\n\t\u0001\u007f")");
  EXPECT_EQ(write_json(Json("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80")), R"("\u00e4\u20ac\ud83d\ude00")");
  EXPECT_EQ(parse_json(R"("\u00e4\u20ac\ud83d\ude00")", "t").as_string(), "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
}

TEST(Json, WritesFloatsAsPythonDoes) {
  EXPECT_EQ(float_repr(5), "5.0");
  EXPECT_EQ(float_repr(-0.0), "-0.0");
  EXPECT_EQ(float_repr(0.1), "0.1");
  EXPECT_EQ(float_repr(1e-5), "1e-05");
  EXPECT_EQ(float_repr(0.0001), "0.0001");
  EXPECT_EQ(float_repr(1e16), "1e+16");
  EXPECT_EQ(float_repr(123456789012345680.0), "1.2345678901234568e+17");
  EXPECT_EQ(float_repr(1e15), "1000000000000000.0");
  EXPECT_EQ(float_repr(1.7976931348623157e308), "1.7976931348623157e+308");
  EXPECT_EQ(float_repr(5e-324), "5e-324");
  EXPECT_EQ(write_json(Json(1e300)), "1e+300");
}

TEST(Json, AccessErrorsNameBothKinds) {
  EXPECT_THAT(error_of([] { Json("x").as_int(); }), HasSubstr("expected an integer, found a string"));
  EXPECT_THAT(error_of([] { Json(1).object(); }), HasSubstr("expected an object, found an integer"));
  EXPECT_EQ(Json(3).as_float(), 3.0);
}

}  // namespace
}  // namespace umbra::io
