#include "tokenizer/sentencepiece/unigram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>

#include "base/error.h"
#include "tokenizer/stages/chars_map.h"
#include "tokenizer/stages/normalizer.h"
#include "tokenizer/text/base64.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Token {
  std::string content;
  double score;
};

Unigram make(const std::vector<Token>& tokens, const UnigramOptions& options) {
  Vocabulary vocabulary;
  std::vector<double> scores;
  for (const Token& token : tokens) {
    vocabulary.add(token.content, static_cast<TokenId>(scores.size()));
    scores.push_back(token.score);
  }
  return Unigram(std::move(vocabulary), std::move(scores), options);
}

std::vector<TokenId> encode(const Unigram& unigram, std::string_view text) {
  Unigram::Scratch scratch;
  std::vector<TokenId> ids;
  unigram.encode(text, scratch, ids);
  return ids;
}

TEST(Unigram, TakesTheMostLikelyPath) {
  const Unigram unigram =
      make({{"<unk>", 0}, {"a", -1}, {"b", -1}, {"ab", -1.5}, {"ba", -3}, {"aba", -10}}, {.unknown = 0});
  EXPECT_THAT(encode(unigram, ""), IsEmpty());
  EXPECT_THAT(encode(unigram, "ab"), ElementsAre(3));
  EXPECT_THAT(encode(unigram, "ba"), ElementsAre(2, 1));
  EXPECT_THAT(encode(unigram, "aba"), ElementsAre(3, 1));
}

TEST(Unigram, OfEquallyLikelyPathsTheOneFoundFirstStays) {
  const Unigram unigram = make({{"a", -1}, {"aa", -2}}, {});
  EXPECT_THAT(encode(unigram, "aa"), ElementsAre(1));  // offered from byte 0, before "a" from byte 1
}

TEST(Unigram, UnknownCharactersAreOneToken) {
  const Unigram unigram = make({{"<unk>", 0}, {"a", -1}}, {.unknown = 0});
  EXPECT_THAT(encode(unigram, "zé中a中"), ElementsAre(0, 1, 0));
}

TEST(Unigram, FusedTextThatIsATokenIsThatToken) {
  // "xy" never wins as a path, but the run of unknown characters has its content.
  const Unigram unigram = make({{"<unk>", 0}, {"xy", -100}}, {.unknown = 0});
  EXPECT_THAT(encode(unigram, "xx"), ElementsAre(0));
  const Unigram cheap = make({{"<unk>", 0}, {"xy", -100}, {"z", 500}}, {.unknown = 0});
  EXPECT_THAT(encode(cheap, "xy"), ElementsAre(1));
}

TEST(Unigram, FallsBackToBytesIfAllAreThere) {
  std::vector<Token> tokens = {{"<unk>", 0}, {"<0xC3>", 0}, {"<0xA9>", 0}};
  EXPECT_THAT(encode(make(tokens, {.unknown = 0, .byte_fallback = true}), "é"), ElementsAre(1, 2));
  EXPECT_THAT(encode(make(tokens, {.unknown = 0, .byte_fallback = true}), "éx"), ElementsAre(0));
  EXPECT_THAT(encode(make(tokens, {.unknown = 0}), "é"), ElementsAre(0));
}

TEST(Unigram, WithoutUnknownTokenAnUnknownCharacterIsAnError) {
  EXPECT_THROW(encode(make({{"a", -1}}, {}), "ab"), Error);
}

// Tries every way of cutting a text.
TEST(Unigram, FindsTheBestOfAllPaths) {
  const std::uint64_t seed = 20240611;
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    std::vector<Token> tokens = {{"a", -2}, {"b", -2.5}, {"é", -3}};
    for (int i = 0; i < 6; ++i) {
      std::string content;
      for (int n = 2 + static_cast<int>(random() % 3); n > 0; --n) {
        constexpr const char* kLetters[] = {"a", "b", "é"};
        content += kLetters[random() % 3];
      }
      const bool known =
          std::any_of(tokens.begin(), tokens.end(), [&](const Token& t) { return t.content == content; });
      if (!known) tokens.push_back({content, -static_cast<double>(random() % 1000) / 100});
    }
    std::string text;
    for (int n = static_cast<int>(random() % 9); n > 0; --n)
      text += random() % 3 == 0 ? "é" : random() % 2 == 0 ? "a" : "b";
    const std::function<double(std::string_view)> best = [&](std::string_view rest) {
      if (rest.empty()) return 0.0;
      double most = -1e300;
      for (const Token& token : tokens) {
        if (rest.starts_with(token.content))
          most = std::max(most, token.score + best(rest.substr(token.content.size())));
      }
      return most;
    };
    std::string joined;
    double score = 0;
    for (const TokenId id : encode(make(tokens, {}), text)) {
      joined += tokens[static_cast<std::size_t>(id)].content;
      score += tokens[static_cast<std::size_t>(id)].score;
    }
    EXPECT_EQ(joined, text) << "seed " << seed;
    EXPECT_NEAR(score, best(text), 1e-9) << "seed " << seed << ", round " << round;
  }
}

TEST(Base64, IsStrict) {
  EXPECT_EQ(decode_base64(""), "");
  EXPECT_EQ(decode_base64("QQ=="), "A");
  EXPECT_EQ(decode_base64("QUI="), "AB");
  EXPECT_EQ(decode_base64("QUJD"), "ABC");
  EXPECT_EQ(decode_base64("+/+/"), "\xfb\xff\xbf");
  for (const char* const bad :
       {"Q", "QQ", "QQ=", "QR==", "QUJ=", "QU=D", "====", "QQ==QQ==", "QU J", "QUI-", "Q==="}) {
    EXPECT_EQ(decode_base64(bad), std::nullopt) << bad;
  }
}

std::string u32(std::uint32_t value) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(value >> shift & 0xff));
  return bytes;
}

// A double array with one key and its `value`. The children of each byte have 256 units of their own.
std::string trie_of(std::string_view key, std::uint32_t value) {
  std::vector<std::uint32_t> units(256 * (key.size() + 2), 0);
  units[0] = 256u << 10;  // root: children at 256 ^ byte
  for (std::uint32_t i = 0; i < key.size(); ++i) {
    const auto byte = static_cast<unsigned char>(key[i]);
    const std::uint32_t at = 256 * (i + 1) ^ byte, next = 256 * (i + 2);
    units[at] = byte | (at ^ next) << 10 | (i + 1 == key.size() ? 1u << 8 : 0);
  }
  units[256 * (key.size() + 1)] = 1u << 31 | value;
  std::string bytes = u32(static_cast<std::uint32_t>(4 * units.size()));
  for (const std::uint32_t unit : units) bytes += u32(unit);
  return bytes;
}
std::string trie_of_a(std::uint32_t value) { return trie_of("a", value); }

TEST(CharsMap, ReplacesTheShortestKey) {
  const std::string replacements("x\0\xC3\xA9z\0", 6);
  const CharsMap map(trie_of_a(2) + replacements, "t");
  EXPECT_EQ(map.find("a"), "\xC3\xA9z");
  EXPECT_EQ(map.find("ab"), "\xC3\xA9z");
  EXPECT_EQ(map.find("b"), std::nullopt);
  EXPECT_EQ(map.find(""), std::nullopt);
  EXPECT_EQ(CharsMap(trie_of_a(0) + replacements, "t").find("a"), "x");
  EXPECT_EQ(CharsMap(trie_of_a(1) + replacements, "t").find("a"), "");
  EXPECT_EQ(CharsMap(trie_of_a(3) + replacements, "t").find("a"), std::nullopt);    // inside a character
  EXPECT_EQ(CharsMap(trie_of_a(999) + replacements, "t").find("a"), std::nullopt);  // behind the end
}

TEST(CharsMap, RefusesWhatIsBroken) {
  const std::string good = trie_of_a(0) + std::string("x\0", 2);
  EXPECT_NO_THROW(CharsMap(good, "t"));
  for (std::size_t length = 0; length < 4 + 4 * 256; length += 101)
    EXPECT_THROW(CharsMap(good.substr(0, length), "t"), Error);
  EXPECT_THROW(CharsMap(u32(0), "t"), Error);
  EXPECT_THROW(CharsMap(u32(6) + "abcdef", "t"), Error);
  EXPECT_THROW(CharsMap(trie_of_a(0) + "\xC3", "t"), Error);
  EXPECT_THROW(CharsMap(trie_of_a(0) + std::string(2000, 'x'), "t"), Error);
}

TEST(CharsMap, AnyUnitsAreSafe) {
  std::mt19937_64 random(7);
  int replaced = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::uint32_t root = random() % 64;
    std::string bytes = u32(4 * 64) + u32(root << 10);
    for (std::uint32_t i = 1; i < 64; ++i) {
      const std::uint32_t noise = static_cast<std::uint32_t>(random());
      const std::uint32_t child = (i ^ root) | (noise & 1) << 8 | (noise >> 8 & 63) << 10;  // the root's
      const std::uint32_t kinds[] = {noise, child, noise % 6};
      bytes += u32(kinds[random() % 3]);
    }
    const CharsMap map(bytes + "ab\xC3\xA9", "t");
    const auto normalizer = precompiled_normalizer(map);
    for (int byte = 1; byte < 128; ++byte) {
      const std::string text = {static_cast<char>(byte), static_cast<char>(random() % 128), 'c'};
      std::string normal = text;
      normalizer->normalize(normal);
      ASSERT_EQ(find_invalid_utf8(normal), std::nullopt) << "round " << round << ", byte " << byte;
      if (const auto found = map.find(text)) {
        ASSERT_EQ(find_invalid_utf8(*found), std::nullopt) << "round " << round << ", byte " << byte;
        ++replaced;
      }
    }
  }
  EXPECT_GT(replaced, 1000);
}

// One base character with any number of marks is one cluster: its growth must be checked on the way.
TEST(PrecompiledNormalizer, AClusterOfAnyLengthIsBounded) {
  const std::string mark = "\xCC\x81";  // U+0301
  const auto normalizer =
      precompiled_normalizer(CharsMap(trie_of(mark, 0) + std::string(1000, 'x') + '\0', "t"));
  std::string small = "a" + mark + mark + mark;
  normalizer->normalize(small);
  EXPECT_EQ(small, "a" + std::string(3000, 'x'));
  std::string text = "a";
  for (int i = 0; i < 600'000; ++i) text += mark;
  try {
    normalizer->normalize(text);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.found_text(), "536871001 bytes or more");  // the first step beyond 512 MiB
  }
}

}  // namespace
}  // namespace sluice::tokenizer
