// What a text's own past proposes, beside a search that tries every length at every place.
#include "engine/draft/ngram_draft.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>
#include <vector>

namespace sluice::engine {
namespace {

using Tokens = std::vector<tokenizer::TokenId>;

// The longest end of the text, from the longest that counts down, at the latest place before.
Draft by_trying(const Tokens& text, std::size_t most) {
  Draft draft;
  for (std::size_t length = kLongestMatch; length >= kShortestMatch; --length)
    for (std::size_t begin = text.size(); begin-- > 0;) {
      if (begin + length >= text.size()) continue;
      const Tokens there(text.begin() + static_cast<std::ptrdiff_t>(begin),
                         text.begin() + static_cast<std::ptrdiff_t>(begin + length));
      const Tokens end(text.end() - static_cast<std::ptrdiff_t>(length), text.end());
      if (there != end) continue;
      draft.match = length;
      Tokens longer = text;
      for (; draft.count < most; ++draft.count) {
        draft.ids[draft.count] = longer[begin + length + draft.count];
        longer.push_back(draft.ids[draft.count]);
      }
      return draft;
    }
  return draft;
}

Tokens listed(const Draft& draft) { return {draft.tokens().begin(), draft.tokens().end()}; }

TEST(NgramDraft, IsWhatFollowedTheLastTime) {
  EXPECT_EQ(listed(ngram_draft(Tokens{1, 2, 3, 4, 5, 9, 1, 2})), (Tokens{3, 4, 5, 9}));
  EXPECT_EQ(listed(ngram_draft(Tokens{1, 2, 3, 9, 1, 2, 4, 9, 1, 2})), (Tokens{4, 9, 1, 2}));  // the latest
  EXPECT_EQ(listed(ngram_draft(Tokens{7, 1, 2, 3, 8, 1, 2, 4, 7, 1, 2})),
            (Tokens{3, 8, 1, 2}));  // the longest
  EXPECT_EQ(listed(ngram_draft(Tokens{1, 2, 3, 4, 1, 2}, 2)), (Tokens{3, 4}));
  EXPECT_EQ(ngram_draft(Tokens{1, 2, 3, 4, 1, 2}).match, 2u);
}

TEST(NgramDraft, GoesOnInItsOwnCopy) {
  EXPECT_EQ(listed(ngram_draft(Tokens{1, 2, 1, 2})), (Tokens{1, 2, 1, 2}));
  EXPECT_EQ(listed(ngram_draft(Tokens{5, 5, 5})), (Tokens{5, 5, 5, 5}));
}

TEST(NgramDraft, IsEmptyWhereNothingAgrees) {
  for (const Tokens& text : {Tokens{}, {1}, {1, 1}, {1, 2}, {1, 2, 3, 4}, {1, 2, 9, 2}, {2, 1, 1, 2}})
    EXPECT_EQ(ngram_draft(text).count, 0u);
  EXPECT_EQ(ngram_draft(Tokens{1, 2, 1, 2}, 0).count, 0u);
}

TEST(NgramDraft, IsTheOneThatTryingFinds) {
  const char* const given = std::getenv("SLUICE_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::cout << "SLUICE_TEST_SEED=" << seed << '\n';
  std::mt19937_64 random(seed);
  std::size_t found = 0, none = 0, longest = 0;
  for (int i = 0; i < 800; ++i) {
    Tokens text(random() % 120);
    const std::size_t kinds = 1 + random() % 12;
    for (std::size_t t = 0; t < text.size(); ++t)
      text[t] =
          t > 20 && random() % 4 != 0 ? text[t - 17] : static_cast<tokenizer::TokenId>(random() % kinds);
    const std::size_t most = random() % (kMostDrafts + 1);
    const Draft draft = ngram_draft(text, most), expected = by_trying(text, most);
    ASSERT_EQ(listed(draft), listed(expected)) << i;
    if (most == 0) continue;
    ASSERT_EQ(draft.match, expected.match) << i;
    found += draft.count != 0;
    none += draft.count == 0;
    longest += draft.match == kLongestMatch;
  }
  EXPECT_GT(found, 100u);
  EXPECT_GT(none, 20u);
  EXPECT_GT(longest, 5u);
}

TEST(NgramDraft, LooksNoFurtherThanItReaches) {
  Tokens text = {-1, -2, -3};
  for (std::size_t i = 0; i < kDraftReach; ++i) text.push_back(static_cast<tokenizer::TokenId>(i));
  text.push_back(-1);
  text.push_back(-2);
  EXPECT_EQ(ngram_draft(text).count, 0u);
  text.erase(text.begin() + 3, text.begin() + 10);
  EXPECT_EQ(listed(ngram_draft(text)), (Tokens{-3, 7, 8, 9}));
}

}  // namespace
}  // namespace sluice::engine
