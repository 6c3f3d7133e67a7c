// What is fetched by predicted scores, against a plain statement of the rule.
#include "experts/prefetch/forecast_prefetch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>

#include "experts/prefetch/testing.h"

namespace sluice::experts {
namespace {

struct Case {
  std::uint32_t experts, tokens, top_k;
  std::vector<float> scores;  // (tokens, experts)
  HeldParts held = {};
  std::vector<float> logits = {};
  std::uint32_t most = kAnyRequests;
  Tier tier = Tier::kHost;

  std::vector<PartRequest> proposals() const {
    ScoresView next;
    next.layer = 1;
    next.experts = experts;
    next.tokens = tokens;
    next.scores = scores;
    next.logits = logits;
    LayerState state;
    state.layers = 2;
    state.experts = experts;
    state.residency = &held;
    state.next = &next;
    state.top_k = top_k;
    state.most = most;
    state.tier = tier;
    std::vector<PartRequest> out;
    make_stream_prefetch({})->propose(state, out);
    return out;
  }
};

TEST(ForecastPrefetch, NamesTheLikeliestFirstAndNothingThatIsThere) {
  Case it{4, 1, 3, {.1f, .4f, .2f, .3f}};
  it.held.set({1, 3}, Part::kSm | Part::kExp);
  it.held.set({1, 1}, Part::kSm);  // not enough to compute with
  const auto named = it.proposals();
  ASSERT_EQ(named.size(), 2u);
  EXPECT_EQ(named[0].id, (ExpertId{1, 1}));
  EXPECT_EQ(named[1].id, (ExpertId{1, 2}));
  EXPECT_EQ(named[0].tier, Tier::kHost);
}

TEST(ForecastPrefetch, NamesAsManyAsAreWantedForTheTierThatIsAsked) {
  Case it{4, 1, 3, {.1f, .4f, .2f, .3f}};
  it.most = 2;
  it.tier = Tier::kDevice;
  const auto named = it.proposals();
  ASSERT_EQ(named.size(), 2u);
  EXPECT_EQ(named[1].id, (ExpertId{1, 3}));
  EXPECT_EQ(named[1].tier, Tier::kDevice);
  it.most = 0;
  EXPECT_TRUE(it.proposals().empty());
}

// Scores of floats may be equal where logits are not.
TEST(ForecastPrefetch, LogitsChooseWhereThereAreLogits) {
  Case it{3, 1, 1, {.5f, .5f, 0}};
  EXPECT_EQ(it.proposals()[0].id.index, 0);
  it.logits = {1, 2, 0};
  EXPECT_EQ(it.proposals()[0].id.index, 1);
}

TEST(ForecastPrefetch, SaysNothingWithoutScores) {
  for (const auto make : {make_stream_prefetch, make_raw_prefetch, make_dali_residual_prefetch}) {
    LayerState state;
    std::vector<PartRequest> out;
    make({})->propose(state, out);
    EXPECT_TRUE(out.empty());
  }
}

TEST(ForecastPrefetch, EachWantsAPredictorOfItsOwn) {
  EXPECT_EQ(predictor_name(make_stream_prefetch({})->predictor()), "stream");
  EXPECT_EQ(predictor_name(make_raw_prefetch({})->predictor()), "raw");
  EXPECT_EQ(predictor_name(make_dali_residual_prefetch({})->predictor()), "residual");
  EXPECT_EQ(predictor_name(make_smoe_partial_prefetch({})->predictor()), "partial");
}

// Experts by tokens that would choose them, then by the sum of the scores that all tokens give them, then by
// index.
TEST(ForecastPrefetch, AgreesWithBruteForce) {
  const std::uint64_t seed = 20261122;
  std::cout << "seed " << seed << '\n';
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    Case it{
        static_cast<std::uint32_t>(1 + random() % 12), static_cast<std::uint32_t>(1 + random() % 5), 0, {}};
    // May exceed the number of experts
    it.top_k = static_cast<std::uint32_t>(1 + random() % (it.experts + 2));
    if (random() % 2 == 0) it.most = static_cast<std::uint32_t>(random() % 6);
    for (std::uint32_t i = 0; i < it.experts * it.tokens; ++i)
      it.scores.push_back(static_cast<float>(random() % 8) / 8);  // ties happen
    for (std::uint16_t e = 0; e < it.experts; ++e)
      if (random() % 3 == 0) it.held.set({1, e}, Part::kFull);
    struct Entry {
      int tokens;
      double mass;
      std::uint16_t index;
    };
    std::vector<Entry> expected;
    for (std::uint16_t e = 0; e < it.experts; ++e) {
      Entry entry{0, 0, e};
      for (std::uint32_t t = 0; t < it.tokens; ++t) {
        const float* const row = it.scores.data() + t * it.experts;
        std::uint32_t before = 0;  // experts that this token prefers
        for (std::uint16_t o = 0; o < it.experts; ++o)
          before += row[o] > row[e] || (row[o] == row[e] && o < e);
        entry.tokens += before < it.top_k ? 1 : 0;
        entry.mass += row[e];
      }
      if (entry.tokens > 0 && it.held.parts({1, e}).empty()) expected.push_back(entry);
    }
    std::stable_sort(expected.begin(), expected.end(), [](const Entry& a, const Entry& b) {
      return a.tokens != b.tokens ? a.tokens > b.tokens : a.mass > b.mass;
    });
    expected.resize(std::min<std::size_t>(expected.size(), it.most));
    const auto named = it.proposals();
    ASSERT_EQ(named.size(), expected.size());
    for (std::size_t i = 0; i < named.size(); ++i) EXPECT_EQ(named[i].id.index, expected[i].index);
  }
}

}  // namespace
}  // namespace sluice::experts
