#include "tokenizer/text/utf8.h"

#include <gtest/gtest.h>

namespace sluice::tokenizer {
namespace {

std::string lossy(std::string_view bytes, std::size_t step) {
  Utf8Lossy utf8;
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += step) utf8.append(bytes.substr(at, step), out);
  utf8.finish(out);
  return out;
}

TEST(Utf8, EveryCodePointSurvives) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text = "x";
    append_utf8(text, c);
    const CodePoint read = decode_utf8(std::string_view(text).substr(1));
    ASSERT_EQ(read.value, c);
    ASSERT_EQ(read.length, text.size() - 1);
    ASSERT_EQ(decode_last_utf8(text).value, c);
    ASSERT_FALSE(find_invalid_utf8(text));
  }
}

TEST(Utf8, RefusesWhatIsNotACharacter) {
  for (const std::string_view bad :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xE4\xB8", "\xF0\x9F\x98"}) {
    EXPECT_EQ(decode_utf8(bad).length, 0u);
    EXPECT_EQ(find_invalid_utf8("12345678é" + std::string(bad) + "z"), 10u);
  }
  EXPECT_EQ(decode_utf8("").length, 0u);
}

// The examples of Unicode 15, tables 3-8 to 3-11.
TEST(Utf8, EachMaximalPartBecomesOneReplacement) {
  const std::string r(kReplacementCharacter);
  const std::pair<std::string, std::string> cases[] = {
      {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", r + r + r + r + r + r + r + r + "A"},
      {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", r + r + r + r + r + r + r + r + "A"},
      {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", r + r + r + r + r + "A" + r + r + "B"},
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", r + r + r + r + "A"},
      {"a\xF0\x9F\x98", "a" + r},
      {"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"},
  };
  for (const auto& [bytes, text] : cases) {
    for (std::size_t step = 1; step <= bytes.size(); ++step) EXPECT_EQ(lossy(bytes, step), text) << step;
  }
}

}  // namespace
}  // namespace sluice::tokenizer
