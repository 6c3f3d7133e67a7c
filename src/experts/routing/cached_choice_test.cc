// Cache-prior, cumsum and the routers that use them: the specification's vectors, and second implementations.
#include "experts/routing/cached_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include "base/error.h"
#include "experts/registry.h"
#include "experts/routing/miss_constraint.h"
#include "experts/routing/router_config.h"
#include "experts/routing/routing_changes.h"
#include "experts/routing/testing.h"

namespace sluice::experts {
namespace {

using testing::ElementsAre;
using Ids = std::vector<std::uint32_t>;

Ids ranking_of(const std::vector<double>& z) {
  Ids order(z.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::uint32_t id) { return z[id]; });
  return order;
}

std::vector<double> softmax(const std::vector<double>& z) {
  std::vector<double> s;
  double sum = 0;
  for (double one : z) s.push_back(std::exp(one - *std::ranges::max_element(z)));
  for (double one : s) sum += one;
  for (double& one : s) one /= sum;
  return s;
}

TEST(CacheAware, VectorsOfTheSpecification) {
  const std::vector<double> z = {2, 1.5, 1, .8, .2, -1};
  const std::vector<std::uint8_t> cached = {0, 0, 0, 1, 1, 1};
  const auto prior = [&](double lambda, std::uint32_t top_j) {
    Ids out;
    select_cache_prior(ranking_of(z), z, cached, lambda * 3, top_j, 3, out);
    std::ranges::sort(out);
    return out;
  };
  EXPECT_THAT(prior(0, 0), ElementsAre(0u, 1u, 2u));
  EXPECT_THAT(prior(.1, 0), ElementsAre(0u, 1u, 3u));
  EXPECT_THAT(prior(.2, 0), ElementsAre(0u, 1u, 3u));
  EXPECT_THAT(prior(.5, 0), ElementsAre(0u, 3u, 4u));
  EXPECT_THAT(prior(1, 0), ElementsAre(0u, 3u, 4u));
  EXPECT_THAT(prior(1, 1), ElementsAre(0u, 3u, 4u));
  const auto cumsum = [&](double p, std::uint32_t top_j) {
    Ids out;
    select_cumsum(ranking_of(z), softmax(z), cached, p, top_j, 3, out);
    std::ranges::sort(out);
    return out;
  };
  EXPECT_THAT(cumsum(.5, 0), ElementsAre(0u, 1u, 2u));
  EXPECT_THAT(cumsum(.9, 0), ElementsAre(0u, 1u, 3u));
  EXPECT_THAT(cumsum(.95, 0), ElementsAre(0u, 3u, 4u));
  EXPECT_THAT(cumsum(.99, 0), ElementsAre(3u, 4u, 5u));
  EXPECT_THAT(cumsum(.99, 1), ElementsAre(0u, 3u, 4u));
}

// One instance, and the two rules as SPEC §4.5 states them: sorted by tuples, groups by membership.
struct Instance {
  std::vector<double> z;
  std::vector<std::uint8_t> cached;
  std::uint32_t k, top_j;
  double lambda, delta, p;

  explicit Instance(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const std::uint32_t n = static_cast<std::uint32_t>(1 + random() % 12);
    const std::uint64_t levels = random() % 2 == 0 ? 4 : 1000;  // few levels make many ties
    for (std::uint32_t e = 0; e < n; ++e) {
      z.push_back(static_cast<double>(random() % levels) / 8 - 2);
      cached.push_back(random() % 2 == 0);
    }
    k = static_cast<std::uint32_t>(1 + random() % n);
    top_j = static_cast<std::uint32_t>(random() % (n + 2));
    lambda = static_cast<double>(random() % 9) / 8;
    delta = static_cast<double>(random() % 17) / 4;
    p = static_cast<double>(random() % 1001) / 1000;
  }
  std::set<std::uint32_t> best(std::uint32_t count) const {
    const Ids order = ranking_of(z);
    return {order.begin(), order.begin() + std::min<std::ptrdiff_t>(count, std::ssize(order))};
  }
  Ids prior() const {
    const std::set<std::uint32_t> top = best(top_j);
    std::vector<std::tuple<double, double, std::uint32_t>> all;
    for (std::uint32_t e = 0; e < z.size(); ++e) {
      const double boosted = z[e] + (cached[e] != 0 || top.contains(e) ? lambda * delta : 0.0);
      all.emplace_back(-boosted, -z[e], e);
    }
    std::ranges::sort(all);
    Ids out;
    for (std::uint32_t i = 0; i < k; ++i) out.push_back(std::get<2>(all[i]));
    return out;
  }
  Ids cumsum() const {
    const std::vector<double> s = softmax(z);
    const Ids order = ranking_of(z);
    std::uint32_t m = 0;
    for (double sum = 0; m < order.size() && !(m > 0 && sum >= p);) sum += s[order[m++]];
    m = std::max(m, k);
    const std::set<std::uint32_t> top = best(top_j), prefix = best(m);
    const auto group = [&](std::uint32_t e) {
      if (top.contains(e)) return 0;
      if (!prefix.contains(e)) return 3;
      return cached[e] != 0 ? 1 : 2;
    };
    Ids out = order;
    std::ranges::stable_sort(out, {}, group);
    out.resize(k);
    return out;
  }
};

TEST(CacheAware, EqualsTheObviousImplementation) {
  for (std::uint64_t seed = 1; seed <= 20000; ++seed) {
    const Instance in(seed);
    Ids out;
    select_cache_prior(ranking_of(in.z), in.z, in.cached, in.lambda * in.delta, in.top_j, in.k, out);
    ASSERT_EQ(out, in.prior()) << "seed " << seed;
    select_cumsum(ranking_of(in.z), softmax(in.z), in.cached, in.p, in.top_j, in.k, out);
    ASSERT_EQ(out, in.cumsum()) << "seed " << seed;
  }
}

class Resident final : public ResidencyView {
 public:
  explicit Resident(std::vector<Parts> parts) : parts_(std::move(parts)) {}
  Parts parts(ExpertId id) const override { return parts_[id.index]; }

 private:
  std::vector<Parts> parts_;
};

class Sizes final : public ExpertSizes {
 public:
  ExpertBytes bytes(ExpertId) const override { return {.full = 5, .msb = 3, .lsb = 2}; }
};

struct Scores {
  std::uint32_t experts = 0, tokens = 0;
  std::vector<float> logits = {}, scores = {};
  bool prompt = false;
  mutable SequenceSpan span = {};
  ScoresView view() const {
    span = {.tokens = tokens, .kind = prompt ? StepKind::kPrompt : StepKind::kDecode};
    return {.experts = experts,
            .tokens = tokens,
            .logits = logits,
            .scores = scores,
            .spans = {&span, tokens == 0 ? 0u : 1u}};
  }
};
Scores random_scores(std::uint32_t experts, std::uint32_t tokens, std::mt19937_64& random) {
  Scores out{.experts = experts, .tokens = tokens};
  for (std::uint32_t t = 0; t < tokens; ++t) {
    std::vector<double> z;
    for (std::uint32_t e = 0; e < experts; ++e) z.push_back(static_cast<double>(random() % 4000) / 1000 - 2);
    const std::vector<double> s = softmax(z);
    out.logits.insert(out.logits.end(), z.begin(), z.end());
    out.scores.insert(out.scores.end(), s.begin(), s.end());
  }
  return out;
}
Resident random_residents(std::uint32_t experts, std::mt19937_64& random) {
  constexpr Parts kinds[] = {{},        Part::kMsb, Part::kMsb | Part::kLsb, Part::kFull,
                             Part::kSm, Part::kExp, Part::kSm | Part::kExp};
  std::vector<Parts> parts;
  for (std::uint32_t e = 0; e < experts; ++e) parts.push_back(kinds[random() % std::size(kinds)]);
  return Resident(parts);
}

// Holds for every router: k distinct experts in ascending order, with the model's weights on the chosen set,
// and beside them the experts that the model would have chosen.
class EveryRouter : public testing::TestWithParam<RouterPolicy> {};
INSTANTIATE_TEST_SUITE_P(Registry, EveryRouter,
                         testing::ValuesIn(router_policies().begin(), router_policies().end()),
                         [](const auto& info) {
                           std::string name(info.param.name);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST_P(EveryRouter, KeepsTheRulesOfARouting) {
  std::uint64_t changed = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::uint32_t n = static_cast<std::uint32_t>(1 + random() % 16), tokens = 1 + seed % 3;
    const SelectRule select{.top_k = static_cast<std::uint32_t>(1 + random() % n)};
    const CombineRule combine{
        .renormalise = random() % 2 == 0, .epsilon = 1e-6f, .scale = seed % 4 == 0 ? 2.5f : 1.0f};
    const RoutingScript script = random_script(1, n, select.top_k, seed);
    const auto router = GetParam().make({.select = select, .combine = combine, .script = &script});
    EXPECT_EQ(router->name(), GetParam().name);
    const Resident residents = random_residents(n, random);
    Scores scores = random_scores(n, tokens, random);
    Routing routing, exact;
    router->route(scores.view(), residents, routing);
    make_exact_router(select, combine)->route(scores.view(), residents, exact);
    ASSERT_EQ(routing.begin, exact.begin);
    RoutingChanges changes;
    changes.add(scores.view(), routing, scores.span);
    EXPECT_EQ(changes.tokens, tokens);
    changed += changes.changed_tokens;
    std::uint64_t substituted = 0;
    double lost = 0;
    for (std::uint32_t t = 0; t < tokens; ++t) {
      const auto set = routing.token(t), own = exact.token(t);
      float sum = 0;
      for (const Choice& choice : set) sum += scores.scores[t * n + choice.expert];
      for (std::size_t i = 0; i < set.size(); ++i) {
        EXPECT_TRUE(i == 0 || set[i - 1].expert < set[i].expert);
        const float s = scores.scores[t * n + set[i].expert];
        EXPECT_EQ(set[i].weight, (combine.renormalise ? s / (sum + 1e-6f) : s) * combine.scale);
      }
      for (std::size_t i = 0; i < own.size(); ++i) {
        if (GetParam().lossy) {
          ASSERT_EQ(routing.exact_begin, exact.begin);
          EXPECT_EQ(routing.exact[routing.exact_begin[t] + i], own[i].expert);
        }
        const bool kept = std::ranges::find(set, own[i].expert, &Choice::expert) != set.end();
        substituted += !kept;
        lost += kept ? 0 : scores.scores[t * n + own[i].expert];
      }
    }
    EXPECT_EQ(changes.substituted, substituted);
    EXPECT_NEAR(changes.mass_lost, lost, 1e-12);
    if (GetParam().scripted) continue;  // prompts are played, too
    // Routers leave prompts as the model routes them.
    scores.prompt = true;
    router->route(scores.view(), residents, routing);
    ASSERT_EQ(routing.choices.size(), exact.choices.size());
    for (std::size_t i = 0; i < exact.choices.size(); ++i) {
      EXPECT_EQ(routing.choices[i].expert, exact.choices[i].expert);
      EXPECT_EQ(routing.choices[i].weight, exact.choices[i].weight);
    }
  }
  EXPECT_EQ(changed > 0, GetParam().lossy);
}

TEST_P(EveryRouter, NoTokens) {
  const RoutingScript script = random_script(1, 4, 2, 1);
  const auto router = GetParam().make({.select = {.top_k = 2}, .script = &script});
  Routing routing;
  router->route(Scores{.experts = 4}.view(), Resident({{}, {}, {}, {}}), routing);
  EXPECT_TRUE(routing.choices.empty());
  EXPECT_THAT(routing.begin, ElementsAre(0u));
}

TEST_P(EveryRouter, ScoresThatAreNotFiniteAreAnError) {
  Scores scores{.experts = 2, .tokens = 1, .logits = {0, 1}, .scores = {.3f, std::nanf("")}};
  Routing routing;
  const RoutingScript script = random_script(1, 2, 1, 1);
  const auto router = GetParam().make({.select = {.top_k = 1}, .script = &script});
  EXPECT_THROW(router->route(scores.view(), Resident({{}, {}}), routing), Error);
}

// A step of a prompt's tokens and decoded tokens of two other sequences: each token is routed as it would be
// in a step of its own.
TEST_P(EveryRouter, RoutesTokensOfASharedStepAsTokensAlone) {
  if (GetParam().joint) GTEST_SKIP() << "what a token gets depends on the other tokens of its step";
  if (GetParam().scripted) GTEST_SKIP() << "which recorded sequence is played depends on those begun before";
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::uint32_t n = static_cast<std::uint32_t>(2 + random() % 12);
    const RouterConfig config{.select = {.top_k = static_cast<std::uint32_t>(1 + random() % n)}};
    const auto shared = GetParam().make(config);
    std::vector<std::unique_ptr<Router>> alone;
    for (int i = 0; i < 3; ++i) alone.push_back(GetParam().make(config));
    for (int event = 0; event < 4; ++event) {
      const Resident residents = random_residents(n, random);
      const Scores scores = random_scores(n, 4, random);
      const std::array<SequenceSpan, 3> spans = {
          SequenceSpan{.sequence = 5, .first_token = 0, .tokens = 1},
          SequenceSpan{.sequence = 9, .first_token = 1, .tokens = 2, .kind = StepKind::kPrompt},
          SequenceSpan{.sequence = 7, .first_token = 3, .tokens = 1}};
      ScoresView view = scores.view();
      view.spans = spans;
      Routing together;
      shared->route(view, residents, together);
      for (std::size_t s = 0; s < spans.size(); ++s) {
        const std::size_t first = spans[s].first_token * n, count = spans[s].tokens * n;
        SequenceSpan whole = spans[s];
        whole.first_token = 0;
        const ScoresView own{.experts = n,
                             .tokens = whole.tokens,
                             .logits = std::span(scores.logits).subspan(first, count),
                             .scores = std::span(scores.scores).subspan(first, count),
                             .spans = {&whole, 1}};
        Routing routing;
        alone[s]->route(own, residents, routing);
        for (std::uint32_t t = 0; t < whole.tokens; ++t)
          EXPECT_TRUE(std::ranges::equal(routing.token(t), together.token(spans[s].first_token + t), {},
                                         &Choice::expert, &Choice::expert));
      }
    }
  }
}

// The router's selections follow the rules, with F, C and MSB as residents and the layer's mean range.
TEST(CacheAwareRouter, UsesTheRules) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::uint32_t n = static_cast<std::uint32_t>(2 + random() % 12);
    RouterConfig config{.select = {.top_k = static_cast<std::uint32_t>(1 + random() % n)}};
    config.cache_aware = {.lambda = static_cast<double>(random() % 5) / 4,
                          .p = static_cast<double>(random() % 11) / 10,
                          .top_j = static_cast<std::uint32_t>(random() % 3)};
    const auto prior = find_router("cache-prior").make(config), cumsum = find_router("cumsum").make(config);
    double ranges = 0, seen = 0;
    for (int event = 0; event < 4; ++event) {
      const Resident residents = random_residents(n, random);
      Scores scores = random_scores(n, 2, random);
      scores.prompt = event == 1;  // a prompt's ranges count in the mean
      Routing routing, other;
      prior->route(scores.view(), residents, routing);
      cumsum->route(scores.view(), residents, other);
      std::vector<std::uint8_t> cached;
      for (std::uint32_t e = 0; e < n; ++e) {
        const Parts parts = residents.parts({0, static_cast<std::uint16_t>(e)});
        cached.push_back(parts.has(Part::kMsb) || parts.has(Part::kFull) ||
                         parts == (Part::kSm | Part::kExp));
      }
      for (std::uint32_t t = 0; t < 2; ++t) {
        const std::vector<double> z(scores.logits.begin() + t * n, scores.logits.begin() + (t + 1) * n);
        const std::vector<double> s(scores.scores.begin() + t * n, scores.scores.begin() + (t + 1) * n);
        ranges += *std::ranges::max_element(z) - *std::ranges::min_element(z);
        seen += 1;
        if (scores.prompt) continue;
        const auto ascending = [](Ids ids) {
          std::ranges::sort(ids);
          return ids;
        };
        const auto chosen = [](std::span<const Choice> token) {
          Ids ids;
          for (const Choice& choice : token) ids.push_back(choice.expert);
          return ids;
        };
        Ids wanted;
        select_cache_prior(ranking_of(z), z, cached, config.cache_aware.lambda * (ranges / seen),
                           config.cache_aware.top_j, config.select.top_k, wanted);
        EXPECT_EQ(chosen(routing.token(t)), ascending(wanted));
        select_cumsum(ranking_of(z), s, cached, config.cache_aware.p, config.cache_aware.top_j,
                      config.select.top_k, wanted);
        EXPECT_EQ(chosen(other.token(t)), ascending(wanted));
      }
    }
  }
}

// Experts outside the best groups are never selected, even if resident.
TEST(CacheAwareRouter, StaysWithinTheModelsGroups) {
  const RouterConfig config{.select = {.top_k = 2, .groups = 2, .top_groups = 1},
                            .cache_aware = {.lambda = 1, .p = 1}};
  const Scores scores{.experts = 6,
                      .tokens = 1,
                      .logits = {3, 1, 0, 2.9f, 2.8f, 2.7f},
                      .scores = {.4f, .05f, .02f, .2f, .18f, .15f}};
  const Resident residents({{}, {}, Part::kMsb, Part::kMsb, Part::kMsb, Part::kMsb});
  for (std::string_view name : {"cache-prior", "cumsum"}) {
    Routing routing;
    find_router(name).make(config)->route(scores.view(), residents, routing);
    for (const Choice& choice : routing.token(0)) EXPECT_LT(choice.expert, 3) << name;
    EXPECT_EQ(routing.token(0)[1].expert, 2) << name;
  }
}

TEST(CacheAwareRouter, RefusesWhatCannotBe) {
  for (std::string_view name : {"cache-prior", "cumsum"}) {
    const RouterPolicy& policy = find_router(name);
    EXPECT_THROW(policy.make({.select = {.top_k = 1, .capacity = 3}}), Error);
    EXPECT_THROW(policy.make({.select = {.top_k = 0}}), Error);
    for (double bad : {-.1, 1.1, std::nan("")}) {
      EXPECT_THROW(policy.make({.cache_aware = {.lambda = bad}}), Error);
      EXPECT_THROW(policy.make({.cache_aware = {.p = bad}}), Error);
    }
    const Scores scores{.experts = 2, .tokens = 1, .logits = {0, -HUGE_VALF}, .scores = {1, 0}};
    Routing routing;
    EXPECT_THROW(policy.make({})->route(scores.view(), Resident({{}, {}}), routing), Error);
  }
  const Sizes sizes;
  for (ConstraintMode mode : {ConstraintMode::kBoost, ConstraintMode::kAdaptive}) {
    MissConstraint constraint({.mode = mode}, sizes);
    EXPECT_THROW(find_router("cumsum").make({.constraint = &constraint}), Error);
    find_router("cache-prior").make({.constraint = &constraint});
  }
}

}  // namespace
}  // namespace sluice::experts
