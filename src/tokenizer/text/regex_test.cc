#include "tokenizer/text/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tokenizer/text/regex_syntax.h"

namespace sluice::tokenizer {
namespace {

using testing::HasSubstr;

std::vector<std::string> matches(std::string_view pattern, std::string_view text) {
  std::vector<std::string> out;
  regex_pattern(pattern, "here")->find(text, [&](const Match& match) {
    if (match.matched) out.emplace_back(text.substr(match.begin, match.end - match.begin));
  });
  return out;
}

template <class Body>
Error error_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorKind::kUsage, "");
}

TEST(Regex, UnknownSyntaxIsUnsupportedAndNamesThePlace) {
  for (const std::string_view pattern :
       {"[a&&b]", "[a[bc]]", "[[:alpha:]]", "a{2}+",    "a{2}?", "(?~a)",  "(*FAIL)", "(?x: a)",
        "\\G",    "\\X",     "\\O",         "\\M-a",    "\\p",   "\\p{L",  "\\p{}",   "\\p{L-}",
        "[\\W]",  "[\\D]",   "[\\b]",       "\\x",      "\\xff", "\\x{41", "\\u12",   "[]",
        "[a",     "a\\",     "\\0",         "(?P<x>a)", "(?"}) {
    const Error error = error_of([&] { regex_pattern(pattern, "tokenizer.json: x"); });
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported) << pattern;
    EXPECT_EQ(error.where(), "tokenizer.json: x") << pattern;
  }
}

TEST(Regex, BrokenPatternsAreInvalid) {
  for (const std::string_view pattern :
       {"(", ")", "a**", "[b-a]", "\\p{Nonsense}", "(?<x>a)(?<x>b)", "\\1", "(?<=a*)b", "\\x{110000}"}) {
    EXPECT_EQ(error_of([&] { regex_pattern(pattern, "x"); }).kind(), ErrorKind::kInvalid) << pattern;
  }
  const Error long_one = error_of([&] { regex_pattern(std::string(1 << 20, 'a'), "x"); });
  EXPECT_EQ(long_one.kind(), ErrorKind::kUnsupported);
  EXPECT_EQ(error_of([&] { regex_pattern(std::string(1000, '('), "x"); }).kind(), ErrorKind::kInvalid);
}

TEST(Regex, HostilePatternsEndInAnErrorNotInAHang) {
  std::string text(200000, 'a');
  text += '!';
  for (const std::string_view pattern : {"(a+)+$", "(a|aa)+$"}) {
    const Error error = error_of([&] { matches(pattern, text); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalid);
    EXPECT_THAT(error.what(), HasSubstr("here: regular expression cannot be matched"));
  }
}

TEST(Regex, WhiteSpaceLeavesOutTheMongolianVowelSeparator) {
  EXPECT_TRUE(matches("\\s", "\xE1\xA0\x8E").empty());
  EXPECT_TRUE(matches("[\\s]", "\xE1\xA0\x8E").empty());
  EXPECT_EQ(matches("\\S", "\xE1\xA0\x8E").size(), 1u);
  EXPECT_EQ(matches("[\\S]", "\xE1\xA0\x8E").size(), 1u);
}

TEST(Regex, EndOfLineWhiteSpaceIsTheSameWithItsShortCut) {
  const std::string text = "a  \n b \n\n  c   x  \t";
  EXPECT_EQ(matches("\\s+$", text), matches("(?:\\s)+$", text));
  std::string blanks(1'000'000, ' ');
  EXPECT_EQ(matches("\\s+$", blanks).size(), 1u);
  blanks += 'x';
  EXPECT_EQ(matches("\\s+$", blanks).size(), 0u);
}

// The search tries starting points in blocks.
TEST(Regex, MatchesBeginningFarBehindAreFound) {
  std::string text(100'000, 'x');
  text.append("\xC3\xA9y").append(5000, 'x').append("y");
  EXPECT_EQ(matches("y", text).size(), 2u);
  EXPECT_EQ(matches("(?<=\xC3\xA9)y", text).size(), 1u);
  EXPECT_EQ(matches("x+y", text).size(), 1u);
  EXPECT_EQ(matches("\\Ax", text).size(), 1u);
}

}  // namespace
}  // namespace sluice::tokenizer
