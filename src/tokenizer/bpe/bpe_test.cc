#include "tokenizer/bpe/bpe.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tokenizer/bpe/bpe_builder.h"
#include "tokenizer/text/utf8.h"

namespace sluice::tokenizer {
namespace {

struct Rules {
  Vocabulary vocabulary;
  MergeList merges;
  std::vector<std::pair<std::string, std::string>> pairs;  // in order of rank
};

Rules random_rules(std::mt19937& random) {
  Rules rules;
  std::vector<std::string> tokens = {"a", "b", "c", "é"};
  TokenId id = 0;
  for (const std::string& token : tokens) rules.vocabulary.add(token, id++);
  std::set<std::string> joined_before;
  for (int i = 0; i < 25; ++i) {
    const std::string left = tokens[random() % tokens.size()];
    const std::string right = tokens[random() % tokens.size()];
    if (!joined_before.insert(left + right).second || rules.vocabulary.find(left + right)) continue;
    rules.vocabulary.add(left + right, id++);
    rules.merges.add_part(left);
    rules.merges.add_part(right);
    rules.pairs.emplace_back(left, right);
    tokens.push_back(left + right);
  }
  return rules;
}

// Byte-pair encoding by its definition: merges the leftmost pair of the lowest rank, again and again.
std::vector<std::string> reference(const std::vector<std::pair<std::string, std::string>>& pairs,
                                   std::string_view text) {
  std::vector<std::string> symbols;
  while (!text.empty()) {
    const unsigned length = decode_utf8(text).length;
    symbols.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  while (true) {
    std::size_t best_rank = pairs.size(), best_at = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      for (std::size_t rank = 0; rank < best_rank; ++rank) {
        if (pairs[rank].first == symbols[i] && pairs[rank].second == symbols[i + 1]) {
          best_rank = rank;
          best_at = i;
        }
      }
    }
    if (best_rank == pairs.size()) return symbols;
    symbols[best_at] += symbols[best_at + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
}

TEST(Bpe, MergesAsTheDefinitionSays) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Rules rules = random_rules(random);
    const auto bpe = build_bpe(std::move(rules.vocabulary), rules.merges, {}, "merges");
    std::string text;
    for (int i = 0; i < 60; ++i) text += std::vector<std::string>{"a", "b", "c", "é"}[random() % 4];
    Bpe::Scratch scratch;
    std::vector<TokenId> ids;
    bpe->encode(text, scratch, ids);
    std::vector<std::string> tokens;
    for (const TokenId id : ids) tokens.emplace_back(*bpe->vocabulary().content(id));
    EXPECT_EQ(tokens, reference(rules.pairs, text));
  }
}

TEST(Vocabulary, KeepsHolesAndRefusesDoubles) {
  Vocabulary vocabulary;
  EXPECT_FALSE(vocabulary.find("a"));
  EXPECT_EQ(vocabulary.add("a", 3), Vocabulary::Added::kYes);
  EXPECT_EQ(vocabulary.add("a", 4), Vocabulary::Added::kContentTaken);
  EXPECT_EQ(vocabulary.add("b", 3), Vocabulary::Added::kIdTaken);
  EXPECT_EQ(vocabulary.add("", 0), Vocabulary::Added::kYes);
  EXPECT_EQ(vocabulary.size(), 2u);
  EXPECT_EQ(vocabulary.end_id(), 4);
  EXPECT_EQ(vocabulary.content(3), "a");
  EXPECT_EQ(vocabulary.content(0), "");
  EXPECT_FALSE(vocabulary.content(1));
  EXPECT_FALSE(vocabulary.content(4));
  EXPECT_FALSE(vocabulary.content(-1));
  for (TokenId id = 10; id < 5000; ++id)
    ASSERT_EQ(vocabulary.add(fmt::format("t{}", id), id), Vocabulary::Added::kYes);
  for (TokenId id = 10; id < 5000; ++id) ASSERT_EQ(vocabulary.find(fmt::format("t{}", id)), id);
  EXPECT_FALSE(vocabulary.find("t5000"));
}

}  // namespace
}  // namespace sluice::tokenizer
