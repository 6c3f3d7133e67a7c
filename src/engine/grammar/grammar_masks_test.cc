#include "engine/grammar/grammar_masks.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "engine/grammar/answer_guide.h"
#include "engine/grammar/schema_testing.h"
#include "engine/grammar/schema_validator_testing.h"

namespace sluice::engine {
namespace {

using testing::below;
using testing::grammar_of;
using testing::Random;

constexpr tokenizer::TokenId kEnd = 0, kOther = 1;  // special tokens
const std::vector<std::string> kSchemas = {
    R"({"type":"object","properties":{"name":{"type":"string","maxLength":40},"age":{"type":"integer","minimum":0,"maximum":150},)"
    R"("tags":{"type":"array","items":{"enum":["red","green","blue"]},"maxItems":3}},"required":["name","age"],"additionalProperties":false})",
    R"({"type":"array","items":{"anyOf":[{"type":"string","pattern":"^[a-c]+\"?é$"},{"type":"null"},{"type":"number"}]},"minItems":1,"maxItems":4})",
    R"({"type":"object","additionalProperties":{"type":"boolean"},"properties":{"zoo":{"type":"integer"}}})",
    R"({"$defs":{"t":{"type":"object","properties":{"l":{"anyOf":[{"$ref":"#/$defs/t"},{"type":"null"}]}},"required":["l"],"additionalProperties":false}},"$ref":"#/$defs/t"})",
    R"({"type":"string","minLength":5,"maxLength":9})",
    R"({"type":"integer"})"};

// Bytes, parts of JSON, and parts of characters.
std::vector<std::string> vocabulary(Random& random) {
  std::vector<std::string> tokens = {"<end>", "<other>"};
  for (int byte = 1; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (const char* more : {"{\"",      "\":",      "\",\"",     "\"}",   "}",      "\": \"",
                           "name",     "age",      "\"name\":", "true",  "fal",    "se",
                           "null",     "],",       "[\"",       "red\"", "gre",    "en",
                           "  ",       "\n  ",     "12",        "150",   "0.5",    "\xC3\xA9\"",
                           "\xF0\x9F", "\x98\x80", "abc",       "}}}",   "null}}", "{\"l\":{\"l\":",
                           "\\u00",    "\\\"",     "\xA9"})
    tokens.emplace_back(more);
  for (int i = 0; i < 200; ++i) {
    std::string token;
    for (std::size_t k = 1 + below(random, 6); k > 0; --k)
      token += "{}[]\":,abcredl019 \n\\"[below(random, 20)];
    tokens.push_back(token);
  }
  tokens.push_back(tokens.back());  // two tokens of the same bytes
  return tokens;
}

GrammarMasks masks_of(const std::vector<std::string>& tokens, std::size_t most = std::size_t{8} << 20) {
  std::vector<std::pair<tokenizer::TokenId, std::string>> ordinary;
  for (std::size_t i = 2; i < tokens.size(); ++i) ordinary.emplace_back(i, tokens[i]);
  return {TokenTrie(ordinary, {kEnd, kOther}), tokens, most};
}

// Whether a text of these bytes goes on, by a machine that has seen nothing else.
bool goes_on(const Grammar& grammar, const std::string& text) {
  GrammarMachine machine(grammar);
  GrammarMachine::Set set = machine.start();
  for (const char byte : text) set = machine.step(set, static_cast<std::uint8_t>(byte));
  return set != GrammarMachine::kDead;
}

// Ends soon: what closes is taken rather than what opens.
std::size_t pick(Random& random, const std::vector<std::size_t>& allowed,
                 const std::vector<std::string>& tokens) {
  for (int i = 0; i < 6; ++i) {
    const std::size_t one = allowed[below(random, allowed.size())];
    if (one == kEnd || tokens[one].find_first_of("\"}]") != std::string::npos || i == 5) return one;
  }
  return allowed.front();
}

TEST(GrammarMasks, AreWhatEachTokenByItselfIsJudgedToBe) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  Random random(seed);
  const std::vector<std::string> tokens = vocabulary(random);
  GrammarMasks masks = masks_of(tokens);
  std::size_t steps = 0, ended = 0;
  for (const std::string& text : kSchemas) {
    const Json schema = Json::parse(text);
    const auto grammar = grammar_of(schema);
    for (int walk = 0; walk < 4; ++walk) {
      AnswerGuide guide(grammar, masks);
      guide.set_ends({kEnd});
      std::string answer;
      bool whole = false;
      for (int step = 0; step < 50 && !whole; ++step, ++steps) {
        const std::span<const std::uint64_t> allowed = guide.allowed();
        std::vector<std::size_t> those;
        for (std::size_t id = 0; id < tokens.size(); ++id) {
          const bool expected = id == kEnd     ? testing::accepts(*grammar, answer)
                                : id == kOther ? false
                                               : goes_on(*grammar, answer + tokens[id]);
          ASSERT_EQ(has_bit(allowed, id), expected) << answer << " + " << tokens[id] << " of " << text;
          if (expected) those.push_back(id);
        }
        const std::size_t next = pick(random, those, tokens);
        if (next != kEnd) answer += tokens[next];
        guide.accept(static_cast<tokenizer::TokenId>(next));
        whole = next == kEnd || guide.complete();
      }
      if (!whole) continue;
      ++ended;
      EXPECT_TRUE(testing::fits(schema, Json::parse(answer), schema)) << answer;
    }
  }
  EXPECT_GT(steps, 200u);
  EXPECT_GT(ended, 10u);
  EXPECT_GT(masks.counts().hits, 0u);
}

TEST(GrammarMasks, AreKeptWithinTheirMemory) {
  Random random(3);
  const std::vector<std::string> tokens = vocabulary(random);
  const std::size_t least = masks_of(tokens, 0).held_bytes();
  for (const std::size_t more : {std::size_t{0}, std::size_t{4000}, std::size_t{1} << 20}) {
    GrammarMasks masks = masks_of(tokens, least + more);
    const auto grammar = grammar_of(Json::parse(kSchemas[0]));
    for (int walk = 0; walk < 20; ++walk) {
      AnswerGuide guide(grammar, masks);
      guide.set_ends({kEnd});
      for (int step = 0; step < 30 && !guide.complete(); ++step) {
        const std::span<const std::uint64_t> allowed = guide.allowed();
        std::vector<std::size_t> those;
        for (std::size_t id = 1; id < tokens.size(); ++id)
          if (has_bit(allowed, id)) those.push_back(id);
        guide.accept(static_cast<tokenizer::TokenId>(pick(random, those, tokens)));
        EXPECT_LE(masks.held_bytes(), least + more);
      }
    }
    if (more == 0)
      EXPECT_EQ(masks.counts().hits, 0u);
    else
      EXPECT_GT(masks.counts().hits, 0u);
  }
}

TEST(GrammarMasks, OfCountsFarFromTheirLimitsAreOne) {
  std::vector<std::string> tokens = {"<end>", "<other>", "\"", "a", "bb"};
  GrammarMasks masks = masks_of(tokens);
  const auto grammar = grammar_of(Json::parse(R"({"type":"string","maxLength":100})"));
  AnswerGuide guide(grammar, masks);
  guide.accept(2);
  for (int i = 0; i < 90; ++i) {
    guide.allowed();
    guide.accept(3);
  }
  EXPECT_LE(masks.counts().misses, 2u);
  for (int i = 0; i < 9; ++i) guide.accept(3);
  EXPECT_TRUE(has_bit(guide.allowed(), 3));
  EXPECT_FALSE(has_bit(guide.allowed(), 4)) << "two characters where one is left";
  guide.accept(3);
  EXPECT_FALSE(has_bit(guide.allowed(), 3));
  EXPECT_TRUE(has_bit(guide.allowed(), 2));
}

TEST(AnswerGuide, EndsWhereNothingElseMayFollow) {
  const std::vector<std::string> tokens = {"<end>", "<other>", "1", "2", "[", "]", ","};
  GrammarMasks masks = masks_of(tokens);
  AnswerGuide number(grammar_of(Json::parse(R"({"type":"integer"})")), masks);
  number.set_ends({kEnd});
  EXPECT_FALSE(has_bit(number.allowed(), kEnd));
  number.accept(2);
  EXPECT_TRUE(has_bit(number.allowed(), kEnd));
  EXPECT_TRUE(has_bit(number.allowed(), 3));
  EXPECT_FALSE(number.complete());
  number.accept(kEnd);
  EXPECT_TRUE(number.complete());
  AnswerGuide array(grammar_of(Json::parse(R"({"type":"array","items":{"type":"integer"}})")), masks);
  for (const tokenizer::TokenId id : {4, 2, 6, 3, 5}) {
    EXPECT_FALSE(array.complete());
    array.accept(id);
  }
  EXPECT_TRUE(array.complete());
}

TEST(AnswerGuide, SaysWhenTheVocabularyCannotGoOn) {
  const std::vector<std::string> tokens = {"<end>", "<other>", "[", "1"};
  GrammarMasks masks = masks_of(tokens);
  AnswerGuide guide(grammar_of(Json::parse(R"({"type":"array","items":{"type":"boolean"}})")), masks);
  guide.set_ends({kEnd});
  EXPECT_TRUE(has_bit(guide.allowed(), 2));
  guide.accept(2);
  EXPECT_THROW(guide.allowed(), Error);
}

}  // namespace
}  // namespace sluice::engine
