// JSON that is followed byte by byte, against the reader of whole texts.
#include "tokenizer/chat/calls/json_cursor.h"

#include <gtest/gtest.h>

#include <iostream>
#include <random>

#include "base/error.h"
#include "base/json/json.h"
#include "tokenizer/chat/calls/argument_text.h"
#include "tokenizer/chat/calls/parameter_value.h"

namespace sluice::tokenizer {
namespace {

// Empty if a text is read as JSON.
std::string fault_of(const std::string& text) {
  try {
    parse_json(text, "text");
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(JsonCursor, TakesWhatTheReaderTakes) {
  const std::uint64_t seed = std::random_device()();
  std::cout << "seed " << seed << '\n';
  std::mt19937_64 random(seed);
  const std::vector<std::string> words = {
      "{",  "}", "[",      "]",   ",",  ":", "\"", "\"a\"", "\"\\u00e9\"", " ", "true", "false", "null",
      "-1", "0", "1.5e-3", "2E+", "\\", "n", "\n", "\\n",   "u12",         "x", ".",    "\"b\":"};
  std::size_t good = 0;
  for (int i = 0; i < 40'000; ++i) {
    std::string text = random() % 2 == 0 ? R"({"a": [1, -0.5, {"b": null}], "c": "d\n"})" : "";
    for (std::uint64_t count = random() % 5; count > 0; --count) {
      const std::size_t at = random() % (text.size() + 1);
      if (random() % 3 == 0)
        text.erase(at, random() % 4);
      else
        text.insert(at, words[random() % words.size()]);
    }
    const std::string fault = fault_of(text);
    // The cursor knows the grammar alone: 2E+1212 is a number by it, though no double holds it.
    if (fault.find("duplicate key") != std::string::npos) continue;
    if (fault.find("number overflow") != std::string::npos) continue;
    const bool expected = fault.empty();
    good += expected ? 1 : 0;
    ASSERT_EQ(is_json(text), expected) << text << '\n' << fault;
  }
  EXPECT_GT(good, 2'000u);
}

TEST(JsonCursor, TakesNumbersBeyondADouble) {
  for (const std::string text : {"2E+1212", "[-1e999]", R"({"a": 1e400, "b": 0})"}) {
    EXPECT_TRUE(is_json(text)) << text;
    EXPECT_NE(fault_of(text).find("number overflow"), std::string::npos) << text;
  }
}

TEST(StringContent, IsThatOfTheReader) {
  for (const std::string text :
       {R"("")", R"("a b")", R"("\"\\\/\b\f\n\r\t")", R"("\u0041\u00e9\u20ac")", R"("\ud83d\ude00!")"}) {
    EXPECT_EQ(string_content(text), Json::parse(text).get<std::string>()) << text;
    StringContent content;
    std::string joined;
    for (const char byte : text) joined += content.append({&byte, 1});
    EXPECT_EQ(joined + content.finish(), string_content(text));
  }
  EXPECT_EQ(string_content(R"("\ud83d\n\ude00\d\u12)"), "\xef\xbf\xbd\n\xef\xbf\xbd\\d\\u12");
  for (const std::string& text : {std::string("a\"\\\n\r\t é"), std::string("\0\x1f", 2)})
    EXPECT_EQ(Json::parse(quoted_json(text)).get<std::string>(), text);
}

TEST(ParameterValue, FollowsTheSchema) {
  const Json schema = Json::parse(R"({"properties": {"s": {"type": "string"}, "i": {"type": "integer"},
      "b": {"type": "boolean"}, "o": {"anyOf": [{"type": "string"}, {"type": "array"}]}, "e": {"enum": ["1", "2"]},
      "n": {"type": ["integer", "null"]}, "t": {"type": ["string", "null"]}}})");
  const auto value = [&](const std::string& name, const std::string& text,
                         std::optional<bool> is_string = {}) {
    return parameter_json(text, &schema, name, is_string);
  };
  EXPECT_EQ(value("s", "12"), R"("12")");
  EXPECT_EQ(value("s", " a\n"), R"(" a\n")");
  EXPECT_EQ(value("i", " 12 "), "12");
  EXPECT_EQ(value("i", "twelve"), R"("twelve")");
  EXPECT_EQ(value("b", "True"), "true");
  EXPECT_EQ(value("b", "yes"), R"("yes")");
  EXPECT_EQ(value("o", "[1]"), "[1]");
  EXPECT_EQ(value("o", "1"), R"("1")");
  EXPECT_EQ(value("o", R"("1")"), R"("\"1\"")");
  EXPECT_EQ(value("e", "1"), R"("1")");
  EXPECT_EQ(value("n", "None"), "null");
  EXPECT_EQ(value("t", "None"), "null");
  EXPECT_EQ(value("t", "null"), "null");
  EXPECT_EQ(value("s", "None"), R"("None")");
  // What no schema tells is JSON if it can be.
  EXPECT_EQ(value("x", "True"), R"("True")");
  EXPECT_EQ(value("x", R"({"a": 1})"), R"({"a": 1})");
  EXPECT_EQ(parameter_json("1", nullptr, "x", {}), "1");
  EXPECT_EQ(value("x", "", {}), R"("")");
  // The model's own word comes before the schema's.
  EXPECT_EQ(value("i", "12", true), R"("12")");
  EXPECT_EQ(value("s", "12", false), "12");
}

}  // namespace
}  // namespace sluice::tokenizer
