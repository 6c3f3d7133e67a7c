#include "store/json_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace sluice::store {
namespace {

using ::testing::HasSubstr;

bool accepts(std::string_view text) {
  try {
    JsonReader json(text, "x.json");
    json.skip_value();
    json.end();
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalid);
    EXPECT_LE(error.offset().value(), text.size());
    return false;
  }
}

std::string error_of(std::string_view text) {
  try {
    JsonReader json(text, "x.json", 100);
    json.skip_value();
    json.end();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(JsonReader, ReadsWhatIsAskedFor) {
  JsonReader json(R"( {"a" : [ 1,18446744073709551615 ] , "b":"x\u00e9\uD83D\uDE00\n\"" ,"c":{} } )",
                  "x.json");
  std::string key;
  json.begin_object();
  ASSERT_TRUE(json.next_key(key));
  EXPECT_EQ(key, "a");
  json.begin_array();
  ASSERT_TRUE(json.next_item());
  EXPECT_EQ(json.read_number(), 1u);
  ASSERT_TRUE(json.next_item());
  EXPECT_EQ(json.read_number(), UINT64_MAX);
  EXPECT_FALSE(json.next_item());
  ASSERT_TRUE(json.next_key(key));
  EXPECT_TRUE(json.at_string());
  EXPECT_EQ(json.read_string(), "x\u00e9\U0001F600\n\"");
  ASSERT_TRUE(json.next_key(key));
  json.skip_value();
  EXPECT_FALSE(json.next_key(key));
  json.end();
}

TEST(JsonReader, NamesFileAndByte) {
  EXPECT_EQ(error_of("[1,]"),
            "x.json at byte 103: not legal JSON here; expected a value, found ']'; "
            "download the file again");
  EXPECT_THAT(error_of("{\"a\":\"b"), HasSubstr("does not end"));
  EXPECT_THAT(error_of("\"\xff\""), HasSubstr("not UTF-8"));
  EXPECT_THAT(error_of("\"\\ud800x\""), HasSubstr("surrogate"));
  EXPECT_THAT(error_of("1 2"), HasSubstr("something follows"));
  EXPECT_THAT(error_of(std::string(70, '[') + std::string(70, ']')), HasSubstr("nested too deep"));
  EXPECT_THAT(error_of(""), HasSubstr("the end of the text"));
}

TEST(JsonReader, NumbersAreWholeAndInRange) {
  for (const char* text : {"18446744073709551616", "-1", "1.0", "1e3", "01", "\"1\"", "true", ""}) {
    JsonReader json(text, "x.json");
    EXPECT_THROW(json.read_number(), Error) << text;
  }
}

// Random damage to a legal text: our reader and nlohmann::json, an independent parser, agree on what is JSON.
TEST(JsonReader, AgreesWithAnotherParser) {
  constexpr unsigned kSeed = 20260801;
  SCOPED_TRACE(fmt::format("seed {}", kSeed));
  std::mt19937 random(kSeed);
  const std::string good = R"({"a":[1,-2.5e+3,0,true,false,null,{"b":"\u00e9\\\/x"}],"c":"ü€😀","d":{}})";
  constexpr std::string_view kBytes = "{}[]\",:\\u0123eE+-.truefalsn \t\n\x01\x80\xc3\xe2\xf0";
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = good;
    for (unsigned edits = 1 + random() % 3; edits-- > 0;) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = kBytes[random() % kBytes.size()];
          break;
        case 1:
          text.erase(at, 1 + random() % 3);
          break;
        case 2:
          text.insert(at, 1, kBytes[random() % kBytes.size()]);
          break;
      }
      if (text.empty()) text = "0";
    }
    const bool ours = accepts(text);
    bool theirs = true;
    try {
      [[maybe_unused]] const nlohmann::json value = nlohmann::json::parse(text);
    } catch (const nlohmann::json::out_of_range&) {
      continue;  // a number beyond double's range: legal JSON, but nlohmann::json stops there
    } catch (const nlohmann::json::exception&) {
      theirs = false;
    }
    EXPECT_EQ(ours, theirs) << text;
    accepted += ours;
  }
  EXPECT_GT(accepted, 100);
  EXPECT_LT(accepted, 19900);
}

TEST(JsonReader, WrittenStringsComeBack) {
  const std::string odd = std::string("a\"\\\n\t\x01\0z", 8) + "é";
  std::string text;
  append_json_string(text, odd);
  JsonReader json(text, "x.json");
  EXPECT_EQ(json.read_string(), odd);
  EXPECT_TRUE(is_utf8(odd));
  EXPECT_FALSE(is_utf8("\xc0\x80"));
  EXPECT_FALSE(is_utf8("\xed\xa0\x80"));
  EXPECT_FALSE(is_utf8("\xf4\x90\x80\x80"));
  EXPECT_FALSE(is_utf8("ab\xe2\x82"));
}

}  // namespace
}  // namespace sluice::store
