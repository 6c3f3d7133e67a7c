#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "base/error.h"
#include "base/json/json.h"
#include "base/splitmix64.h"
#include "serve/json/body_value.h"
#include "serve/json/json_writer.h"
#include "serve/json/utf8.h"

namespace sluice::serve {
namespace {

std::string round_trip(std::string_view text) { return body_text(parse_body(text)); }

std::string fault_of(std::string_view text) {
  try {
    parse_body(text);
  } catch (const BodyFault& fault) {
    return fault.what();
  }
  return "none";
}

TEST(BodyValue, KeepsTheOrderAndTheLastOfEqualKeys) {
  EXPECT_EQ(round_trip(R"( {"b":1,"a":[true,null,-2.5],"b":"é\u00e9\ud83d\ude00\n"} )"),
            "{\"b\":\"éé😀\\n\",\"a\":[true,null,-2.5]}");
  EXPECT_EQ(round_trip("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(round_trip("9223372036854775808"), "9223372036854775808.0");
  EXPECT_EQ(round_trip("1e-999"), "0.0");
}

TEST(BodyValue, Faults) {
  EXPECT_EQ(fault_of(""), "byte 0: expected a value, found the end of the text");
  EXPECT_EQ(fault_of("[1,]"), "byte 3: expected a value");
  EXPECT_EQ(fault_of("{\"a\" 1}"), "byte 5: expected ':'");
  EXPECT_EQ(fault_of("\"\xff\""), "byte 1: the text is not UTF-8");
  EXPECT_EQ(fault_of(R"("\udc00")"), "byte 7: a lone surrogate");
  EXPECT_EQ(fault_of(R"("\ud800x")"), "byte 7: a lone surrogate");
  EXPECT_EQ(fault_of("1e400"), "byte 5: the number is too large");
  EXPECT_EQ(fault_of(std::string(400, '9')), "byte 400: the number is too large");
  EXPECT_EQ(fault_of("0." + std::string(400, '0') + "1"), "none");
  EXPECT_EQ(fault_of("+1"), "byte 0: expected a value");
}

TEST(BodyValue, LimitsAtBothEnds) {
  const auto nested = [](std::size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  EXPECT_EQ(fault_of(nested(128)), "none");
  EXPECT_NE(fault_of(nested(129)).find("more than 128 levels"), std::string::npos);
  const auto keys = [](std::size_t n) {
    std::string text = "{";
    for (std::size_t i = 0; i < n; ++i) text += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":0";
    return text + "}";
  };
  EXPECT_EQ(fault_of(keys(4096)), "none");
  EXPECT_NE(fault_of(keys(4097)).find("more than 4096 keys"), std::string::npos);
}

TEST(JsonWriter, Numbers) {
  const auto real = [](double value) { return JsonWriter().real(value).text(); };
  EXPECT_EQ(real(-0.25), "-0.25");
  EXPECT_EQ(real(2), "2.0");
  EXPECT_EQ(real(0.1), "0.1");
  EXPECT_EQ(real(1e300), "1e+300");
  EXPECT_EQ(real(-HUGE_VAL), "-9999.0");
  EXPECT_EQ(real(std::nan("")), "null");
  EXPECT_EQ(JsonWriter().tenth(2.2222).text(), "2.2");
}

TEST(JsonWriter, StringsAreUtf8) {
  EXPECT_EQ(JsonWriter().string("a\"\\\b\f\n\r\t\x01é").text(), "\"a\\\"\\\\\\b\\f\\n\\r\\t\\u0001é\"");
  EXPECT_EQ(JsonWriter().string("a\xe2\x80").text(), "\"a\xef\xbf\xbd\"");
  EXPECT_EQ(valid_utf8("\xf0\x9f\x98\xc3\xa9\xed\xa0\x80"),
            "\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(code_points("aé😀"), 3u);
}

// Against the library that reads files: texts made at random, and garbled.
TEST(BodyValue, AgreesWithTheOtherReader) {
  const std::uint64_t seed = 20261123;
  SCOPED_TRACE("seed " + std::to_string(seed));
  SplitMix64 random(seed);
  const std::string pieces[] = {
      "{",           "}",       "[",      "]",       ",",    ":", "\"a\"",
      "\"\\u00e9\"", "1",       "-0.5e3", "true",    "null", " ", "\"\\ud83d\\ude00\"",
      "01",          "\"\\x\"", "2.",     "\xc3\xa9"};
  std::size_t good = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string text;
    const std::size_t count = 1 + random.next() % 7;
    for (std::size_t i = 0; i < count; ++i) text += pieces[random.next() % std::size(pieces)];
    const std::string fault = fault_of(text);
    bool other = true;
    try {
      good += Json::parse(text) == Json::parse(fault == "none" ? round_trip(text) : text);
    } catch (const Error& error) {
      other = std::string(error.what()).find("duplicate") != std::string::npos || false;
    }
    EXPECT_EQ(fault == "none", other) << text << ": " << fault;
  }
  EXPECT_GT(good, 1000u);
}

TEST(Body, TakesNoMoreMemoryThanItMay) {
  std::string many = "[";
  for (int i = 0; i < 1000; ++i) many += "[],";
  many += "1]";
  EXPECT_EQ(parse_body(many).array().size(), 1001u);
  EXPECT_EQ(parse_body(many, {.memory = 1 << 20}).array().size(), 1001u);
  EXPECT_THROW(parse_body(many, {.memory = 64 << 10}), BodyTooLarge);
  EXPECT_THROW(parse_body("\"" + std::string(1000, 'a') + "\"", {.memory = 1000}), BodyTooLarge);
  std::string keys = "{";
  for (int i = 0; i < 100; ++i) keys += '"' + std::to_string(i) + "\":0,";
  keys += "\"end\":0}";
  EXPECT_THROW(parse_body(keys, {.memory = 20 << 10}), BodyTooLarge);
}

}  // namespace
}  // namespace sluice::serve
