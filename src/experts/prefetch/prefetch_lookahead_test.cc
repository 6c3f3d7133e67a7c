#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "experts/prefetch/prefetch.h"

namespace sluice::experts {
namespace {

class Held final : public ResidencyView {
 public:
  Parts parts(ExpertId id) const override {
    const auto it = parts_.find(id);
    return it == parts_.end() ? Parts() : it->second;
  }
  std::map<ExpertId, Parts> parts_;
};

struct Case {
  std::uint32_t experts, tokens, top_k;
  std::vector<float> scores;  // (tokens, experts)
  Held held;

  std::vector<PartRequest> proposals() const {
    ScoresView next;
    next.layer = 1;
    next.experts = experts;
    next.tokens = tokens;
    next.scores = scores;
    LayerState state;
    state.layers = 2;
    state.experts = experts;
    state.residency = &held;
    state.next = &next;
    state.top_k = top_k;
    std::vector<PartRequest> out;
    make_lookahead_prefetch()->propose(state, out);
    return out;
  }
};

TEST(LookaheadPrefetch, NamesTheLikeliestFirstAndNothingThatIsThere) {
  Case it{4, 1, 3, {.1f, .4f, .2f, .3f}, {}};
  it.held.parts_[{1, 3}] = Part::kSm | Part::kExp;
  it.held.parts_[{1, 1}] = Part::kSm;  // not enough to compute with
  const auto named = it.proposals();
  ASSERT_EQ(named.size(), 2u);
  EXPECT_EQ(named[0].id, (ExpertId{1, 1}));
  EXPECT_EQ(named[1].id, (ExpertId{1, 2}));
}

TEST(LookaheadPrefetch, SaysNothingWithoutScores) {
  LayerState state;
  std::vector<PartRequest> out;
  make_lookahead_prefetch()->propose(state, out);
  EXPECT_TRUE(out.empty());
}

// Against a plain statement of the rule: experts by tokens that would choose them, then by the sum of their
// scores, then by index.
TEST(LookaheadPrefetch, AgreesWithBruteForce) {
  const std::uint64_t seed = 20261122;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    Case it{static_cast<std::uint32_t>(1 + random() % 12),
            static_cast<std::uint32_t>(1 + random() % 5),
            0,
            {},
            {}};
    // May exceed the number of experts
    it.top_k = static_cast<std::uint32_t>(1 + random() % (it.experts + 2));
    for (std::uint32_t i = 0; i < it.experts * it.tokens; ++i)
      it.scores.push_back(static_cast<float>(random() % 8) / 8);  // ties happen
    for (std::uint16_t e = 0; e < it.experts; ++e)
      if (random() % 3 == 0) it.held.parts_[{1, e}] = Part::kFull;
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
        if (before >= it.top_k) continue;
        entry.tokens += 1;
        entry.mass += row[e];
      }
      if (entry.tokens > 0 && !it.held.parts_.contains({1, e})) expected.push_back(entry);
    }
    std::stable_sort(expected.begin(), expected.end(), [](const Entry& a, const Entry& b) {
      return a.tokens != b.tokens ? a.tokens > b.tokens : a.mass > b.mass;
    });
    const auto named = it.proposals();
    ASSERT_EQ(named.size(), expected.size());
    for (std::size_t i = 0; i < named.size(); ++i) EXPECT_EQ(named[i].id.index, expected[i].index);
  }
}

}  // namespace
}  // namespace sluice::experts
