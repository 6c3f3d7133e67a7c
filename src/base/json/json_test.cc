#include "base/json/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "base/files/scratch_directory.h"
#include "base/setting.h"

namespace sluice {
namespace {

Error invalid(const std::function<void()>& function, const std::string& what) {
  try {
    function();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalid) << what;
    return e;
  }
  ADD_FAILURE() << "accepted: " << what;
  return Error(ErrorKind::kUsage, "accepted");
}

Error invalid_text(const std::string& text, const JsonLimits& limits = {}) {
  const Error e = invalid([&] { parse_json(text, "x.json", limits); }, text.substr(0, 100));
  EXPECT_EQ(e.where(), "x.json");
  return e;
}

TEST(ParseJson, BuildsTheSameValueAsTheLibrary) {
  for (const char* text :
       {"null", "true", "false", "0", "-0", "-7", "18446744073709551615", "-9223372036854775808", "1.5",
        "1e3", "\"\"", "\"\\u00e9\\ud83d\\ude00\\n\"", "[]", "{}", "[1,[2,[3,{}]],{\"a\":[]}]",
        " { \"a\" : { \"b\" : [ null , { } ] } } ", "{\"a\":{\"b\":1},\"b\":{\"a\":2},\"\":0}",
        "[[],[],[[],[{}]]]", "123456789012345678901234567890"}) {
    EXPECT_EQ(parse_json(text, "x.json").dump(), nlohmann::json::parse(text).dump()) << text;
  }
}

// Values made at random, written by the library, read back.
Json random_value(std::mt19937_64& random, int depth) {
  switch (random() % (depth > 0 ? 8 : 6)) {
    case 0:
      return nullptr;
    case 1:
      return random() % 2 == 0;
    case 2:
      return static_cast<std::int64_t>(random());
    case 3:
      return random();
    case 4:
      return std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 200) - 100);
    case 5:
      return "k\"\\\n\xc3\xa9" + std::to_string(random() % 100);
    case 6: {
      Json array = Json::array();
      for (std::uint64_t n = random() % 5; n > 0; --n) array.push_back(random_value(random, depth - 1));
      return array;
    }
    default: {
      Json object = Json::object();
      for (std::uint64_t n = random() % 5; n > 0; --n) {
        object["key" + std::to_string(random() % 10)] = random_value(random, depth - 1);
      }
      return object;
    }
  }
}

TEST(ParseJson, RoundTripsRandomValues) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 300; ++i) {
    const Json value = random_value(random, 6);
    EXPECT_EQ(parse_json(value.dump(i % 3 - 1), "x.json"), value);
  }
}

TEST(ParseJson, DamagedTextNeverDoesAnythingButThrow) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const std::string text =
      R"({"a":[1,2.5,-3e4,"x\u00e9"],"b":{"c":null,"d":[true,false,{}]},"e":"long text here"})";
  for (int i = 0; i < 5000; ++i) {
    std::string damaged = text;
    for (std::uint64_t n = 1 + random() % 3; n > 0; --n)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    if (random() % 4 == 0) damaged.resize(random() % damaged.size());
    try {
      parse_json(damaged, "x.json");
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInvalid);
      for (const char* c = e.what(); *c != '\0'; ++c) ASSERT_TRUE(*c >= ' ' && *c <= '~') << e.what();
    }
  }
}

TEST(ParseJson, DuplicateKeysAreRefusedWithThePlace) {
  const Error e = invalid_text(R"({"a":1,"b":{"c":1,"c":2}})");
  EXPECT_EQ(e.found_text(), "\"c\"");
  EXPECT_EQ(e.offset(), 21u);  // just behind the second "c"
  invalid_text(R"({"a":1,"\u0061":2})");
  EXPECT_NO_THROW(parse_json(R"([{"a":1},{"a":1}])", "x.json"));
}

TEST(ParseJson, SyntaxErrorsCarryTheByte) {
  EXPECT_EQ(invalid_text("{\"a\":x}").offset(), 5u);
  for (const char* text : {"",    " ",         "{",        "[1,]",    "{\"a\":1,}", "{a:1}", "'a'",
                           "01",  "1.",        "+1",       "NaN",     "Infinity",   "[1 2]", "{} {}",
                           "{}x", "/* c */ 1", "\"\x01\"", "\"\\x\"", "\"abc",      "1e999", "tru"}) {
    EXPECT_TRUE(invalid_text(text).offset().has_value()) << text;
  }
}

TEST(ParseJson, InvalidUtf8IsRefused) {
  for (const char* text :
       {"\"\xff\"", "\"\xc3\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf5\x80\x80\x80\"", "\"\\ud800\""}) {
    invalid_text(text);
  }
}

TEST(ParseJson, NulDoesNotEndTheText) {
  EXPECT_EQ(invalid_text(std::string("{}\0{}", 5)).offset(), 2u);
  invalid_text(std::string("{}\0", 3));
  invalid_text(std::string("\"a\0\"", 4));
}

TEST(ParseJson, DepthAndSizeAreBounded) {
  const JsonLimits limits{.max_bytes = 100, .max_depth = 3};
  EXPECT_NO_THROW(parse_json("[[[1]]]", "x.json", limits));
  invalid_text("[[[[1]]]]", limits);
  invalid_text("{\"a\":[{\"b\":[]}]}", limits);
  EXPECT_NO_THROW(parse_json("\"" + std::string(98, 'a') + "\"", "x.json", limits));
  invalid_text("\"" + std::string(99, 'a') + "\"", limits);
  invalid_text(std::string(10'000'000, '['));  // NOLINT(bugprone-string-constructor)
}

TEST(ReadJsonFile, NamesTheFile) {
  const testing::ScratchDirectory dir;
  EXPECT_EQ(read_json_file(dir.write("a.json", "{\"x\":[1]}"))["x"][0], 1);
  const Error e = invalid([&] { read_json_file(dir.write("b.json", "{")); }, "b.json");
  EXPECT_EQ(e.where(), dir.file("b.json"));
  invalid([&] { read_json_file(dir.write("c.json", "[1,2,3]"), {.max_bytes = 6, .max_depth = 4}); },
          "c.json");
}

class JsonObjectTest : public ::testing::Test {
 protected:
  const Json json_ = parse_json(
      R"({"i":7,"neg":-7,"big":18446744073709551615,"f":1.5,"whole":1.0,"exp":1e3,"s":"text","t":true,"n":null,
          "list":[1,2,3],"mixed":[1,"2"],"o":{"inner":{"x":1}},"huge":1e300})",
      "config.json");
  const JsonObject object_{json_, "config.json"};

  void refuses(const std::function<void()>& function, const std::string& where) {
    EXPECT_EQ(invalid(function, where).where(), where);
  }
};

TEST_F(JsonObjectTest, IntegersAreIntegersInRange) {
  EXPECT_EQ(object_.integer("i", 0, 10), 7);
  EXPECT_EQ(object_.integer("neg", -7, -7), -7);
  EXPECT_EQ(object_.integer_or("absent", 5, 0, 10), 5);
  EXPECT_EQ(object_.integer_or("n", 5, 0, 10), 5);
  EXPECT_EQ(object_.integer_or("i", 5, 0, 10), 7);
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min(),
                         kMax = std::numeric_limits<std::int64_t>::max();
  for (const char* key : {"big", "f", "whole", "exp", "s", "t", "n", "list", "o", "absent"}) {
    refuses([&] { object_.integer(key, kMin, kMax); }, "config.json: " + std::string(key));
  }
  refuses([&] { object_.integer("i", 8, 10); }, "config.json: i");
  refuses([&] { object_.integer_or("i", 9, 8, 10); }, "config.json: i");
  refuses([&] { object_.integer_or("s", 9, 8, 10); }, "config.json: s");
}

TEST_F(JsonObjectTest, RealsAreFiniteNumbersInRange) {
  EXPECT_EQ(object_.real("f", 0, 2), 1.5);
  EXPECT_EQ(object_.real("i", 0, 10), 7.0);
  EXPECT_EQ(object_.real("exp", 0, 1e4), 1000.0);
  EXPECT_EQ(object_.real_or("absent", 0.25, 0, 1), 0.25);
  refuses([&] { object_.real("huge", 0, 1e100); }, "config.json: huge");
  refuses([&] { object_.real("s", 0, 1); }, "config.json: s");
  refuses([&] { object_.real("absent", 0, 1); }, "config.json: absent");
  refuses([&] { object_.real("f", -std::numeric_limits<double>::infinity(), 1); }, "config.json: f");
}

TEST_F(JsonObjectTest, BooleansAndStringsAreNotConverted) {
  EXPECT_TRUE(object_.boolean_or("t", false));
  EXPECT_TRUE(object_.boolean_or("absent", true));
  refuses([&] { object_.boolean_or("i", false); }, "config.json: i");
  EXPECT_EQ(object_.string("s"), "text");
  EXPECT_EQ(object_.string_or("absent", "other"), "other");
  refuses([&] { object_.string("i"); }, "config.json: i");
  refuses([&] { object_.string("n"); }, "config.json: n");
  refuses([&] { object_.string_or("t", ""); }, "config.json: t");
}

TEST_F(JsonObjectTest, ListsOfIntegers) {
  using List = std::vector<std::int64_t>;
  EXPECT_EQ(object_.integers_or("list", {}, 0, 3), (List{1, 2, 3}));
  EXPECT_EQ(object_.integers_or("absent", {9}, 0, 3), List{9});
  EXPECT_EQ(object_.integers_or("i", {}, 0, 10), List{7}) << "one integer alone";
  refuses([&] { object_.integers_or("list", {}, 0, 2); }, "config.json: list");
  refuses([&] { object_.integers_or("mixed", {}, 0, 2); }, "config.json: mixed");
  refuses([&] { object_.integers_or("s", {}, 0, 2); }, "config.json: s");
}

TEST_F(JsonObjectTest, NestedFieldsAreNamedByTheirPath) {
  const JsonObject inner = object_.object("o").object("inner");
  EXPECT_EQ(inner.integer("x", 0, 1), 1);
  refuses([&] { inner.string("x"); }, "config.json: o.inner.x");
  refuses([&] { object_.object("i"); }, "config.json: i");
  refuses([&] { object_.object("absent"); }, "config.json: absent");
}

TEST_F(JsonObjectTest, NullIsLikeAbsent) {
  EXPECT_TRUE(object_.has("i"));
  EXPECT_FALSE(object_.has("n"));
  EXPECT_FALSE(object_.has("absent"));
  EXPECT_EQ(object_.find("n"), nullptr);
  ASSERT_NE(object_.find("list"), nullptr);
  EXPECT_EQ(object_.find("list")->size(), 3u);
}

TEST_F(JsonObjectTest, ErrorsSayWhatWasExpectedAndFound) {
  const Error e = invalid([&] { object_.integer("s", 1, 9); }, "s");
  EXPECT_EQ(e.expected_text(), "an integer in [1, 9]");
  EXPECT_EQ(e.found_text(), "\"text\"");
  EXPECT_EQ(invalid([&] { object_.integer("list", 1, 9); }, "list").found_text(), "an array of 3 elements");
}

TEST(JsonObject, OnlyObjectsAreObjects) {
  const Json array = Json::array();
  EXPECT_EQ(invalid([&] { JsonObject(array, "x.json"); }, "array").where(), "x.json");
}

}  // namespace
}  // namespace sluice
