// The limit on misses: its rule against a second implementation, and its account over whole runs.
#include "experts/routing/miss_constraint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>

#include "base/error.h"
#include "experts/cache/cache_policies.h"
#include "experts/registry.h"
#include "experts/routing/precision.h"
#include "experts/routing/router_config.h"

namespace sluice::experts::miss_constraint_test {
namespace {

using testing::ElementsAre;
using Ids = std::vector<std::uint32_t>;

Ids ranking_of(const std::vector<double>& score) {
  Ids order(score.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::uint32_t id) { return score[id]; });
  return order;
}

double bytes_read(const MissLimit& limit, Standing one) {
  return one == Standing::kMissing ? limit.low_bytes : one == Standing::kPartial ? limit.rest_bytes : 0;
}

// SPEC §4.4 as written, on sets. Experts that an earlier token chose cost nothing; with high precision
// everywhere, a partial expert costs its LSB.
Replacement naive(const MissLimit& limit, const std::vector<double>& score,
                  const std::vector<Standing>& standing, std::uint32_t top_j, std::set<std::uint32_t>& sel) {
  Replacement result;
  const Ids ranking = ranking_of(score);
  const std::set<std::uint32_t> own = sel;
  const auto read = [&](std::uint32_t id) { return bytes_read(limit, standing[id]); };
  const auto over = [&] {
    double missed = 0, requests = 0;
    for (std::uint32_t id : sel) {
      missed += read(id);
      requests += standing[id] == Standing::kRequested ? 0 : 1;
    }
    return limit.missed + missed > limit.rate * (limit.requested + requests * limit.high_bytes);
  };
  // The best expert that may replace it.
  const auto better = [&](std::uint32_t id) {
    for (const double most : {0.0, standing[id] == Standing::kMissing ? limit.rest_bytes : 0.0})
      for (std::uint32_t other : ranking)
        if (!own.contains(other) && !sel.contains(other) && standing[other] != Standing::kMissing &&
            read(other) <= most)
          return std::optional(other);
    return std::optional<std::uint32_t>();
  };
  Ids lowest_first(ranking.begin() + std::min<std::ptrdiff_t>(top_j, std::ssize(ranking)), ranking.end());
  std::ranges::sort(lowest_first, {}, [&](std::uint32_t id) { return std::pair(score[id], id); });
  while (over()) {
    const auto x = std::ranges::find_if(lowest_first, [&](std::uint32_t id) {
      return own.contains(id) && sel.contains(id) && read(id) > 0 && better(id);
    });
    if (x == lowest_first.end()) break;
    const std::uint32_t y = *better(*x);
    sel.erase(*x);
    sel.insert(y);
    ++result.replaced;
  }
  const bool missing = std::ranges::any_of(sel, [&](std::uint32_t id) { return read(id) > 0; });
  result.violation = missing && over();
  return result;
}

TEST(ReplaceMissing, EqualsTheObviousImplementation) {
  std::uint64_t replaced = 0, violations = 0;
  for (std::uint64_t seed = 1; seed <= 20000; ++seed) {
    std::mt19937_64 random(seed);
    const std::size_t n = 1 + random() % 10;
    std::vector<double> score;
    std::vector<Standing> standing;
    const std::uint64_t levels = random() % 2 == 0 ? 3 : 1000;
    for (std::size_t e = 0; e < n; ++e) {
      score.push_back(static_cast<double>(random() % levels));
      standing.push_back(static_cast<Standing>(random() % 4));
    }
    const MissLimit limit{.rate = static_cast<double>(random() % 5) / 8,
                          .missed = static_cast<double>(random() % 30),
                          .requested = static_cast<double>(random() % 100),
                          .low_bytes = static_cast<double>(3 + random() % 4),
                          .rest_bytes = static_cast<double>(1 + random() % 2),
                          .high_bytes = static_cast<double>(4 + random() % 4)};
    Ids sel = ranking_of(score);
    std::ranges::shuffle(sel, random);  // any selection, in any order
    sel.resize(1 + random() % n);
    const auto top_j = static_cast<std::uint32_t>(random() % 4);
    std::set<std::uint32_t> expected(sel.begin(), sel.end());
    const Replacement wanted = naive(limit, score, standing, top_j, expected);
    const Replacement got = replace_missing(limit, ranking_of(score), score, standing, top_j, sel);
    ASSERT_EQ(std::set<std::uint32_t>(sel.begin(), sel.end()), expected) << "seed " << seed;
    ASSERT_EQ(sel.size(), expected.size());
    ASSERT_EQ(got.replaced, wanted.replaced) << "seed " << seed;
    ASSERT_EQ(got.violation, wanted.violation) << "seed " << seed;
    replaced += got.replaced;
    violations += got.violation;
  }
  EXPECT_GT(replaced, 1000u);
  EXPECT_GT(violations, 1000u);
}

TEST(ReplaceMissing, TiesLowerIdLeavesFirst) {
  const std::vector<double> score = {.3, .2, .2, .2, .1};
  const std::vector<Standing> standing = {Standing::kMissing, Standing::kMissing, Standing::kMissing,
                                          Standing::kResident, Standing::kResident};
  Ids sel = {0, 1, 2};
  const MissLimit limit{.rate = .5, .low_bytes = 1, .high_bytes = 1.2};  // 1.8 bytes: one miss
  EXPECT_EQ(replace_missing(limit, ranking_of(score), score, standing, 0, sel).replaced, 2u);
  EXPECT_THAT(sel, ElementsAre(0u, 3u, 4u));
}

TEST(ReplaceMissing, LosesNoMoreMassThanIsAllowed) {
  std::uint64_t cut_short = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    std::mt19937_64 random(seed);
    const std::size_t n = 2 + random() % 10;
    std::vector<double> score;
    std::vector<float> mass;
    std::vector<Standing> standing;
    for (std::size_t e = 0; e < n; ++e) {
      mass.push_back(static_cast<float>(1 + random() % 1000) / 1000);
      score.push_back(std::log(double{mass.back()}));
      standing.push_back(random() % 2 == 0 ? Standing::kMissing : Standing::kResident);
    }
    const MissLimit limit{.rate = 0, .low_bytes = 1, .high_bytes = 2};
    const Ids own = [&] {
      Ids ids = ranking_of(score);
      ids.resize(1 + random() % n);
      return ids;
    }();
    const double allowed = static_cast<double>(random() % 1500) / 1000;
    Ids any = own, limited = own;
    const Replacement free = replace_missing(limit, ranking_of(score), score, standing, 0, any);
    const Replacement kept =
        replace_missing(limit, ranking_of(score), score, standing, 0, limited, {mass, allowed});
    double lost = 0, least_left = 2;
    for (const std::uint32_t id : own) {
      if (std::ranges::find(limited, id) == limited.end())
        lost += mass[id];
      else if (std::ranges::find(any, id) == any.end())
        least_left = std::min(least_left, double{mass[id]});
    }
    ASSERT_NEAR(kept.mass, lost, 1e-9) << "seed " << seed;
    ASSERT_LE(lost, allowed) << "seed " << seed;
    ASSERT_LE(kept.replaced, free.replaced) << "seed " << seed;
    if (kept.replaced < free.replaced) {  // and no fewer: the next replacement would have exceeded the mass
      ASSERT_GT(lost + least_left, allowed) << "seed " << seed;
      ++cut_short;
    } else {
      ASSERT_EQ(limited, any) << "seed " << seed;
    }
  }
  EXPECT_GT(cut_short, 200u);
}

class Sizes final : public ExpertSizes {
 public:
  ExpertBytes bytes(ExpertId) const override { return {.full = 5, .msb = 3, .lsb = 2}; }
};

// A small decoder: drifting scores, one layer, slices cached by slice-lru.
struct Decoder {
  const std::uint32_t experts = 24, k = 4;
  Sizes sizes;
  MissConstraint constraint;
  std::unique_ptr<Router> router;
  Residency residency;
  SliceDemands demands;
  Routing routing;
  double free_missed = 0;  // bytes read in steps that are not accounted
  PrecisionMode precision;

  explicit Decoder(ConstraintConfig config, PrecisionMode precision = PrecisionMode::kDbsc,
                   const char* cache = "slice-lru")
      : constraint((config.low = least_parts(precision), config), sizes),
        router(find_router("cache-prior")
                   .make({.select = {.top_k = k}, .cache_aware = {.lambda = 0}, .constraint = &constraint})),
        residency(make_cache(cache, {.keep = Part::kMsb | Part::kLsb}), sizes, 40),
        precision(precision) {}

  EventOutcome step(std::mt19937_64& random, std::uint32_t tokens = 1) {
    std::vector<float> logits, scores;
    for (std::uint32_t t = 0; t < tokens; ++t) {
      double sum = 0;
      for (std::uint32_t e = 0; e < experts; ++e) {
        logits.push_back(static_cast<float>(random() % 3000) / 1000.0f + (e < 8 ? 0.7f : 0.0f));
        sum += std::exp(logits.back());
      }
      for (std::uint32_t e = 0; e < experts; ++e)
        scores.push_back(static_cast<float>(std::exp(logits[t * experts + e]) / sum));
    }
    const SequenceSpan span{.tokens = tokens};
    const ScoresView view{
        .experts = experts, .tokens = tokens, .logits = logits, .scores = scores, .spans = {&span, 1}};
    constraint.begin_step(view.spans);
    router->route(view, residency, routing);
    set_precision({.mode = precision, .critical = {.theta = .3}}, routing);
    demands.gather(view, routing);
    std::vector<ExpertId> ids(demands.demand().ranked.begin(), demands.demand().ranked.end());
    const Bytes allowance = constraint.lsb_allowance(ids, residency);
    const double before = constraint.account().missed;
    const EventOutcome outcome = residency.on_event(ids, {}, {}, demands.demand(allowance));
    constraint.on_event(outcome);
    for (const Admission& miss : outcome.misses)
      free_missed += static_cast<double>(sizes.bytes(miss.id).of(miss.to_read()));
    free_missed -= constraint.account().missed - before;
    constraint.end_step();
    return outcome;
  }
};

class HardMissConstraint : public ::testing::TestWithParam<std::pair<PrecisionMode, const char*>> {};

TEST_P(HardMissConstraint, KeepsTheRateOrCountsAViolation) {
  std::uint64_t replaced = 0;
  int kept = 0;
  for (double limit : {.01, .05, .1, .3}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      SCOPED_TRACE("limit " + std::to_string(limit) + ", seed " + std::to_string(seed));
      std::mt19937_64 random(seed);
      Decoder run({.mode = ConstraintMode::kHard, .limit = limit}, GetParam().first, GetParam().second);
      for (int step = 0; step < 200; ++step) {
        const std::uint64_t violations = run.constraint.violations();
        run.step(random, 1 + seed % 3);
        if (run.constraint.violations() == violations) {
          EXPECT_LE(run.constraint.account().missed,
                    limit * run.constraint.account().requested * (1 + 1e-12));
        }
      }
      replaced += run.constraint.replaced();
      kept += run.constraint.violations() == 0;
    }
  }
  EXPECT_GT(replaced, 100u);
  EXPECT_GT(kept, 0);
}

INSTANTIATE_TEST_SUITE_P(Precisions, HardMissConstraint,
                         ::testing::Values(std::pair(PrecisionMode::kDbsc, "slice-lru"),
                                           std::pair(PrecisionMode::kHigh, "slice-lru"),
                                           std::pair(PrecisionMode::kHigh, "lru"),
                                           std::pair(PrecisionMode::kLow, "slice-lru")),
                         [](const auto& info) {
                           return std::string(precision_name(info.param.first)) +
                                  (info.param.second == std::string("lru") ? "_whole" : "_slices");
                         });

TEST(MissConstraint, FirstStepsAreFreeAndNotAccounted) {
  std::mt19937_64 random(1);
  Decoder run({.mode = ConstraintMode::kHard, .limit = 0});
  for (int step = 0; step < 10; ++step) {
    run.step(random);
    EXPECT_EQ(run.constraint.account().requested, 0);
    EXPECT_EQ(run.constraint.replaced(), 0u);
    EXPECT_TRUE(run.routing.choices.size() == run.k);
  }
  EXPECT_GT(run.free_missed, 0);
  run.step(random);
  EXPECT_EQ(run.constraint.account().requested, 5.0 * run.k);
  for (int step = 0; step < 50; ++step) run.step(random);
  EXPECT_EQ(run.constraint.account().missed, 0);  // six experts' MSBs fit
  EXPECT_EQ(run.constraint.account().lsb_misses, 0u);
  EXPECT_GT(run.constraint.account().downgrades, 0u);
  const SequenceSpan prompt{.tokens = 1, .kind = StepKind::kPrompt};
  run.constraint.begin_step({&prompt, 1});
  run.constraint.end_step();
  const double requested = run.constraint.account().requested;
  run.step(random);
  EXPECT_EQ(run.constraint.account().requested, requested);
}

// A whole expert that is missing, in a step of these tokens; returns whether it was accounted.
bool accounted(MissConstraint& constraint, std::span<const SequenceSpan> spans) {
  EventOutcome outcome;
  outcome.misses.push_back({{0, 0}, {}, {}});
  const double before = constraint.account().requested;
  constraint.begin_step(spans);
  constraint.on_event(outcome);
  constraint.end_step();
  return constraint.account().requested != before;
}

TEST(MissConstraint, FreeStepsAreCountedBySequence) {
  const Sizes sizes;
  MissConstraint constraint({.mode = ConstraintMode::kHard, .exempt_steps = 2}, sizes);
  const auto decoded = [](SequenceId id) { return SequenceSpan{.sequence = id, .tokens = 1}; };
  const SequenceSpan one = decoded(1), two = decoded(2);
  const SequenceSpan prompt{.sequence = 2, .tokens = 5, .kind = StepKind::kPrompt};
  EXPECT_FALSE(accounted(constraint, {&prompt, 1}));
  for (int step = 0; step < 4; ++step) EXPECT_EQ(accounted(constraint, {&one, 1}), step >= 2);
  EXPECT_FALSE(accounted(constraint, {&two, 1}));  // the second one's first
  // One of them is past its free steps; then there are prompt tokens in the step.
  EXPECT_TRUE(accounted(constraint, std::array{one, two}));
  EXPECT_FALSE(accounted(constraint, std::array{one, prompt}));
  EXPECT_TRUE(accounted(constraint, {&one, 1}));   // nobody else's prompt makes it free again …
  EXPECT_FALSE(accounted(constraint, {&two, 1}));  // … but its own does
  constraint.end_sequence(1);
  EXPECT_FALSE(accounted(constraint, {&one, 1}));
}

// The account equals the outcomes, summed by hand.
TEST(MissConstraint, Accounts) {
  for (ConstraintMode mode : {ConstraintMode::kNone, ConstraintMode::kHard, ConstraintMode::kAdaptive}) {
    std::mt19937_64 random(3);
    Decoder run({.mode = mode, .limit = .1, .exempt_steps = 0});
    MissAccount sum;
    for (int step = 0; step < 100; ++step) {
      const EventOutcome outcome = run.step(random, 2);
      for (const auto* used : {&outcome.hits, &outcome.misses}) {
        for (const Admission& one : *used) {
          sum.requested += 5;
          sum.msb_requests += 1;
          const bool msb = !one.before.has(Part::kMsb);
          const bool wants = one.asked.has(Part::kLsb), has = one.before.has(Part::kLsb);
          const bool lsb = wants && !has && one.view.has(Part::kLsb);
          sum.msb_misses += msb;
          sum.lsb_requests += wants;
          sum.lsb_misses += lsb;
          sum.downgrades += wants && !has && !lsb;
          sum.missed += (msb ? 3 : 0) + (lsb ? 2 : 0);
        }
      }
    }
    const MissAccount& account = run.constraint.account();
    EXPECT_EQ(account.missed, sum.missed);
    EXPECT_EQ(account.requested, sum.requested);
    EXPECT_EQ(account.msb_requests, sum.msb_requests);
    EXPECT_EQ(account.msb_misses, sum.msb_misses);
    EXPECT_EQ(account.lsb_requests, sum.lsb_requests);
    EXPECT_EQ(account.lsb_misses, sum.lsb_misses);
    EXPECT_EQ(account.downgrades, sum.downgrades);
    EXPECT_EQ(account.rate(), sum.missed / sum.requested);
    EXPECT_EQ(account.downgrades > 0, mode != ConstraintMode::kNone);
    // The first step finds an empty cache, and no expert to replace a missing one by.
    EXPECT_EQ(run.constraint.violations() > 0, mode == ConstraintMode::kHard);
  }
}

TEST(MissAccount, WholeExpertsCountWhole) {
  const Sizes sizes;
  Residency residency(make_cache("lru", {}), sizes, 100);
  MissAccount account;
  const std::vector<ExpertId> ids = {{0, 0}, {0, 1}};
  account.add(residency.on_event(ids), sizes, Part::kFull, Part::kFull);
  account.add(residency.on_event(ids), sizes, Part::kFull, Part::kFull);
  EXPECT_EQ(account.rate(), .5);
  EXPECT_EQ(account.requested, 20);
  EXPECT_EQ(account.msb_requests, 0u);
  EXPECT_EQ(MissAccount().rate(), 0);
}

TEST(MissConstraint, LambdaOfEachMode) {
  const Sizes sizes;
  EXPECT_FALSE(MissConstraint({.lambda = .7}, sizes).lambda());
  EXPECT_EQ(MissConstraint({.mode = ConstraintMode::kBoost, .lambda = .7}, sizes).lambda(), .7);
  EXPECT_EQ(MissConstraint({.mode = ConstraintMode::kHard}, sizes).lambda(), 0);
  // Adaptive: by hand, from the eleventh step on.
  std::mt19937_64 random(5);
  Decoder run({.mode = ConstraintMode::kAdaptive, .limit = .02, .eta = .5});
  double lambda = 0;
  bool rose = false;
  for (int step = 0; step < 200; ++step) {
    run.step(random);
    if (step >= 10) lambda = std::clamp(lambda + .5 * (run.constraint.account().rate() - .02), 0.0, 1.0);
    ASSERT_EQ(run.constraint.lambda(), lambda);
    rose = rose || lambda > .1;
  }
  EXPECT_TRUE(rose);
  EXPECT_EQ(run.constraint.replaced(), 0u);
}

// An expert that an earlier token of the event asked for is neither a miss nor a request of a later token.
TEST(MissConstraint, TokensOfOneEventShareItsMisses) {
  const Sizes sizes;
  MissConstraint constraint({.mode = ConstraintMode::kHard, .limit = .3, .exempt_steps = 0}, sizes);
  const auto router = find_router("cache-prior").make({.select = {.top_k = 2}, .constraint = &constraint});
  Residency residency(make_cache("slice-lru", {.keep = Part::kMsb | Part::kLsb}), sizes, 6);
  const std::vector<ExpertId> ids = {{0, 2}, {0, 3}};
  residency.on_event(ids, {}, {}, {.ranked = ids});
  // Two requests of 5 bytes allow one miss of 3: 3 <= .3 * 10.
  const std::vector<float> scores = {.4f, .3f, .2f, .1f, .4f, .3f, .2f, .1f};
  const SequenceSpan span{.tokens = 2};
  const ScoresView view{.experts = 4, .tokens = 2, .logits = scores, .scores = scores, .spans = {&span, 1}};
  constraint.begin_step(view.spans);
  Routing routing;
  router->route(view, residency, routing);
  for (std::uint32_t t = 0; t < 2; ++t) {
    EXPECT_EQ(routing.token(t)[0].expert, 0);
    EXPECT_EQ(routing.token(t)[1].expert, 2);
  }
  EXPECT_EQ(constraint.replaced(), 2u);
  EXPECT_EQ(constraint.violations(), 0u);
}

TEST(MissConstraint, RefusesWhatMakesNoSense) {
  const Sizes sizes;
  const auto refused = [&](const ConstraintConfig& config) {
    EXPECT_THROW(MissConstraint(config, sizes), Error);
  };
  for (double bad : {-.1, 1.1, std::nan("")}) {
    refused({.limit = bad});
    refused({.lambda = bad});
    refused({.eta = bad});
  }
  refused({.low = {}});
  refused({.low = Part::kMsb, .high = Part::kFull});
}

}  // namespace
}  // namespace sluice::experts::miss_constraint_test
