#include "experts/routing/precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>

#include "base/error.h"
#include "experts/routing/constraint_config.h"

namespace sluice::experts {
namespace {

using testing::ElementsAre;
using Kind = CriticalRule::Kind;

Routing routing_of(const std::vector<std::vector<float>>& tokens) {
  Routing routing;
  routing.begin = {0};
  for (const std::vector<float>& token : tokens) {
    for (std::size_t e = 0; e < token.size(); ++e)
      routing.choices.push_back({.expert = static_cast<std::uint16_t>(e), .weight = token[e]});
    routing.begin.push_back(static_cast<std::uint32_t>(routing.choices.size()));
  }
  return routing;
}

std::vector<int> critical(const CriticalRule& rule, const std::vector<float>& weights) {
  Routing routing = routing_of({weights});
  set_precision({.mode = PrecisionMode::kDbsc, .critical = rule}, routing);
  std::vector<int> ids;
  for (const Choice& choice : routing.choices) {
    EXPECT_NE(choice.precision, Precision::kFull);
    if (choice.precision == Precision::kHigh) ids.push_back(choice.expert);
  }
  return ids;
}

TEST(Critical, SingleHead) {
  EXPECT_THAT(critical({}, {.5f, .3f, .2f}), ElementsAre(0));
  EXPECT_THAT(critical({}, {4, 4, 2}), ElementsAre(0, 1));  // shares, not weights
  EXPECT_THAT(critical({}, {.25f, .25f, .25f, .25f}), ElementsAre());
  EXPECT_THAT(critical({.theta = .25}, {.25f, .25f, .25f, .25f}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(critical({}, {0, 0}), ElementsAre());
  EXPECT_THAT(critical({}, {}), ElementsAre());
}

// SPEC §7.7: at most floor(1/theta) experts are critical.
TEST(Critical, AtMostOneOverTheta) {
  const std::pair<double, int> most[] = {{.26, 3}, {.34, 2}, {.5, 2}, {.51, 1}, {.35, 2}};
  for (const auto& [theta, limit] : most) {
    std::mt19937_64 random(7);
    int reached = 0;
    for (int i = 0; i < 3000; ++i) {
      std::vector<float> weights;
      for (std::uint64_t e = 1 + random() % 8; e > 0; --e)
        weights.push_back(i % 2 == 0 ? 1.0f : static_cast<float>(random() % 1000) + 1);
      const int count = static_cast<int>(critical({.theta = theta}, weights).size());
      EXPECT_LE(count, limit) << theta;
      reached = std::max(reached, count);
    }
    EXPECT_EQ(reached, limit) << theta;
  }
}

TEST(Critical, OtherRules) {
  EXPECT_THAT(critical({.kind = Kind::kRelTop1, .theta = .6}, {.5f, .3f, .2f}), ElementsAre(0, 1));
  EXPECT_THAT(critical({.kind = Kind::kRelTop1, .theta = 1}, {.3f, .5f, .5f}), ElementsAre(1, 2));
  EXPECT_THAT(critical({.kind = Kind::kFixedTopC, .count = 2}, {.2f, .3f, .1f, .3f}), ElementsAre(1, 3));
  EXPECT_THAT(critical({.kind = Kind::kFixedTopC, .count = 1}, {.2f, .3f, .1f, .3f}), ElementsAre(1));
  EXPECT_THAT(critical({.kind = Kind::kFixedTopC, .count = 9}, {.2f, .3f}), ElementsAre(0, 1));
  EXPECT_THAT(critical({.kind = Kind::kFixedTopC, .count = 0}, {.2f, .3f}), ElementsAre());
}

TEST(Critical, Modes) {
  for (const auto& [name, wanted] : std::map<std::string, Precision>{
           {"full", Precision::kFull}, {"high", Precision::kHigh}, {"low", Precision::kLow}}) {
    Routing routing = routing_of({{.9f, .1f}, {.4f, .6f}});
    set_precision({.mode = precision_mode(name)}, routing);
    for (const Choice& choice : routing.choices) EXPECT_EQ(choice.precision, wanted) << name;
  }
  EXPECT_EQ(precision_mode("dbsc"), PrecisionMode::kDbsc);
  EXPECT_EQ(critical_kind("single-head"), Kind::kSingleHead);
  EXPECT_EQ(critical_kind("rel_top1"), Kind::kRelTop1);
  EXPECT_EQ(critical_kind("fixed_top_c"), Kind::kFixedTopC);
  EXPECT_THROW(precision_mode("medium"), Error);
  EXPECT_THROW(critical_kind("all"), Error);
  for (double bad : {-.1, 1.1, std::nan("")}) EXPECT_THROW((CriticalRule{.theta = bad}.validate(4)), Error);
  CriticalRule().validate(4);
  CriticalRule{.kind = Kind::kFixedTopC, .count = 4}.validate(4);
  EXPECT_THROW((CriticalRule{.kind = Kind::kFixedTopC, .count = 5}.validate(4)), Error);
  CriticalRule{.count = 5}.validate(4);  // only fixed_top_c looks at the count
}

TEST(SliceDemands, JoinTheTokensOfAnEvent) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::uint32_t n = static_cast<std::uint32_t>(1 + random() % 9),
                        tokens = static_cast<std::uint32_t>(random() % 4);
    std::vector<float> scores;
    Routing routing;
    routing.begin = {0};
    std::map<std::uint32_t, float> best;
    std::map<std::uint32_t, std::uint32_t> wanted_high;
    for (std::uint32_t t = 0; t < tokens; ++t) {
      for (std::uint32_t e = 0; e < n; ++e) {
        scores.push_back(static_cast<float>(random() % 5) / 5);
        if (random() % 2 == 0) continue;
        const Precision precision = random() % 3 == 0 ? Precision::kHigh : Precision::kLow;
        routing.choices.push_back({.expert = static_cast<std::uint16_t>(e), .precision = precision});
        best[e] = best.contains(e) ? std::max(best[e], scores.back()) : scores.back();
        wanted_high[e] += precision == Precision::kHigh;
      }
      routing.begin.push_back(static_cast<std::uint32_t>(routing.choices.size()));
    }
    SliceDemands demands;
    const SequenceSpan span{.tokens = tokens, .kind = seed % 2 == 0 ? StepKind::kPrompt : StepKind::kDecode};
    demands.gather({.layer = 3, .experts = n, .tokens = tokens, .scores = scores, .spans = {&span, 1}},
                   routing);
    const SliceDemand demand = demands.demand(17);
    EXPECT_EQ(demand.lsb_allowance, 17u);
    EXPECT_EQ(demand.prompt, seed % 2 == 0);
    ASSERT_EQ(demand.ranked.size(), best.size());
    for (std::size_t i = 0; i < demand.ranked.size(); ++i) {
      const std::uint32_t e = demand.ranked[i].index;
      EXPECT_EQ(demand.ranked[i].layer, 3);
      EXPECT_TRUE(best.contains(e));
      if (i == 0) continue;
      const std::uint32_t before = demand.ranked[i - 1].index;
      EXPECT_TRUE(best[before] > best[e] || (best[before] == best[e] && before < e));
    }
    std::set<std::uint32_t> high;
    for (ExpertId id : demand.critical) high.insert(id.index);
    std::vector<std::uint32_t> counts;
    for (const auto& [e, count] : wanted_high) {
      EXPECT_EQ(high.contains(e), count > 0);
      counts.push_back(count);
    }
    if (demand.prompt) {
      EXPECT_TRUE(std::ranges::equal(demand.critical_tokens, counts));
    } else {
      EXPECT_TRUE(demand.critical_tokens.empty());
    }
  }
}

// Caches of whole experts know one size, and at low precision no decode step wants an LSB slice.
TEST(KeptSlices, AreBothUnlessWholeExpertsAreKeptForLowPrecision) {
  const Parts both = Part::kMsb | Part::kLsb;
  for (const PrecisionMode mode : {PrecisionMode::kDbsc, PrecisionMode::kHigh, PrecisionMode::kLow}) {
    EXPECT_EQ(kept_slices(mode, true), both);
    EXPECT_EQ(kept_slices(mode, false), mode == PrecisionMode::kLow ? Parts(Part::kMsb) : both);
    ConstraintConfig limits{.low = Part::kFull, .high = Part::kFull};
    set_views(mode, limits);
    EXPECT_EQ(limits.low, least_parts(mode));
    EXPECT_EQ(limits.high, both);
  }
}

}  // namespace
}  // namespace sluice::experts
