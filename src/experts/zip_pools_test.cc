// Zip-pools: the specification's vectors, its rules one by one, and a slow, obvious second implementation.
#include "experts/zip_pools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "base/error.h"
#include "experts/registry.h"
#include "experts/residency.h"

namespace sluice::experts {
namespace {

using testing::ElementsAre;

using Step = std::vector<std::uint16_t>;

std::string targets(const PoolSlots& slots, std::uint32_t delta, std::uint64_t ranks) {
  std::string all;
  for (std::uint64_t rank = 0; rank < ranks; ++rank) all += static_cast<char>(dispatch(slots, delta, rank));
  return all;
}

TEST(Dispatch, VectorsOfTheSpecification) {
  EXPECT_EQ(targets({.f = 2, .c = 1, .e = 2}, 0, 8), "FFCEEMMM");
  EXPECT_EQ(targets({.f = 2, .c = 1, .e = 2}, 1, 8), "FFFCEEMM");
}

TEST(Dispatch, PoolsWithoutSlotsAreSkipped) {
  EXPECT_EQ(targets({}, 5, 3), "MMM");
  EXPECT_EQ(targets({.s = 1}, 2, 5), "SSSMM");
}

std::string states(const ZipPools& pools, std::uint16_t experts) {
  std::string all;
  for (std::uint16_t i = 0; i < experts; ++i) all += static_cast<char>(pools.state(i));
  return all;
}

TEST(ZipPools, RanksByCountThenRecencyThenId) {
  ZipPools pools({.f = 1, .c = 1, .s = 1, .e = 1}, {.delta = 0});
  pools.on_step(Step{0, 1, 2, 3, 4});
  EXPECT_EQ(states(pools, 5), "FCSEM");
  pools.on_step(Step{4});  // two uses: the hottest; the full one, colder, leaves
  EXPECT_EQ(states(pools, 5), "MCSEF");
  pools.on_step(Step{3});  // as many, and later
  EXPECT_EQ(states(pools, 5), "MCSFM");
}

TEST(ZipPools, FullOnesAreNotCompressedAgain) {
  ZipPools pools({.f = 1, .c = 1}, {.delta = 0});
  pools.on_step(Step{5});
  EXPECT_EQ(pools.state(5), State::kF);
  pools.on_step(Step{3});
  pools.on_step(Step{3});  // now the hotter one: it takes the slot of F
  EXPECT_EQ(pools.state(3), State::kF);
  EXPECT_EQ(pools.state(5), State::kM);
  ZipPools wide({.f = 2, .c = 2}, {.delta = 0});
  wide.on_step(Step{0, 1});
  wide.on_step(Step{2});
  wide.on_step(Step{2});
  wide.on_step(Step{3});
  wide.on_step(Step{3});
  EXPECT_EQ(states(wide, 4), "MMFF");
  ZipPools stays({.f = 2, .c = 2}, {.delta = 0});
  stays.on_step(Step{7});
  for (int i = 0; i < 3; ++i) stays.on_step(Step{1});
  EXPECT_EQ(stays.state(7), State::kF);
}

// Expert 5 falls behind 1, its equal, in the step that uses both; of equals the lower id leaves F.
TEST(ZipPools, SignsAndMantissasAreTakenFromFullOnes) {
  ZipPools pools({.f = 1, .s = 3}, {.delta = 0});
  pools.on_step(Step{1});
  pools.on_step(Step{5});
  EXPECT_EQ(states(pools, 6), "MMMMMF");
  pools.on_step(Step{1, 5});
  EXPECT_EQ(states(pools, 6), "MMMMMS");
}

TEST(ZipPools, VictimsOfCAreDemotedWhereThereIsRoom) {
  for (const bool demote : {false, true}) {
    ZipPools pools({.c = 1, .s = 1, .e = 1}, {.delta = 9, .demote = demote});
    pools.on_step(Step{0, 1, 2, 3});
    // All are dispatched to C; of equals the lowest id leaves: 0, then 1, then 2.
    EXPECT_EQ(states(pools, 4), demote ? "SEMC" : "MMMC");
  }
}

TEST(ZipPools, HalfLifeForgets) {
  for (const double half_life : {0.0, 1.0}) {
    ZipPools pools({.f = 1}, {.delta = 0, .half_life = half_life});
    for (int i = 0; i < 10; ++i) pools.on_step(Step{0});
    for (int i = 0; i < 5; ++i) pools.on_step(Step{1});
    EXPECT_EQ(pools.state(1), half_life == 0 ? State::kM : State::kF);
  }
}

TEST(ZipPools, OfflineCountsRankFromTheStart) {
  ZipPools pools({.f = 1, .e = 1}, {.delta = 0});
  const double counts[] = {0, 0, 9, 7};
  pools.seed(counts);
  pools.on_step(Step{0, 3});
  EXPECT_EQ(states(pools, 4), "MMME");  // 2 is the hottest, though never used here
}

// ---- A second implementation, over maps, as the specification writes it.

class NaivePools {
 public:
  NaivePools(std::uint32_t experts, const PoolSlots& slots, const PoolRules& rules)
      : slots_(slots), rules_(rules), count_(experts), last_(experts, -1) {}

  void step(const Step& active) {
    ++now_;
    discarded.clear();
    found = state;
    for (std::uint16_t e : active) ++count_[e], last_[e] = now_;
    for (std::uint16_t e : active) {
      std::vector<std::uint16_t> order(count_.size());
      for (std::uint16_t i = 0; i < order.size(); ++i) order[i] = i;
      std::ranges::stable_sort(order, [&](auto a, auto b) {
        return std::pair(count_[a], last_[a]) > std::pair(count_[b], last_[b]);
      });
      const auto rank = static_cast<std::uint64_t>(std::ranges::find(order, e) - order.begin());
      char target = 'M';
      std::uint64_t covered = 0;
      for (char pool : {'F', 'C', 'S', 'E'}) {
        const std::uint32_t slots = slots_[static_cast<State>(pool)];
        covered += slots;
        if (slots > 0 && rank < covered + rules_.delta) {
          target = pool;
          break;
        }
      }
      if (target == 'M') {
        if (state.erase(e)) discarded.push_back(e);
        continue;
      }
      if (found.contains(e) && found[e] == 'F' && (target == 'C' || target == 'E')) continue;
      state[e] = target;
      if (members(target).size() <= slots_[static_cast<State>(target)]) continue;
      const std::vector<std::uint16_t> in = members(target);
      const std::uint16_t victim =
          *std::ranges::min_element(in, {}, [&](auto i) { return std::tuple(count_[i], last_[i], i); });
      state.erase(victim);
      if (rules_.demote && target == 'C' && members('S').size() < slots_.s) {
        state[victim] = 'S';
      } else if (rules_.demote && target == 'C' && members('E').size() < slots_.e) {
        state[victim] = 'E';
      } else {
        discarded.push_back(victim);
      }
    }
  }

  std::map<std::uint16_t, char> state, found;
  std::vector<std::uint16_t> discarded;

 private:
  std::vector<std::uint16_t> members(char pool) const {
    std::vector<std::uint16_t> all;
    for (const auto& [e, s] : state) {
      if (s == pool) all.push_back(e);
    }
    return all;
  }

  PoolSlots slots_;
  PoolRules rules_;
  std::vector<std::int64_t> count_, last_;
  std::int64_t now_ = -1;
};

class Sizes final : public ExpertSizes {
 public:
  ExpertBytes bytes(ExpertId) const override { return {.full = 200, .sm = 100, .exp = 37}; }
};

struct RandomRun {
  std::uint32_t experts;
  PoolSlots slots;
  PoolRules rules;
  std::vector<Step> steps;
};

RandomRun random_run(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
  RandomRun run;
  run.experts = 1 + below(12);
  run.slots = {.f = below(4), .c = below(4), .s = below(4), .e = below(4)};
  run.rules = {.delta = below(4), .demote = below(2) == 1};
  for (int s = 0; s < 60; ++s) {
    std::set<std::uint16_t> active;
    for (std::uint64_t k = random() % 5; k > 0; --k) {
      active.insert(static_cast<std::uint16_t>(std::min(below(run.experts), below(run.experts))));
    }
    run.steps.emplace_back(active.begin(), active.end());
  }
  return run;
}

TEST(ZipPools, EqualsTheNaiveOne) {
  std::uint64_t demotions = 0, extractions = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomRun run = random_run(seed);
    NaivePools naive(run.experts, run.slots, run.rules);
    ZipPools pools(run.slots, run.rules);
    // The same through a cache and its residency, in two layers at once.
    const Sizes sizes;
    CacheConfig config;
    config.pools = {.slots = {run.slots}, .rules = run.rules, .counts = {}};
    const Bytes capacity = 2 * (run.slots.f * 200 + run.slots.c * 137 + run.slots.s * 100 + run.slots.e * 37);
    Residency residency(make_cache("zip-pools", config), sizes, capacity);
    for (const Step& step : run.steps) {
      naive.step(step);
      pools.on_step(step);
      std::vector<std::uint16_t> discarded;
      for (const ZipPools::Move& move : pools.moves()) {
        if (move.to == State::kM) discarded.push_back(move.expert);
      }
      EXPECT_EQ(discarded, naive.discarded);
      std::vector<ExpertId> ids;
      for (std::uint16_t e : step) ids.insert(ids.end(), {{0, e}, {3, e}});
      const EventOutcome& outcome = residency.on_event(ids);
      for (std::uint16_t e = 0; e < run.experts; ++e) {
        const char expected = naive.state.contains(e) ? naive.state.at(e) : 'M';
        EXPECT_EQ(static_cast<char>(pools.state(e)), expected);
        for (std::uint16_t layer : {0, 3})
          EXPECT_EQ(static_cast<char>(state_of(residency.parts({layer, e}))), expected);
      }
      for (const Admission& hit : outcome.hits)
        extractions += hit.before == Part::kFull && hit.parts == Part::kSm;
      for (const Eviction& gone : outcome.evicted)
        demotions += gone.parts == Part::kExp && !residency.parts(gone.id).empty();
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(demotions, 100u);
  EXPECT_GT(extractions, 20u);
}

TEST(ZipPoolsCache, SlotsThatDoNotFitAreRefusedWhenItIsMade) {
  CacheConfig config;
  config.pools.slots = {{1, 1, 0, 0}, {0, 0, 2, 1}};
  const ExpertBytes largest{.full = 100, .sm = 50, .exp = 20};  // 170 and, twice, 120
  config.pools.room = {.layers = 3, .largest = largest, .capacity = 410};
  EXPECT_NE(make_cache("zip-pools", config), nullptr);
  config.pools.room->capacity = 409;
  EXPECT_THROW(make_cache("zip-pools", config), Error);
}

}  // namespace
}  // namespace sluice::experts
