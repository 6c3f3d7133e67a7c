// The router smoe beside the model's own routing and beside a plain reading of SPEC §2.2. What the choice
// itself promises is in smoe_choice_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "base/error.h"
#include "experts/registry.h"
#include "experts/routing/loss_guard.h"
#include "experts/routing/router_config.h"

namespace sluice::experts {
namespace {

using ::testing::ElementsAre;
using Ids = std::vector<std::uint32_t>;

class SomeResident final : public ResidencyView {
 public:
  explicit SomeResident(Ids ids) : ids_(ids.begin(), ids.end()) {}
  Parts parts(ExpertId id) const override { return ids_.contains(id.index) ? Part::kFull : Parts(); }

 private:
  std::set<std::uint32_t> ids_;
};

struct RandomStep {
  std::uint32_t experts = 0, tokens = 0;
  std::vector<float> scores;
  std::vector<SequenceSpan> spans;

  ScoresView view() const {
    return {.experts = experts, .tokens = tokens, .logits = scores, .scores = scores, .spans = spans};
  }
  std::span<const float> row(std::uint32_t t) const {
    return std::span(scores).subspan(std::size_t{t} * experts, experts);
  }
};

// Sequences of a decoded token or of a piece of a prompt; scores in shares, distinct within a token.
RandomStep random_step(std::uint32_t experts, std::uint32_t sequences, bool prompts,
                       std::mt19937_64& random) {
  RandomStep step;
  step.experts = experts;
  for (std::uint32_t s = 0; s < sequences; ++s) {
    const bool prompt = prompts && random() % 2 == 0;
    const std::uint32_t tokens = prompt ? static_cast<std::uint32_t>(1 + random() % 4) : 1;
    step.spans.push_back({.sequence = s,
                          .first_token = step.tokens,
                          .tokens = tokens,
                          .kind = prompt ? StepKind::kPrompt : StepKind::kDecode});
    step.tokens += tokens;
  }
  std::vector<float> levels(experts);
  std::iota(levels.begin(), levels.end(), 1.0f);
  for (std::uint32_t t = 0; t < step.tokens; ++t) {
    std::ranges::shuffle(levels, random);
    const float sum = std::accumulate(levels.begin(), levels.end(), 0.0f);
    for (const float level : levels) step.scores.push_back(level / sum);
  }
  return step;
}

Routing route(Router& router, const RandomStep& step, const ResidencyView& residency) {
  Routing out;
  router.route(step.view(), residency, out);
  return out;
}

Ids experts_of(const Routing& routing, std::uint32_t token) {
  Ids ids;
  for (const Choice& choice : routing.token(token)) ids.push_back(choice.expert);
  return ids;
}

Ids some_ids(std::uint32_t experts, std::mt19937_64& random) {
  Ids ids;
  for (std::uint32_t e = 0; e < experts; ++e)
    if (random() % 3 == 0) ids.push_back(e);
  return ids;
}

// One token by itself, as SPEC §2.2 reads.
Ids plain_set(std::span<const float> scores, std::uint32_t k, double alpha, const Ids& resident) {
  Ids order(scores.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, [&](auto a, auto b) { return scores[a] > scores[b]; });
  const double beta = k < scores.size() ? scores[order[k]] : 0;
  const auto here = [&](std::uint32_t e) { return std::ranges::find(resident, e) != resident.end(); };
  Ids set, missing;
  for (std::uint32_t i = 0; i < k; ++i) {
    const std::uint32_t e = order[i];
    if (scores[e] > (1 + alpha) * beta || here(e))
      set.push_back(e);
    else
      missing.push_back(e);
  }
  for (std::uint32_t i = k; i < order.size() && !missing.empty(); ++i)
    if (here(order[i]) && scores[order[i]] >= (1 - alpha) * beta) {
      set.push_back(order[i]);
      missing.pop_back();  // the one of the lowest score
    }
  set.insert(set.end(), missing.begin(), missing.end());
  std::ranges::sort(set);
  return set;
}

TEST(SmoeRouter, WithAlphaZeroGivesTheBitsOfExact) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const SelectRule select{.top_k = static_cast<std::uint32_t>(1 + random() % 4),
                            .groups = 1u << random() % 2};
    const CombineRule combine{.renormalise = random() % 2 == 0, .epsilon = 1e-6f, .scale = 1.5f};
    RandomStep step = random_step(16, 3, true, random);
    if (seed % 3 == 0) step.scores.assign(step.scores.size(), 0.125f);  // all scores tie
    const SomeResident residency(some_ids(16, random));
    const auto router = make_smoe_router({.select = select, .combine = combine, .smoe = {.alpha = 0}});
    const Routing got = route(*router, step, residency);
    const Routing exact = route(*make_exact_router(select, combine), step, residency);
    ASSERT_EQ(got.begin, exact.begin);
    for (std::size_t i = 0; i < got.choices.size(); ++i) {
      EXPECT_EQ(got.choices[i].expert, exact.choices[i].expert);
      EXPECT_EQ(got.choices[i].weight, exact.choices[i].weight);
    }
  }
}

TEST(SmoeRouter, LeavesPromptsAloneAndReportsTheModelsOwn) {
  bool changed = false;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const SelectRule select{.top_k = 3};
    const RandomStep step = random_step(12, 4, true, random);
    const SomeResident residency(some_ids(12, random));
    const Routing got = route(*make_smoe_router({.select = select, .smoe = {.alpha = 0.6}}), step, residency);
    const Routing exact = route(*make_exact_router(select, {}), step, residency);
    for (const SequenceSpan& span : step.spans)
      for (std::uint32_t t = span.first_token; t < span.first_token + span.tokens; ++t) {
        const Ids own = experts_of(exact, t), set = experts_of(got, t);
        EXPECT_EQ(set.size(), 3u);
        EXPECT_TRUE(std::ranges::is_sorted(set));
        if (span.kind == StepKind::kPrompt) {
          EXPECT_EQ(set, own);
        }
        changed = changed || set != own;
        ASSERT_EQ(got.exact_begin[t + 1] - got.exact_begin[t], 3u);
        EXPECT_TRUE(std::equal(own.begin(), own.end(), got.exact.begin() + got.exact_begin[t]));
      }
  }
  EXPECT_TRUE(changed);
}

TEST(SmoeRouter, OneTokenGetsWhatThePageSays) {
  std::size_t substituted = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto experts = static_cast<std::uint32_t>(2 + random() % 20);
    const auto k = static_cast<std::uint32_t>(1 + random() % experts);
    const double alpha = 0.01 * static_cast<double>(1 + random() % 80);
    const RandomStep step = random_step(experts, 1, false, random);
    const Ids resident = some_ids(experts, random);
    const auto router =
        make_smoe_router({.select = {.top_k = k}, .smoe = {.alpha = alpha, .merge = random() % 2 == 0}});
    const Routing got = route(*router, step, SomeResident(resident));
    EXPECT_EQ(experts_of(got, 0), plain_set(step.row(0), k, alpha, resident));
    const auto own = std::span(got.exact);
    for (const std::uint32_t e : experts_of(got, 0))
      if (std::ranges::find(own, e) == own.end()) ++substituted;
  }
  EXPECT_GT(substituted, 300u);
}

// Under a limit on the loss: a token that would pass it keeps its own experts, and the others are replaced as
// without a limit; the mean mass of all tokens so far never passes what the limit allows.
TEST(SmoeRouter, ALimitOnTheLossIsKeptTokenByToken) {
  constexpr std::uint64_t kSeed = 417;
  std::mt19937_64 random(kSeed);
  int kept = 0, replaced = 0;
  for (int round = 0; round < 40; ++round) {
    const double allowed = .002 * static_cast<double>(1 + random() % 20);  // mean mass, where mass is loss
    LossContract contract;
    contract.model.routing = contract.model.routing_upper = LossCurve({{1, 1}});
    contract.limit = allowed;
    LossGuard guard(contract);
    RouterConfig config{.select = {.top_k = 4}, .smoe = {.alpha = .5}};
    const auto free = make_smoe_router(config);
    config.guard = &guard;
    const auto limited = make_smoe_router(config);
    double lost = 0;
    std::uint64_t tokens = 0;
    for (int event = 0; event < 50; ++event) {
      const RandomStep step =
          random_step(12, static_cast<std::uint32_t>(1 + random() % 4), random() % 2 == 0, random);
      const SomeResident residency(some_ids(12, random));
      const Routing all = route(*free, step, residency), got = route(*limited, step, residency);
      double event_mass = 0;
      std::uint64_t decoded = 0;
      for (const SequenceSpan& span : step.spans) {
        if (span.kind == StepKind::kPrompt) continue;
        const std::uint32_t t = span.first_token;
        const Ids own(got.exact.begin() + got.exact_begin[t], got.exact.begin() + got.exact_begin[t + 1]);
        const Ids wanted = experts_of(all, t);
        double mass = 0;
        for (const std::uint32_t e : own)
          if (std::ranges::find(wanted, e) == wanted.end()) mass += double{step.row(t)[e]};
        ++decoded;
        const bool fits = lost + event_mass + mass <= allowed * static_cast<double>(tokens + decoded);
        ASSERT_EQ(experts_of(got, t), fits ? wanted : own)
            << "seed " << kSeed << ", round " << round << ", event " << event;
        if (fits) event_mass += mass;
        replaced += fits && mass > 0 ? 1 : 0;
        kept += fits ? 0 : 1;
      }
      lost += event_mass;
      tokens += decoded;
      guard.add_routing(decoded, event_mass);
      ASSERT_LE(guard.estimate().upper, allowed + 1e-12);
    }
  }
  EXPECT_GT(kept, 100);
  EXPECT_GT(replaced, 100);
}

TEST(SmoeRouter, KeepsToTheGroupsOfTheModel) {
  // Two groups of three; the first is the best. Expert 4 is in memory and scores enough, but is in the
  // other group.
  RandomStep step{.experts = 6, .tokens = 1, .scores = {.30f, .20f, .05f, .02f, .19f, .24f}, .spans = {}};
  step.spans = {{.sequence = 0, .first_token = 0, .tokens = 1, .kind = StepKind::kDecode}};
  const RouterConfig grouped{.select = {.top_k = 2, .groups = 2, .top_groups = 1}, .smoe = {.alpha = 5}};
  EXPECT_THAT(experts_of(route(*make_smoe_router(grouped), step, SomeResident({2, 4})), 0),
              ElementsAre(0, 2));
  const RouterConfig free{.select = {.top_k = 2}, .smoe = {.alpha = 0.1}};
  EXPECT_THAT(experts_of(route(*make_smoe_router(free), step, SomeResident({2, 4})), 0), ElementsAre(0, 5));
}

TEST(SmoeRouter, WeightsFollowTheFinalSet) {
  // The model's own: 0 and 1. Expert 1 is not in memory and scores hardly more than 2, which is.
  RandomStep step{.experts = 4, .tokens = 1, .scores = {.5f, .26f, .2f, .04f}, .spans = {}};
  step.spans = {{.sequence = 0, .first_token = 0, .tokens = 1, .kind = StepKind::kDecode}};
  const auto weights = [&](CombineRule combine, SmoeRenorm renorm) {
    const auto router = make_smoe_router(
        {.select = {.top_k = 2}, .combine = combine, .smoe = {.alpha = 0.4, .renorm = renorm}});
    const Routing got = route(*router, step, SomeResident({0, 2}));
    EXPECT_THAT(experts_of(got, 0), ElementsAre(0, 2));
    return std::vector<float>{got.choices.at(0).weight, got.choices.at(1).weight};
  };
  EXPECT_THAT(weights({.scale = 2}, SmoeRenorm::kModel), ElementsAre(1.0f, .4f));
  EXPECT_THAT(weights({.scale = 2}, SmoeRenorm::kNone), ElementsAre(1.0f, .4f));
  const std::vector<float> mass = weights({.scale = 2}, SmoeRenorm::kMass);
  EXPECT_NEAR(mass[0] + mass[1], 2 * (.5 + .26), 1e-6);
  EXPECT_NEAR(mass[0] / mass[1], 2.5, 1e-6);
  for (const SmoeRenorm renorm : {SmoeRenorm::kModel, SmoeRenorm::kMass}) {
    const std::vector<float> of_one = weights({.renormalise = true}, renorm);
    EXPECT_NEAR(of_one[0], .5 / .7, 1e-6);
    EXPECT_NEAR(of_one[1], .2 / .7, 1e-6);
  }
}

TEST(SmoeRouter, RefusesWhatItCannotDo) {
  EXPECT_THROW(make_smoe_router({.smoe = {.alpha = -.1}}), Error);
  EXPECT_THROW(make_smoe_router({.smoe = {.alpha = std::numeric_limits<double>::quiet_NaN()}}), Error);
  EXPECT_THROW(make_smoe_router({.smoe = {.alpha = std::numeric_limits<double>::infinity()}}), Error);
  EXPECT_THROW(make_smoe_router({.select = {.top_k = 1, .capacity = 4}}), Error);
  EXPECT_THROW(smoe_renorm("sum"), Error);
  EXPECT_EQ(smoe_renorm("mass"), SmoeRenorm::kMass);
}

}  // namespace
}  // namespace sluice::experts
