// What is learned of proposals, whether they were computed or not.
#include "engine/draft/sequence_drafts.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::engine {
namespace {

using Tokens = std::vector<tokenizer::TokenId>;

TEST(DraftOdds, FollowWhatComesTrue) {
  DraftOdds odds;
  for (std::size_t tokens = 1; tokens < kMostDrafts; ++tokens)
    for (const std::size_t match : {2u, 3u, 5u, 9u, 16u}) {
      EXPECT_GT(odds.chance(match, tokens), odds.chance(match, tokens + 1));
      EXPECT_LE(odds.chance(match, tokens), 1);
    }
  EXPECT_LT(odds.chance(2, 1), odds.chance(16, 1));
  for (int i = 0; i < 200; ++i) odds.count(2, 4, i % 2 == 0 ? 4 : 1);
  EXPECT_NEAR(odds.chance(2, 1), 1, 0.01);
  for (std::size_t tokens = 2; tokens <= 4; ++tokens) EXPECT_NEAR(odds.chance(2, tokens), 0.5, 0.1);
  EXPECT_LT(odds.chance(3, 1), 0.9);  // nothing was learned of other matches
  for (int i = 0; i < 200; ++i) odds.count(2, 4, 0);
  EXPECT_LT(odds.chance(2, 1), 0.01);
  EXPECT_LT(odds.chance(2, 4), 0.01);
}

TEST(SequenceDrafts, LearnFromTokensDrawnOneByOne) {
  SequenceDrafts repeating, other;
  Tokens text = {1, 2, 3, 4, 5, 6, 7, 8};
  const double before = repeating.propose(text).count == 0 ? 0 : 1;
  EXPECT_EQ(before, 0);
  for (int i = 0; i < 100; ++i) {
    text.push_back(text[text.size() - 8]);
    repeating.propose(text);
  }
  ASSERT_EQ(repeating.propose(text).match, kLongestMatch);
  EXPECT_GT(repeating.chance(4), 0.9);
  // Pairs come again, and something else follows.
  Tokens pairs;
  for (tokenizer::TokenId i = 0; i < 300; i += 3) {
    for (const tokenizer::TokenId id : {1000, 1001, i}) {
      pairs.push_back(id);
      other.propose(pairs);
    }
  }
  pairs.push_back(1000);
  pairs.push_back(1001);
  ASSERT_EQ(other.propose(pairs).match, 2u);
  EXPECT_LT(other.chance(1), 0.1);
}

TEST(SequenceDrafts, LearnFromTokensThatComeTogether) {
  SequenceDrafts drafts;
  Tokens text;
  for (int i = 0; i < 40; ++i) {
    for (tokenizer::TokenId id = 0; id < 5; ++id) text.push_back(id);
    drafts.propose(text);
  }
  EXPECT_GT(drafts.chance(4), 0.9);
}

}  // namespace
}  // namespace sluice::engine
