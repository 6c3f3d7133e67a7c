// What LayerDecider decides, against a plain transcription of the sequence, for every combination of policies
// that combination.h allows.
#include "experts/layer_decider.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "experts/decider_setting_testing.h"
#include "experts/plain_decider_testing.h"
#include "experts/registry.h"

namespace sluice::experts::layer_decider_test {
namespace {

// Logits of some tokens and their softmax; ties happen.
struct RandomScores {
  std::vector<float> logits, scores;
  SequenceSpan span;
  ScoresView view;

  RandomScores(std::mt19937_64& random, std::uint32_t layer, std::uint32_t experts, std::uint32_t tokens,
               bool prompt) {
    for (std::uint32_t t = 0; t < tokens; ++t) {
      double sum = 0;
      std::vector<double> row;
      for (std::uint32_t e = 0; e < experts; ++e) {
        logits.push_back(static_cast<float>(random() % 64) / 16);
        row.push_back(std::exp(double{logits.back()}));
        sum += row.back();
      }
      for (double one : row) scores.push_back(static_cast<float>(one / sum));
    }
    span = {.tokens = tokens, .kind = prompt ? StepKind::kPrompt : StepKind::kDecode};
    view = {.layer = layer,
            .experts = experts,
            .tokens = tokens,
            .logits = logits,
            .scores = scores,
            .spans = {&span, 1}};
  }
  RandomScores(const RandomScores&) = delete;
};

DecidedEvent taken(const LayerDecision& decision) {
  DecidedEvent decided;
  decided.routing = decision.routing;
  for (std::size_t i = 0; i < decision.experts.size(); ++i)
    decided.tokens[decision.experts[i]] = decision.tokens[i];
  EXPECT_TRUE(std::ranges::is_sorted(decision.experts));
  decided.outcome = text_of(*decision.outcome);
  decided.fetch = text_of(*decision.fetch);
  for (std::size_t i = 0; i < decision.fetch_demand.experts.size(); ++i)
    decided.fetch_tokens[decision.fetch_demand.experts[i]] = decision.fetch_demand.tokens[i];
  decided.assigned = decision.assignment.unit.size();
  decided.is_low = decision.is_low;
  decided.low_share = decision.low_share;
  return decided;
}

// What the runs together have met, so that no case is tested by name alone.
struct Met {
  std::uint64_t events = 0, evicted = 0, trimmed = 0, replaced = 0, raised = 0, low = 0, asked_ahead = 0,
                paused = 0, off = 0, over_budget = 0;
};

class Comparison {
 public:
  Comparison(const DeciderSetting& setting, Met& met)
      : setting_(setting),
        met_(met),
        sizes_(setting.family),
        plain_(policies_of(setting, sizes_), setting_),
        decider_(policies_of(setting, sizes_), {setting.kLayers, setting.top_k}),
        random_(setting.seed + 2) {}

  void compare() {
    for (int step = 0; step < 40 && !testing::Test::HasFailure(); ++step) {
      const bool prompt = step % 15 < 2;
      const auto tokens = static_cast<std::uint32_t>(1 + random_() % (prompt ? 6 : 2));
      const SequenceSpan span{.tokens = tokens, .kind = prompt ? StepKind::kPrompt : StepKind::kDecode};
      plain_.begin_step(prompt, {&span, 1});
      decider_.begin_step({&span, 1});
      for (std::uint32_t layer = 0; layer < setting_.kLayers; ++layer) event(layer, tokens, prompt);
      const StepCost cost{.seconds = 1e-3 * static_cast<double>(1 + random_() % 9),
                          .needed = random_() % 1000,
                          .wasted = random_() % 100};
      plain_.end_step(cost);
      decider_.end_step(cost);
    }
    compare_ends();
  }

 private:
  void event(std::uint32_t layer, std::uint32_t tokens, bool prompt) {
    const RandomScores scores(random_, layer, setting_.experts, tokens, prompt);
    const RandomScores next(random_, layer + 1, setting_.experts, tokens, false);
    const std::optional<Routing> given = setting_.given ? std::optional(exact(scores.view)) : std::nullopt;
    const DecidedEvent expected = plain_.event(scores.view, given ? &*given : nullptr);
    const Routing& routing =
        given ? decider_.follow(scores.view, given->choices, given->begin) : decider_.route(scores.view);
    EXPECT_EQ(text_of(routing), text_of(expected.routing));
    const LayerDecision& decision = decider_.decide();
    const DecidedEvent found = taken(decision);
    EXPECT_EQ(text_of(found.routing), text_of(expected.routing));
    EXPECT_EQ(found.tokens, expected.tokens);
    EXPECT_EQ(found.outcome, expected.outcome);
    EXPECT_EQ(found.fetch, expected.fetch);
    EXPECT_EQ(found.fetch_tokens, expected.fetch_tokens);
    EXPECT_EQ(found.assigned, expected.assigned);
    EXPECT_EQ(found.is_low, expected.is_low);
    EXPECT_EQ(found.low_share, expected.low_share);
    ++met_.events;
    met_.evicted += decision.outcome->evicted.size();
    met_.trimmed += decision.outcome->trimmed;
    met_.low += decision.low_share > 0 ? 1 : 0;
    if (slices_of(setting_).rules.lsb_miss == LsbMiss::kFetchIfBudget)
      for (const Admission& one : decision.outcome->misses) met_.over_budget += one.downgraded() ? 1 : 0;
    ahead_.used += random_() % 50;
    ahead_.delayed += random_() % (setting_.seed % 2 == 0 ? 50 : 500);
    const ReadAhead verdict = decider_.may_look_ahead(ahead_);
    EXPECT_EQ(verdict, plain_.verdict(ahead_));
    met_.paused += verdict == ReadAhead::kPaused ? 1 : 0;
    met_.off += verdict == ReadAhead::kOff ? 1 : 0;
    for (const bool again : {false, true}) {
      std::optional<std::string> named;
      if (again ? decider_.looks_twice() : verdict == ReadAhead::kOn)
        named =
            text_of(decider_.look_ahead(decider_.predictor() != PredictorKind::kNone ? &next.view : nullptr));
      EXPECT_EQ(named, plain_.ahead(scores.view, expected.routing, next.view, again));
      met_.asked_ahead += named && !named->empty() ? 1 : 0;
    }
  }

  Routing exact(const ScoresView& scores) const {
    Routing routing;
    make_exact_router({.top_k = setting_.top_k}, {})
        ->route(scores, *plain_.policies().residencies.front(), routing);
    return routing;
  }

  void compare_ends() {
    const LayerPolicies &found = decider_.policies(), &expected = plain_.policies();
    for (std::size_t i = 0; i < expected.residencies.size(); ++i)
      EXPECT_EQ(found.residencies[i]->decision_hash(), expected.residencies[i]->decision_hash());
    EXPECT_EQ(decider_.decode_changes().mass_lost, plain_.lost().mass_lost);
    EXPECT_EQ(decider_.decode_changes().substituted, plain_.lost().substituted);
    EXPECT_EQ(decider_.decode_changes().tokens, plain_.lost().tokens);
    EXPECT_GT(decider_.changes().tokens, plain_.lost().tokens);
    if (expected.constraint) {
      EXPECT_EQ(found.constraint->account().missed, expected.constraint->account().missed);
      EXPECT_EQ(found.constraint->account().requested, expected.constraint->account().requested);
      EXPECT_EQ(found.constraint->lambda(), expected.constraint->lambda());
      EXPECT_EQ(found.constraint->replaced(), expected.constraint->replaced());
      met_.replaced += expected.constraint->replaced();
    }
    if (expected.guard) {
      EXPECT_EQ(found.guard->mass_lost(), expected.guard->mass_lost());
      EXPECT_EQ(found.guard->low_share(), expected.guard->low_share());
      EXPECT_EQ(found.guard->raised(), expected.guard->raised());
      met_.raised += expected.guard->raised();
    }
  }

  const DeciderSetting setting_;
  Met& met_;
  const LayerSizes sizes_;
  PlainDecider plain_;
  LayerDecider decider_;
  std::mt19937_64 random_;
  AheadBytes ahead_;
};

constexpr std::uint64_t kSeed = 20261124;

// A run of these names; the rest is drawn. `variant` 0 to 3: both values of two switches.
DeciderSetting setting_of(Family family, const CachePolicy& cache, const RouterPolicy& router, int precision,
                          int constraint, int variant, std::uint64_t seed) {
  const bool sliced = family == Family::kSliced, first = (variant & 1) != 0;
  return {.family = family,
          .cache = &cache,
          .router = router.name,
          .prefetch = prefetch_policies()[seed % prefetch_policies().size()].name,
          .precision = static_cast<PrecisionMode>(precision),
          .constraint = static_cast<ConstraintMode>(constraint),
          .limits_loss = sliced && first,
          .by_layer = (variant & 2) != 0,
          .whole_layers = !sliced && first,
          .given = router.name == "exact" && !(sliced && first) && seed / 4 % 2 == 0,
          .experts = static_cast<std::uint32_t>(4 + seed % 9),
          .top_k = static_cast<std::uint32_t>(1 + seed % 3),
          .seed = seed};
}

// Calls `run` for every combination that is allowed, several times for slices, which have more to draw;
// returns how many there are.
template <class Work>
int over_all(const Work& run) {
  int count = 0;
  std::uint64_t seed = kSeed;
  for (Family family : {Family::kRaw, Family::kSplit, Family::kSliced})
    for (const CachePolicy& cache : cache_policies())
      for (const RouterPolicy& router : router_policies())
        for (int precision = 0; precision < 4; ++precision)
          for (int constraint = 0; constraint < 4; ++constraint)
            for (int variant = 0; variant < 4; ++variant) {
              if (cache.oracle ||
                  !is_allowed(setting_of(family, cache, router, precision, constraint, variant, seed)))
                continue;
              ++count;
              for (int round = 0; round < (family == Family::kSliced ? 4 : 1); ++round)
                run(setting_of(family, cache, router, precision, constraint, variant, seed++));
            }
  return count;
}

TEST(LayerDecider, DecidesAsThePlainSequenceDoes) {
  std::cout << "seed " << kSeed << '\n';
  Met met;
  const int combinations = over_all([&](const DeciderSetting& setting) {
    if (testing::Test::HasFailure()) return;
    SCOPED_TRACE(setting.name());
    Comparison(setting, met).compare();
  });
  std::cout << combinations << " combinations, " << met.events << " events, " << met.evicted << " evictions, "
            << met.replaced << " experts replaced\n";
  EXPECT_GT(combinations, 300);
  // Nothing is equal for want of cases.
  for (const std::uint64_t count : {met.evicted, met.trimmed, met.replaced, met.raised, met.low,
                                    met.over_budget, met.asked_ahead, met.paused, met.off})
    EXPECT_GT(count, 50u);
}

}  // namespace
}  // namespace sluice::experts::layer_decider_test
