// SMoE's router: the specification's vectors, a second implementation with sets, and its promises on random
// steps.
#include "experts/routing/smoe_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "experts/routing/selection.h"

namespace sluice::experts {
namespace {

using testing::ElementsAre, testing::ElementsAreArray, testing::IsEmpty;
using Ids = std::vector<std::uint32_t>;

// A step that owns its numbers.
struct Step {
  std::vector<std::vector<double>> rows;
  std::uint32_t k = 1;
  Ids resident = {};
  std::vector<std::uint8_t> selectable = {};  // (T, N)

  std::uint32_t experts() const { return rows.empty() ? 0 : static_cast<std::uint32_t>(rows[0].size()); }
  bool may_select(std::size_t t, std::size_t e) const {
    return selectable.empty() || selectable[t * experts() + e] != 0;
  }
};

SmoeChoice& choose(SmoeChoice& choice, const Step& step, const SmoeRules& rules) {
  std::vector<double> scores;
  for (const auto& row : step.rows) scores.insert(scores.end(), row.begin(), row.end());
  std::vector<Reach> reach(step.experts(), Reach::kMissing);
  for (std::uint32_t e : step.resident) reach[e] = Reach::kHost;
  choice.choose({.tokens = static_cast<std::uint32_t>(step.rows.size()),
                 .experts = step.experts(),
                 .top_k = step.k,
                 .scores = scores,
                 .reach = reach,
                 .selectable = step.selectable},
                rules);
  return choice;
}

Ids set_of(const std::vector<double>& scores, std::uint32_t k, double alpha, Ids resident,
           bool printed = false) {
  SmoeChoice choice;
  choose(choice, {{scores}, k, std::move(resident)}, {.alpha = alpha, .printed = printed});
  return {choice.set(0).begin(), choice.set(0).end()};
}

TEST(SmoeChoice, AnswersTheVectors) {
  const std::vector<double> s = {.30, .22, .12, .10, .09, .08, .05, .04};
  struct Row {
    double alpha;
    Ids resident, result, printed;
  };
  const Row rows[] = {{.3, {0, 3, 4}, {0, 1, 2, 3}, {0, 1, 2, 3, 4}},
                      {.3, {0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3}, {0, 1, 2, 3, 5}},
                      {.3, {}, {0, 1, 2, 3}, {0, 1, 2, 3, 4}},
                      {.3, {0, 5}, {0, 1, 2, 5}, {0, 1, 2, 3, 5}},
                      {.6, {4, 5, 6}, {0, 1, 4, 5}, {0, 1, 2, 5, 6}},
                      {0, {0, 4, 5}, {0, 1, 2, 3}, {0, 1, 2, 3}}};
  for (const Row& row : rows) {
    SCOPED_TRACE(testing::PrintToString(row.resident) + " alpha " + std::to_string(row.alpha));
    EXPECT_EQ(set_of(s, 4, row.alpha, row.resident), row.result);
    EXPECT_EQ(set_of(s, 4, row.alpha, row.resident, true), row.printed);
  }
  const std::vector<double> ties = {.4, .15, .15, .15, .15};
  EXPECT_EQ(set_of(ties, 3, .2, {3}), Ids({0, 1, 3}));
  EXPECT_EQ(set_of(ties, 3, .2, {3}, true), Ids({0, 1, 2, 3, 4}));
  EXPECT_EQ(set_of(ties, 3, 0, {3}, true), Ids({0}));
}

TEST(SmoeChoice, ABatchSubstitutesByWhatOtherTokensLoadAnyway) {
  SmoeChoice choice;
  choose(choice, {{{.45, .05, .16, .15, .14, .05}, {.05, .15, .14, .16, .45, .05}}, 2}, {.alpha = .3});
  EXPECT_THAT(choice.set(0), ElementsAre(0, 4));
  EXPECT_THAT(choice.set(1), ElementsAre(3, 4));
  EXPECT_THAT(choice.own(0), ElementsAre(0, 2));
  EXPECT_THAT(choice.own(1), ElementsAre(3, 4));
  EXPECT_THAT(choice.misses(), ElementsAre(0, 3, 4));
  EXPECT_EQ(choice.substitutions(), 1u);
  EXPECT_EQ(choice.lost_mass(), .16);
}

// The paper's example (§5.4): tokens {1,2,4}, {1,5,4}, {2,6,7}; 6 is a low-score expert of the third, 4 may
// replace it, and neither is on the device.
TEST(SmoeChoice, MergesLoadsOfFewTokens) {
  Step step{{{0, .30, .20, .02, .10, .02, .02, .02},
             {0, .30, .02, .02, .10, .20, .02, .02},
             {0, .02, .30, .02, .09, .02, .10, .20}},
            3,
            {}};
  // 4 is a top-score expert of no token: its border lies as near as 6's.
  step.rows[0][3] = step.rows[1][3] = .09;
  SmoeChoice choice;
  choose(choice, step, {.alpha = .3, .merge = false});
  EXPECT_THAT(choice.set(2), ElementsAre(2, 6, 7));
  choose(choice, step, {.alpha = .3});
  EXPECT_THAT(choice.set(0), ElementsAre(1, 2, 4));
  EXPECT_THAT(choice.set(1), ElementsAre(1, 4, 5));
  EXPECT_THAT(choice.set(2), ElementsAre(2, 4, 7));
}

TEST(SmoeChoice, GroupedRoutingKeepsToTheGroups) {
  Step step{{{.4, .2, .19, .01, .18, .02}}, 2, {4}};
  SmoeChoice choice;
  choose(choice, step, {.alpha = .3});
  EXPECT_THAT(choice.set(0), ElementsAre(0, 4));
  step.selectable = {1, 1, 1, 1, 0, 0};  // 4 is not in the token's groups
  choose(choice, step, {.alpha = .3});
  EXPECT_THAT(choice.set(0), ElementsAre(0, 1));
}

TEST(SmoeChoice, EmptyCases) {
  SmoeChoice choice;
  choose(choice, {{}, 2}, {});
  EXPECT_EQ(choice.tokens(), 0u);
  EXPECT_THAT(choice.misses(), IsEmpty());
  choose(choice, {{{}, {}}, 0}, {});
  EXPECT_EQ(choice.tokens(), 2u);
  EXPECT_THAT(choice.set(1), IsEmpty());
  EXPECT_EQ(set_of({.5, .5}, 2, .3, {}), Ids({0, 1}));  // all experts are selected
}

// SPEC §2.2 with sets and maps.
std::vector<std::set<std::uint32_t>> plain_sets(const Step& step, double alpha, bool merge) {
  const std::uint32_t n = step.experts();
  const std::size_t tokens = step.rows.size();
  std::vector<Ids> own(tokens);
  std::vector<double> beta(tokens);
  std::set<std::uint32_t> near(step.resident.begin(), step.resident.end());
  const auto ranked = [&](std::size_t t, Ids ids) {
    std::stable_sort(ids.begin(), ids.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return step.rows[t][a] > step.rows[t][b]; });
    return ids;
  };
  const auto is_top = [&](std::size_t t, std::uint32_t e) { return step.rows[t][e] > (1 + alpha) * beta[t]; };
  for (std::size_t t = 0; t < tokens; ++t) {
    Ids all;
    for (std::uint32_t e = 0; e < n; ++e)
      if (step.may_select(t, e)) all.push_back(e);
    all = ranked(t, all);
    beta[t] = all.size() > step.k ? step.rows[t][all[step.k]] : 0;
    own[t].assign(all.begin(), all.begin() + step.k);
    for (std::uint32_t e : own[t])
      if (is_top(t, e)) near.insert(e);
  }
  std::vector<std::set<std::uint32_t>> sets(tokens);
  std::vector<std::tuple<std::size_t, double, std::size_t, std::uint32_t>> retained;  // users, score, t, id
  for (std::size_t t = 0; t < tokens; ++t) {
    Ids miss, alternatives;
    for (std::uint32_t e : own[t])
      is_top(t, e) || near.contains(e) ? void(sets[t].insert(e)) : miss.push_back(e);
    for (std::uint32_t e = 0; e < n; ++e)
      if (std::ranges::count(own[t], e) == 0 && near.contains(e) && step.may_select(t, e) &&
          step.rows[t][e] >= (1 - alpha) * beta[t])
        alternatives.push_back(e);
    alternatives = ranked(t, alternatives);
    const std::size_t m = std::min(miss.size(), alternatives.size());
    sets[t].insert(alternatives.begin(), alternatives.begin() + static_cast<std::ptrdiff_t>(m));
    for (std::size_t i = 0; i < miss.size() - m; ++i) {
      sets[t].insert(miss[i]);
      retained.push_back({0, step.rows[t][miss[i]], t, miss[i]});
    }
  }
  if (!merge) return sets;
  const auto users = [&](std::uint32_t e) {
    return static_cast<std::size_t>(
        std::ranges::count_if(sets, [&](const auto& set) { return set.contains(e); }));
  };
  for (auto& [count, score, t, e] : retained) count = users(e);
  std::ranges::sort(retained);
  for (const auto& [count, score, t, b] : retained) {
    std::vector<std::tuple<std::size_t, double, std::int64_t>> candidates;
    for (std::uint32_t a = 0; a < n; ++a)
      if (std::ranges::count(own[t], a) == 0 && !sets[t].contains(a) && !near.contains(a) &&
          step.may_select(t, a) && step.rows[t][a] >= (1 - alpha) * beta[t] && users(a) > users(b))
        candidates.push_back({users(a), step.rows[t][a], -std::int64_t{a}});
    if (candidates.empty()) continue;
    sets[t].erase(b);
    sets[t].insert(static_cast<std::uint32_t>(-std::get<2>(*std::ranges::max_element(candidates))));
  }
  return sets;
}

TEST(SmoeChoice, HoldsItsPromisesOnRandomSteps) {
  constexpr std::uint64_t kSeed = 17, kInstances = 20000;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  SmoeChoice choice;
  std::uint64_t substitutions = 0, merged = 0;
  for (std::uint64_t instance = 0; instance < kInstances && !testing::Test::HasFailure(); ++instance) {
    SCOPED_TRACE("instance " + std::to_string(instance));
    Step step;
    const std::uint32_t n = 1 + static_cast<std::uint32_t>(random() % 12);
    const std::size_t tokens = random() % 6;
    step.k = 1 + static_cast<std::uint32_t>(random() % n);
    const bool ties = random() % 3 == 0;
    for (std::size_t t = 0; t < tokens; ++t) {
      std::vector<double> row(n);
      for (double& s : row)
        s = ties ? static_cast<double>(1 + random() % 4) : 1e-9 + std::generate_canonical<double, 53>(random);
      const double sum = std::accumulate(row.begin(), row.end(), 0.0);
      if (!ties)
        for (double& s : row) s /= sum;
      step.rows.push_back(row);
    }
    const std::uint64_t rarity = 2 + random() % 10;
    for (std::uint32_t e = 0; e < n; ++e)
      if (random() % rarity == 0 && tokens > 0) step.resident.push_back(e);
    if (random() % 4 == 0 && tokens > 0) {
      step.selectable.assign(tokens * n, 0);
      for (std::size_t t = 0; t < tokens; ++t) {
        Ids ids(n);
        std::iota(ids.begin(), ids.end(), 0u);
        std::shuffle(ids.begin(), ids.end(), random);
        const std::size_t some = step.k + random() % (n - step.k + 1);
        for (std::size_t i = 0; i < some; ++i) step.selectable[t * n + ids[i]] = 1;
      }
    }
    const double alpha = random() % 5 == 0 ? 0 : 1.2 * std::generate_canonical<double, 53>(random);
    const bool merge = random() % 2 == 0;
    choose(choice, step, {.alpha = alpha, .merge = merge});

    const auto expected = plain_sets(step, alpha, merge);
    ASSERT_EQ(choice.tokens(), tokens);
    std::set<std::uint32_t> near(step.resident.begin(), step.resident.end()), misses;
    ScoreClasses classes;
    for (std::size_t t = 0; t < tokens; ++t) {
      classes.classify(step.rows[t],
                       step.selectable.empty() ? std::span<const std::uint8_t>{}
                                               : std::span(step.selectable).subspan(t * n, n),
                       step.k, alpha);
      near.insert(classes.top().begin(), classes.top().end());
    }
    std::uint64_t replaced = 0;
    for (std::uint32_t t = 0; t < tokens; ++t) {
      const std::span<const std::uint32_t> set = choice.set(t), own = choice.own(t);
      EXPECT_THAT(Ids(set.begin(), set.end()), ElementsAreArray(expected[t]));
      EXPECT_EQ(std::set(set.begin(), set.end()).size(), step.k) << "exactly k";
      EXPECT_TRUE(std::ranges::is_sorted(set));
      classes.classify(step.rows[t],
                       step.selectable.empty() ? std::span<const std::uint8_t>{}
                                               : std::span(step.selectable).subspan(t * n, n),
                       step.k, alpha);
      for (std::uint32_t e : classes.top())
        EXPECT_TRUE(std::ranges::binary_search(set, e)) << "top-score " << e;
      for (std::uint32_t e : set) EXPECT_TRUE(step.may_select(t, e));
      const auto far = [&](std::uint32_t e) { return !near.contains(e); };
      EXPECT_LE(std::ranges::count_if(set, far), std::ranges::count_if(own, far));
      if ((alpha == 0 && !ties) || step.k == n) {
        EXPECT_TRUE(std::ranges::equal(set, own)) << "alpha 0 and k = N are exact";
      }
      for (std::uint32_t e : set)
        if (std::ranges::count(step.resident, e) == 0) misses.insert(e);
      for (std::uint32_t e : own) replaced += std::ranges::binary_search(set, e) ? 0 : 1;
    }
    EXPECT_THAT(Ids(choice.misses().begin(), choice.misses().end()), ElementsAreArray(misses));
    EXPECT_EQ(choice.substitutions(), replaced);
    substitutions += replaced;
    if (merge) merged += plain_sets(step, alpha, false) != expected ? 1 : 0;
  }
  std::printf("seed %llu: %llu steps, %llu substitutions, %llu steps changed by the merge\n",
              static_cast<unsigned long long>(kSeed), static_cast<unsigned long long>(kInstances),
              static_cast<unsigned long long>(substitutions), static_cast<unsigned long long>(merged));
  EXPECT_GT(substitutions, 5000u);
  EXPECT_GT(merged, 100u);
}

// One token with two tiers of memory: alternatives one by one, each in place of the worst that is left.
Ids plain_tiers(const std::vector<double>& scores, std::uint32_t k, double alpha,
                const std::vector<Reach>& reach, Reach resident) {
  Ids order(scores.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, [&](auto a, auto b) { return scores[a] > scores[b]; });
  const double beta = k < order.size() ? scores[order[k]] : 0;
  std::set<std::uint32_t> set(order.begin(), order.begin() + k);
  const auto worst = [&](bool from_host) {  // the one to be replaced next; N: none
    for (const bool missing : {true, false})
      for (std::uint32_t i = k; i-- > 0;) {
        const std::uint32_t e = order[i];
        if (!set.contains(e) || scores[e] > (1 + alpha) * beta || reach[e] >= resident) continue;
        if ((reach[e] == Reach::kMissing) == missing && (missing || !from_host)) return e;
      }
    return static_cast<std::uint32_t>(order.size());
  };
  for (const Reach tier : {Reach::kDevice, Reach::kHost})
    for (std::uint32_t i = k; i < order.size(); ++i) {
      if (reach[order[i]] != tier || scores[order[i]] < (1 - alpha) * beta) continue;
      const std::uint32_t leaves = worst(tier < resident);
      if (leaves == order.size()) continue;
      set.erase(leaves);
      set.insert(order[i]);
    }
  return {set.begin(), set.end()};
}

TEST(SmoeChoice, WithTwoTiersWhatTheDiskHasGivesWayFirst) {
  constexpr std::uint64_t kSeed = 29;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  std::uint64_t to_device = 0, to_host = 0;
  for (int instance = 0; instance < 20000 && !testing::Test::HasFailure(); ++instance) {
    SCOPED_TRACE("instance " + std::to_string(instance));
    const std::uint32_t n = 2 + static_cast<std::uint32_t>(random() % 12),
                        k = 1 + static_cast<std::uint32_t>(random() % n);
    std::vector<double> scores(n);
    for (double& s : scores) s = 1e-9 + std::generate_canonical<double, 53>(random);
    std::vector<Reach> reach(n);
    for (Reach& one : reach) one = static_cast<Reach>(random() % 3);
    const Reach resident = random() % 2 == 0 ? Reach::kHost : Reach::kDevice;
    const double alpha = 1.2 * std::generate_canonical<double, 53>(random);
    SmoeChoice choice;
    choice.choose(
        {.tokens = 1, .experts = n, .top_k = k, .scores = scores, .reach = reach, .resident = resident},
        {.alpha = alpha, .merge = random() % 2 == 0});
    const std::span<const std::uint32_t> set = choice.set(0), own = choice.own(0);
    EXPECT_THAT(Ids(set.begin(), set.end()),
                ElementsAreArray(plain_tiers(scores, k, alpha, reach, resident)));
    for (const Reach least : {Reach::kHost, resident}) {
      const auto far = [&](std::uint32_t e) { return reach[e] < least; };
      EXPECT_LE(std::ranges::count_if(set, far), std::ranges::count_if(own, far));
    }
    for (const std::uint32_t e : set) {
      if (std::ranges::binary_search(own, e)) continue;
      (reach[e] == Reach::kDevice ? to_device : to_host) += 1;
    }
  }
  EXPECT_GT(to_device, 1500u);
  EXPECT_GT(to_host, 1500u);
}

// Expert 3 is loaded for two tokens anyway: the first token takes it, too, unless it would give up an
// expert of the host for one of the disk.
TEST(SmoeChoice, TheMergeGivesUpNothingOfTheHostForTheDisk) {
  const std::vector<double> scores = {.45, .16, .05, .15, .05, .14, .45, .05, .15,
                                      .20, .05, .10, .45, .05, .15, .20, .05, .10};
  for (const Reach one : {Reach::kMissing, Reach::kHost}) {
    std::vector<Reach> reach(6, Reach::kMissing);
    reach[1] = one;
    SmoeChoice choice;
    choice.choose(
        {.tokens = 3, .experts = 6, .top_k = 2, .scores = scores, .reach = reach, .resident = Reach::kDevice},
        {.alpha = .5});
    EXPECT_THAT(choice.set(0), ElementsAre(0, one == Reach::kMissing ? 3 : 1));
    EXPECT_THAT(choice.set(1), ElementsAre(0, 3));
  }
}

TEST(SmoeChoice, WeightsFollowFromTheFinalSet) {
  const std::vector<ScoredExpert> set = {{.3f, 0}, {.1f, 4}};  // replaced an expert of .2
  const auto weights = [&](SmoeRenorm renorm, const CombineRule& model) {
    std::vector<Choice> choices;
    append_choices(smoe_combine_rule(renorm, model, .5, .4), set, choices);
    return std::vector{choices[0].weight, choices[1].weight};
  };
  const auto near = [](float a, float b) {
    return ElementsAre(testing::FloatNear(a, 1e-6f), testing::FloatNear(b, 1e-6f));
  };
  const CombineRule plain{.scale = 2}, norm{.renormalise = true};
  EXPECT_THAT(weights(SmoeRenorm::kModel, plain), near(.6f, .2f));
  EXPECT_THAT(weights(SmoeRenorm::kModel, norm), near(.75f, .25f));
  EXPECT_THAT(weights(SmoeRenorm::kMass, plain), near(.75f, .25f));
  EXPECT_THAT(weights(SmoeRenorm::kMass, norm), near(.75f, .25f));
  EXPECT_THAT(weights(SmoeRenorm::kNone, plain), near(.6f, .2f));
  EXPECT_THAT(weights(SmoeRenorm::kNone, norm), near(.3f, .1f));
  EXPECT_EQ(smoe_combine_rule(SmoeRenorm::kMass, plain, .5, 0).scale, 0);
}

}  // namespace
}  // namespace sluice::experts
