#include "engine/grammar/pattern.h"

#include <gtest/gtest.h>

#include <regex>

#include "engine/grammar/random_schema_testing.h"
#include "engine/grammar/schema_testing.h"
#include "engine/grammar/schema_validator_testing.h"

namespace sluice::engine {
namespace {

// std::regex is the judge, of texts of ASCII without controls.
TEST(Pattern, TakesTheTextsThatAnotherEngineTakes) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  testing::Random random(seed);
  std::size_t taken = 0, refused = 0;
  const std::vector<std::string> atoms = {"a",   "b",        "[a-b]", "[^a]", ".",      "\\d",
                                          "\\w", "(?:ab|b)", "(a|b)", "\\.",  "[\\d-]", "\\W"};
  const std::vector<std::string> counts = {"", "", "", "*", "+", "?", "{2}", "{1,3}", "{2,}", "*?"};
  for (int round = 0; round < 400; ++round) {
    std::string pattern = testing::coin(random) ? "^" : "";
    for (std::size_t i = 1 + testing::below(random, 4); i > 0; --i)
      pattern += atoms[testing::below(random, atoms.size())] + counts[testing::below(random, counts.size())];
    if (testing::coin(random)) pattern += "$";
    if (testing::coin(random, 4)) pattern += "|^ba$";
    const auto grammar = testing::grammar_of(Json::object({{"type", "string"}, {"pattern", pattern}}));
    const std::regex judge(pattern);
    for (int i = 0; i < 60; ++i) {
      std::string text;
      for (std::size_t k = testing::below(random, 7); k > 0; --k)
        text += "ab1.-\"\\"[testing::below(random, 7)];
      const bool expected = std::regex_search(text, judge);
      ++(expected ? taken : refused);
      ASSERT_EQ(testing::accepts(*grammar, Json(text).dump()), expected) << pattern << " and " << text;
    }
  }
  EXPECT_GT(taken, 2000u);
  EXPECT_GT(refused, 2000u);
}

TEST(Pattern, KnowsEscapesAndUnicode) {
  const auto takes = [](const char* pattern, const std::string& text) {
    return testing::accepts(*testing::grammar_of(Json::object({{"type", "string"}, {"pattern", pattern}})),
                            Json(text).dump());
  };
  EXPECT_TRUE(takes("^[à-ü]+$", "éè"));
  EXPECT_FALSE(takes("^[à-ü]+$", "e"));
  EXPECT_TRUE(takes("^.{2}$", "中😀"));
  EXPECT_FALSE(takes("^.$", "中😀"));
  EXPECT_TRUE(takes("^\\u00e9\\x41\\u{1F600}$", "éA😀"));
  EXPECT_TRUE(takes("^a\\nb$", "a\nb"));
  EXPECT_TRUE(takes("^\\/\\-\\\\$", "/-\\"));
  EXPECT_TRUE(takes("^(?<year>\\d{4})$", "2026"));
  EXPECT_TRUE(takes("^\\S+$", "中"));
  EXPECT_FALSE(takes("^\\S+$", "a b"));
  EXPECT_FALSE(takes("^\\S$", "\xC2\xA0"));
}

}  // namespace
}  // namespace sluice::engine
