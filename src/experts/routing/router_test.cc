#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "base/error.h"
#include "experts/registry.h"
#include "experts/routing/router_config.h"

namespace sluice::experts::router_test {
namespace {

class NothingResident final : public ResidencyView {
 public:
  Parts parts(ExpertId) const override { return {}; }
};

struct Scores {
  std::uint32_t experts = 0, tokens = 0, layer = 0;
  std::vector<float> values = {};            // (T, N)
  std::vector<std::uint32_t> sequence = {};  // (T); empty: all tokens are sequence 0's
  std::vector<std::uint32_t> begun = {};     // sequences whose forward began before these tokens
  mutable std::vector<SequenceSpan> spans = {};
  ScoresView view() const {
    std::vector<std::uint32_t> seen = begun;
    spans.clear();
    for (std::uint32_t t = 0; t < tokens; ++t) {
      const std::uint32_t of = sequence.empty() ? 0 : sequence[t];
      if (!spans.empty() && spans.back().sequence == of) {
        spans.back().tokens += 1;
        continue;
      }
      const bool first = std::ranges::find(seen, of) == seen.end();
      spans.push_back({.sequence = of, .first_token = t, .tokens = 1, .first_of_forward = first});
      seen.push_back(of);
    }
    return {.layer = layer,
            .experts = experts,
            .tokens = tokens,
            .logits = values,
            .scores = values,
            .spans = spans};
  }
};

Routing route(Router& router, const Scores& scores) {
  Routing out;
  router.route(scores.view(), NothingResident(), out);
  return out;
}

// Softmax-like rows; many ties when `levels` is small.
Scores random_scores(std::uint32_t experts, std::uint32_t tokens, std::uint32_t levels, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Scores scores{.experts = experts, .tokens = tokens};
  for (std::uint32_t i = 0; i < experts * tokens; ++i) {
    scores.values.push_back(static_cast<float>(random() % levels) / static_cast<float>(levels));
  }
  for (std::uint32_t t = 0; t < tokens; ++t)
    scores.sequence.push_back(static_cast<std::uint32_t>(random() % 2));
  return scores;
}

std::vector<std::uint32_t> by_score(std::span<const float> row, const std::vector<std::uint32_t>& ids) {
  std::vector<std::uint32_t> order = ids;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return row[a] > row[b]; });
  return order;
}

// SPEC §0 by plain sorting.
std::vector<std::uint32_t> naive_selection(std::span<const float> row, const SelectRule& rule) {
  const std::uint32_t n = static_cast<std::uint32_t>(row.size()), size = n / rule.groups;
  std::vector<float> best(rule.groups);
  std::vector<std::uint32_t> groups(rule.groups), ids;
  std::iota(groups.begin(), groups.end(), 0u);
  for (std::uint32_t e = 0; e < n; ++e)
    best[e / size] = e % size == 0 ? row[e] : std::max(best[e / size], row[e]);
  groups = by_score(best, groups);
  for (std::uint32_t g = 0; g < rule.top_groups; ++g) {
    for (std::uint32_t e = groups[g] * size; e < (groups[g] + 1) * size; ++e) ids.push_back(e);
  }
  std::sort(ids.begin(), ids.end());
  ids = by_score(row, ids);
  ids.resize(rule.top_k);
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::vector<std::uint32_t> experts_of(const Routing& routing, std::uint32_t token) {
  std::vector<std::uint32_t> ids;
  for (const Choice& c : routing.token(token)) ids.push_back(c.expert);
  return ids;
}

TEST(ExactRouter, EqualsNaiveSort) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::uint32_t groups = 1u << random() % 3,
                        n = groups * static_cast<std::uint32_t>(1 + random() % 9);
    SelectRule rule{.groups = groups, .top_groups = static_cast<std::uint32_t>(1 + random() % groups)};
    rule.top_k =
        static_cast<std::uint32_t>(1 + random() % (n / groups * rule.top_groups));  // often all: k = N
    const Scores scores = random_scores(n, 5, seed % 2 ? 4 : 1000, seed);
    const Routing routing = route(*make_exact_router(rule, {}), scores);
    ASSERT_EQ(routing.begin.size(), 6u);
    EXPECT_TRUE(routing.exact.empty() && routing.exact_begin.empty());
    for (std::uint32_t t = 0; t < 5; ++t) {
      const std::span<const float> row = std::span(scores.values).subspan(t * n, n);
      EXPECT_EQ(experts_of(routing, t), naive_selection(row, rule));
      for (const Choice& c : routing.token(t)) {
        EXPECT_EQ(c.weight, row[c.expert]);
        EXPECT_EQ(c.precision, Precision::kFull);
      }
    }
  }
}

TEST(ExactRouter, TiesTakeTheLowestId) {
  const Scores scores{.experts = 5, .tokens = 1, .values = {.1f, .3f, .1f, .3f, .1f}};
  EXPECT_EQ(experts_of(route(*make_exact_router({.top_k = 3}, {}), scores), 0),
            (std::vector<std::uint32_t>{0, 1, 3}));
}

TEST(ExactRouter, TiedGroupsTakeTheLowest) {
  const Scores scores{.experts = 6, .tokens = 1, .values = {.1f, .1f, .3f, .1f, .1f, .3f}};
  const SelectRule rule{.top_k = 2, .groups = 3, .top_groups = 1};
  EXPECT_EQ(experts_of(route(*make_exact_router(rule, {}), scores), 0), (std::vector<std::uint32_t>{2, 3}));
}

TEST(ExactRouter, CombineRules) {
  const Scores scores{.experts = 4, .tokens = 1, .values = {.5f, .1f, .25f, .15f}};
  auto weights = [&](const CombineRule& rule) {
    std::vector<float> g;
    const Routing routing = route(*make_exact_router({.top_k = 2}, rule), scores);
    for (const Choice& c : routing.token(0)) g.push_back(c.weight);
    return g;
  };
  using testing::ElementsAre, testing::FloatEq;
  EXPECT_THAT(weights({}), ElementsAre(.5f, .25f));
  EXPECT_THAT(weights({.renormalise = true}), ElementsAre(FloatEq(2 / 3.f), FloatEq(1 / 3.f)));
  EXPECT_THAT(weights({.renormalise = true, .epsilon = .25f}), ElementsAre(.5f, .25f));
  EXPECT_THAT(weights({.scale = 16.f}), ElementsAre(8.f, 4.f));
  EXPECT_THAT(weights({.renormalise = true, .epsilon = .25f, .scale = 2.f}), ElementsAre(1.f, .5f));
}

TEST(ExactRouter, AllScoresZeroGiveWeightsZero) {
  const Scores scores{.experts = 2, .tokens = 1, .values = {0, 0}};
  const Routing routing = route(*make_exact_router({.top_k = 1}, {.renormalise = true}), scores);
  EXPECT_EQ(experts_of(routing, 0), (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(routing.token(0)[0].weight, 0.0f);
}

TEST(ExactRouter, OneExpertAndNoTokens) {
  const auto router = make_exact_router({.top_k = 1}, {.renormalise = true});
  EXPECT_EQ(route(*router, {.experts = 1, .tokens = 1, .values = {.3f}}).token(0)[0].weight, 1.0f);
  const Routing none = route(*router, {.experts = 1});
  EXPECT_TRUE(none.choices.empty());
  EXPECT_THAT(none.begin, testing::ElementsAre(0u));
}

TEST(ExactRouter, ScoresThatAreNotFiniteAreAnError) {
  for (float bad :
       {std::nanf(""), std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
    const Scores scores{.experts = 3, .tokens = 2, .layer = 4, .values = {.1f, .2f, .3f, .1f, bad, .3f}};
    try {
      route(*make_exact_router({.top_k = 1}, {}), scores);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalid);
      EXPECT_THAT(error.what(), testing::HasSubstr("sparse layer 4, token 1, expert 1"));
    }
  }
}

TEST(ExactRouter, ImpossibleRulesAreErrors) {
  EXPECT_THROW(make_exact_router({.top_k = 0}, {}), Error);
  EXPECT_THROW(make_exact_router({.groups = 0}, {}), Error);
  EXPECT_THROW(make_exact_router({.groups = 2, .top_groups = 3}, {}), Error);
  const Scores scores = random_scores(8, 1, 10, 1);
  EXPECT_THROW(route(*make_exact_router({.top_k = 9}, {}), scores), Error);
  EXPECT_THROW(route(*make_exact_router({.groups = 3}, {}), scores), Error);
  EXPECT_THROW(route(*make_exact_router({.top_k = 3, .groups = 4, .top_groups = 1}, {}), scores), Error);
  EXPECT_THROW(find_router("smoee"), Error);
}

// Tokens beyond an expert's capacity lose it, in order, per sequence and layer, counted over the whole
// forward: chunking must not matter.
TEST(ExactRouter, CapacityCountsOverTheWholeForward) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::uint32_t n = 4, tokens = 23, capacity = static_cast<std::uint32_t>(1 + seed % 5);
    const Scores all = random_scores(n, tokens, 50, seed);
    const auto router = make_exact_router({.top_k = 1, .capacity = capacity}, {});
    for (int forward = 0; forward < 2; ++forward) {
      std::vector<std::uint32_t> taken(2 * n), begun;
      std::mt19937_64 random(seed + 99);
      for (std::uint32_t t = 0; t < tokens;) {
        const std::uint32_t count = std::min(tokens - t, static_cast<std::uint32_t>(1 + random() % 6));
        Scores chunk{.experts = n, .tokens = count};
        chunk.values.assign(all.values.begin() + t * n, all.values.begin() + (t + count) * n);
        chunk.sequence.assign(all.sequence.begin() + t, all.sequence.begin() + t + count);
        chunk.begun = begun;
        begun.insert(begun.end(), chunk.sequence.begin(), chunk.sequence.end());
        Scores other = chunk;  // every layer has its own counts
        other.layer = 1;
        const Routing routing = route(*router, chunk), same = route(*router, other);
        EXPECT_EQ(routing.begin, same.begin);
        for (std::uint32_t i = 0; i < count; ++i, ++t) {
          const auto wanted = naive_selection(std::span(all.values).subspan(t * n, n), {.top_k = 1});
          const bool room = taken[all.sequence[t] * n + wanted[0]]++ < capacity;
          EXPECT_EQ(experts_of(routing, i), room ? wanted : std::vector<std::uint32_t>{});
        }
      }
    }
  }
}

TEST(ExactRouter, ACancelledStepHasTakenNothing) {
  const auto router = make_exact_router({.top_k = 1, .capacity = 2}, {});
  const Scores first{.experts = 1, .tokens = 1, .values = {1.0f}};
  const Scores more{.experts = 1, .tokens = 2, .values = {1.0f, 1.0f}, .begun = {0}};
  const auto taken = [&](const Scores& scores) {
    const ScoresView view = scores.view();
    const std::size_t choices = route(*router, scores).choices.size();
    return std::pair(choices, std::vector<SequenceSpan>(view.spans.begin(), view.spans.end()));
  };
  router->end_step(taken(first).second);
  for (int i = 0; i < 3; ++i) {
    const auto [choices, spans] = taken(more);
    EXPECT_EQ(choices, 1u);  // the first step has taken one of the capacity of two
    router->cancel_step(spans);
  }
  const auto [choices, spans] = taken(first);  // begins the forward anew, and is cancelled, too
  EXPECT_EQ(choices, 1u);
  router->cancel_step(spans);
  router->end_step(taken(more).second);
  EXPECT_EQ(taken(more).first, 0u);
}

TEST(ExactRouter, ForgetsASequenceThatHasEnded) {
  const auto router = make_exact_router({.top_k = 1, .capacity = 1}, {});
  const Scores scores{.experts = 1, .tokens = 1, .values = {1.0f}, .begun = {0}};
  EXPECT_EQ(route(*router, scores).choices.size(), 1u);
  EXPECT_EQ(route(*router, scores).choices.size(), 0u);  // the expert is full
  router->end_sequence(1);
  EXPECT_EQ(route(*router, scores).choices.size(), 0u);
  router->end_sequence(0);
  EXPECT_EQ(route(*router, scores).choices.size(), 1u);
}

}  // namespace
}  // namespace sluice::experts::router_test
