#include "client/json_writer.h"

#include <gtest/gtest.h>

#include <limits>

namespace probed::client {
namespace {

std::string Quoted(std::string_view bytes) {
  std::string out;
  AppendJsonString(bytes, out);
  return out;
}

TEST(JsonString, PlainAndEscaped) {
  EXPECT_EQ(Quoted("abc"), R"("abc")");
  EXPECT_EQ(Quoted("a\"b\\c\n\t\r"), R"("a\"b\\c\n\t\r")");
  EXPECT_EQ(Quoted(std::string_view("\0\x1f\x7f", 3)), R"("\u0000\u001f\u007f")");
  EXPECT_EQ(Quoted("\xc2\x9b[\xc2\xa0"), "\"\\u009b[\xc2\xa0\"") << "terminals obey C1";
}

TEST(JsonString, Utf8PassesAndOtherBytesAreEscaped) {
  EXPECT_EQ(Quoted("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
            "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
  EXPECT_EQ(Quoted("\xe9"), R"("\u00e9")");
  EXPECT_EQ(Quoted("\xc3"), R"("\u00c3")");
  EXPECT_EQ(Quoted("\xff\xfe"), R"("\u00ff\u00fe")");
}

TEST(JsonString, IllFormedSequencesAreNotUtf8) {
  EXPECT_FALSE(IsUtf8("\xc0\xaf"));          // overlong
  EXPECT_FALSE(IsUtf8("\xe0\x80\xaf"));      // overlong
  EXPECT_FALSE(IsUtf8("\xed\xa0\x80"));      // surrogate
  EXPECT_FALSE(IsUtf8("\xf4\x90\x80\x80"));  // past U+10FFFF
  EXPECT_FALSE(IsUtf8("\x80"));
  EXPECT_FALSE(IsUtf8("\xe2\x82"));
  EXPECT_TRUE(IsUtf8("\xed\x9f\xbf\xf4\x8f\xbf\xbf"));
  EXPECT_TRUE(IsUtf8(""));
}

TEST(JsonString, EveryPairOfBytesStaysValidUtf8) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const char pair[] = {static_cast<char>(first), static_cast<char>(second)};
      ASSERT_TRUE(IsUtf8(Quoted({pair, 2}))) << first << " " << second;
    }
  }
}

TEST(JsonWriter, NestsAndSeparates) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  json.Key("a").BeginArray().Unsigned(1).Signed(-2).Null().EndArray();
  json.Key("b").BeginObject().EndObject();
  json.Key("c").Bool(true);
  json.Raw(R"("d":1)");
  json.RawKey(R"("e":)").String("x");
  json.EndObject();
  EXPECT_EQ(out, R"({"a":[1,-2,null],"b":{},"c":true,"d":1,"e":"x"})");
}

TEST(JsonWriter, NumbersAtTheirLimits) {
  std::string out;
  JsonWriter(out).Unsigned(std::numeric_limits<uint64_t>::max());
  out += ' ';
  JsonWriter(out).Signed(std::numeric_limits<int64_t>::min());
  EXPECT_EQ(out, "18446744073709551615 -9223372036854775808");
}

TEST(JsonWriter, DoublesWithoutJsonFormAreStrings) {
  std::string out;
  JsonWriter json(out);
  json.BeginArray();
  json.Double(0.5).Double(std::numeric_limits<double>::infinity());
  json.Double(-std::numeric_limits<double>::infinity());
  json.Double(std::numeric_limits<double>::quiet_NaN()).EndArray();
  EXPECT_EQ(out, R"([0.5,"Infinity","-Infinity","NaN"])");
}

}  // namespace
}  // namespace probed::client
