// DALI's workload cache and our variant: the specification's vectors, and random runs against the rules
// written plainly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <set>
#include <string>

#include "experts/cache/workload/workload_ema.h"
#include "experts/cache/workload/workload_window.h"

namespace sluice::experts {
namespace {

using testing::ElementsAre, testing::IsEmpty;
using Tokens = std::vector<std::uint32_t>;
using Ids = std::vector<std::uint32_t>;

// The residents of a layer, changed by swaps.
struct Layer {
  std::vector<std::uint8_t> resident;
  explicit Layer(std::size_t experts, const Ids& start = {}) : resident(experts) {
    for (std::uint32_t e : start) resident[e] = 1;
  }
  void apply(std::span<const Swap> swaps) {
    for (const Swap& swap : swaps) {
      EXPECT_EQ(resident[swap.in], 0);
      EXPECT_EQ(resident[swap.out], 1);
      resident[swap.in] = 1;
      resident[swap.out] = 0;
    }
  }
  Ids ids() const {
    Ids all;
    for (std::uint32_t e = 0; e < resident.size(); ++e)
      if (resident[e] != 0) all.push_back(e);
    return all;
  }
};

const std::vector<Tokens> kSteps = {{3, 0, 1, 0, 2, 2, 0, 0}, {2, 0, 0, 1, 3, 2, 0, 0},
                                    {1, 1, 0, 0, 3, 3, 0, 0}, {2, 0, 0, 0, 2, 2, 1, 1},
                                    {0, 0, 4, 0, 0, 4, 0, 0}, {0, 0, 4, 0, 0, 4, 0, 0}};

std::vector<Ids> run(const WindowRules& rules, const std::vector<Tokens>& steps, const Ids& start) {
  WorkloadWindow window(static_cast<std::uint32_t>(steps[0].size()), rules);
  Layer layer(steps[0].size(), start);
  std::vector<Ids> sets;
  for (const Tokens& tokens : steps) {
    window.add(tokens);
    layer.apply(window.end_step(layer.resident));
    sets.push_back(layer.ids());
  }
  return sets;
}

TEST(WorkloadWindow, AnswersTheVectors) {
  const Ids start = {0, 1, 2, 3};
  const std::vector<Ids> four = run({.steps = 4, .swaps = 2}, kSteps, start);
  EXPECT_THAT(four,
              ElementsAre(start, start, start, Ids({0, 1, 4, 5}), Ids({0, 1, 4, 5}), Ids({0, 1, 4, 5})));
  const Ids one = {0, 2, 3, 4}, two = {0, 2, 4, 5};
  EXPECT_THAT(run({.steps = 2, .swaps = 1}, kSteps, start), ElementsAre(start, one, one, two, two, two));

  // The printed trigger fires after the very first step, as a window of one step does.
  EXPECT_EQ(run({.steps = 1, .swaps = 2}, kSteps, start)[0], Ids({0, 2, 4, 5}));

  const std::vector<Tokens> steady(4, {4, 3, 2, 1, 0, 0, 0, 0});
  EXPECT_EQ(run({.steps = 4, .swaps = 2}, steady, start).back(), start);
  EXPECT_EQ(run({.steps = 4, .swaps = 2, .unconditional = true}, steady, start).back(), Ids({0, 1, 4, 5}));
}

TEST(WorkloadWindow, APromptIsOneStepThatEndsTheWindow) {
  WorkloadWindow window(4, {.steps = 2, .swaps = 4});
  Layer layer(4, {0, 1});
  window.add(Tokens{9, 9, 0, 0});
  EXPECT_THAT(window.end_step(layer.resident), IsEmpty());
  window.add(Tokens{0, 0, 0, 10});  // two chunks of a prompt
  window.add(Tokens{0, 0, 8, 5});
  layer.apply(window.end_prompt(layer.resident));
  EXPECT_THAT(layer.ids(), ElementsAre(0, 3));
  window.add(Tokens{0, 0, 5, 0});  // a window of its own: what came before is forgotten
  EXPECT_THAT(window.end_step(layer.resident), IsEmpty());
  window.add(Tokens{0, 0, 0, 1});
  layer.apply(window.end_step(layer.resident));
  EXPECT_THAT(layer.ids(), ElementsAre(2, 3));
}

TEST(WorkloadWindow, EmptyAndFullSetsNeverSwap) {
  for (const Ids& start : {Ids{}, Ids{0, 1, 2, 3, 4, 5, 6, 7}})
    EXPECT_EQ(run({.steps = 1, .swaps = 8, .unconditional = true}, kSteps, start).back(), start);
}

// SPEC §3.5 with sorted lists; returns the set after one update.
std::set<std::uint32_t> plain_update(const std::vector<double>& score, std::set<std::uint32_t> resident,
                                     std::size_t most, double ratio, bool unconditional) {
  std::vector<std::pair<double, std::int64_t>> in, out;  // the best newcomer first, the worst resident first
  for (std::uint32_t e = 0; e < score.size(); ++e)
    resident.contains(e) ? void(out.push_back({score[e], -std::int64_t{e}}))
                         : in.push_back({-score[e], std::int64_t{e}});
  std::ranges::sort(in);
  std::ranges::sort(out);
  for (std::size_t j = 0; j < std::min({most, in.size(), out.size()}); ++j) {
    if (!unconditional && !(-in[j].first > ratio * out[j].first)) break;
    resident.erase(static_cast<std::uint32_t>(-out[j].second));
    resident.insert(static_cast<std::uint32_t>(in[j].second));
  }
  return resident;
}

TEST(Workload, FollowsTheRulesOnRandomRuns) {
  constexpr std::uint64_t kSeed = 29;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  std::size_t moved = 0;
  for (int instance = 0; instance < 20000 && !testing::Test::HasFailure(); ++instance) {
    SCOPED_TRACE("instance " + std::to_string(instance));
    const std::size_t n = 1 + random() % 8;
    Ids start;
    for (std::uint32_t e = 0; e < n; ++e)
      if (random() % 2 == 0) start.push_back(e);
    const WindowRules rules{.steps = 1 + static_cast<std::uint32_t>(random() % 4),
                            .swaps = static_cast<std::uint32_t>(random() % 5),
                            .unconditional = random() % 3 == 0};
    const EmaRules ema_rules{.gamma = static_cast<double>(random() % 4) / 4,
                             .ratio = 1 + static_cast<double>(random() % 3) / 8,
                             .swaps = static_cast<std::uint32_t>(random() % 4)};
    WorkloadWindow window(static_cast<std::uint32_t>(n), rules);
    WorkloadEma ema(static_cast<std::uint32_t>(n), ema_rules);
    Layer by_window(n, start), by_ema(n, start);
    std::set<std::uint32_t> window_set(start.begin(), start.end()), ema_set = window_set;
    std::vector<double> sum(n), average(n);
    const std::size_t steps = random() % 7;
    for (std::size_t i = 0; i < steps; ++i) {
      Tokens tokens(n);
      for (std::uint32_t& w : tokens) w = static_cast<std::uint32_t>(random() % 4);
      for (std::size_t e = 0; e < n; ++e) {
        sum[e] += tokens[e];
        average[e] = ema_rules.gamma * average[e] + (1 - ema_rules.gamma) * tokens[e];
      }
      window.add(tokens);
      ema.add(tokens);
      by_window.apply(window.end_step(by_window.resident));
      by_ema.apply(ema.end_step(by_ema.resident));
      if ((i + 1) % rules.steps == 0) {
        const std::set<std::uint32_t> before = window_set;
        window_set = plain_update(sum, window_set, rules.swaps, 1, rules.unconditional);
        if (!rules.unconditional) {
          // No set that as many swaps could reach holds more of the window's work.
          const auto work = [&](std::uint32_t bits) {
            double all = 0;
            for (std::uint32_t e = 0; e < n; ++e) all += (bits >> e & 1) != 0 ? sum[e] : 0;
            return all;
          };
          std::uint32_t from = 0, reached = 0;
          for (std::uint32_t e : before) from |= 1u << e;
          for (std::uint32_t e : window_set) reached |= 1u << e;
          double best = 0;
          for (std::uint32_t set = 0; set < 1u << n; ++set)
            if (std::popcount(set) == std::popcount(from) &&
                std::popcount(set & ~from) <= static_cast<int>(rules.swaps))
              best = std::max(best, work(set));
          EXPECT_EQ(work(reached), best);
        }
        sum.assign(n, 0);
      }
      const std::set<std::uint32_t> before = ema_set;
      ema_set = plain_update(average, ema_set, ema_rules.swaps, ema_rules.ratio, false);
      moved += before != ema_set ? 1 : 0;
      EXPECT_EQ(by_window.ids(), Ids(window_set.begin(), window_set.end())) << "step " << i;
      EXPECT_EQ(by_ema.ids(), Ids(ema_set.begin(), ema_set.end())) << "step " << i;
    }
  }
  EXPECT_GT(moved, 1000u);
}

}  // namespace
}  // namespace sluice::experts
