// Prefetches that predict without scores, against plain statements of their rules, and what all of the
// registry keep to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include "base/error.h"
#include "experts/prefetch/expert_transitions.h"
#include "experts/prefetch/prefetch.h"
#include "experts/prefetch/testing.h"
#include "experts/registry.h"

namespace sluice::experts::prefetch_variants_test {
namespace {

constexpr std::uint64_t kSeed = 20261124;
constexpr std::uint32_t kLayers = 3;

using Ids = std::vector<std::uint16_t>;

// One layer that was routed, and what is predicted of the next one.
struct Layer {
  std::uint32_t experts;
  Routing routing;
  HeldParts held;
  std::vector<float> scores;
  ScoresView next;
  LayerState state;

  Layer(std::mt19937_64& random, std::uint32_t n) : experts(n) {
    const auto tokens = static_cast<std::uint32_t>(1 + random() % 4),
               k = 1 + static_cast<std::uint32_t>(random() % n);
    routing.begin = {0};
    for (std::uint32_t t = 0; t < tokens; ++t) {
      std::set<std::uint16_t> chosen;
      while (chosen.size() < k) chosen.insert(static_cast<std::uint16_t>(random() % n));
      for (const std::uint16_t e : chosen) routing.choices.push_back({.expert = e});
      routing.begin.push_back(static_cast<std::uint32_t>(routing.choices.size()));
    }
    state = {.layer = static_cast<std::uint32_t>(random() % kLayers), .layers = kLayers, .experts = n};
    for (std::uint32_t i = 0; i < tokens * n; ++i) scores.push_back(static_cast<float>(random() % 16));
    next = {.layer = state.layer + 1, .experts = n, .tokens = tokens, .scores = scores};
    for (std::uint16_t e = 0; e < n; ++e)
      if (random() % 3 == 0) held.set({static_cast<std::uint16_t>(state.layer + 1), e}, Part::kFull);
    state.routing = &routing;
    state.residency = &held;
    state.top_k = k;
    if (state.layer + 1 < kLayers) state.next = &next;
    if (random() % 2 == 0) state.most = static_cast<std::uint32_t>(random() % 5);
    state.tier = random() % 2 == 0 ? Tier::kHost : Tier::kDevice;
  }
  Layer(const Layer&) = delete;
};

ExpertTransitions random_transitions(std::mt19937_64& random, std::uint32_t experts) {
  ExpertTransitions transitions(kLayers, experts);
  for (std::uint32_t token = 0; token < random() % 40; ++token) {
    const Ids here = {static_cast<std::uint16_t>(random() % experts)},
              next = {static_cast<std::uint16_t>(random() % experts)};
    transitions.add(static_cast<std::uint32_t>(random() % (kLayers - 1)), here, next);
  }
  return transitions;
}

Ids indices(const std::vector<PartRequest>& requests) {
  Ids all;
  for (const PartRequest& one : requests) all.push_back(one.id.index);
  return all;
}

TEST(EveryPrefetch, NamesExpertsOfTheNextLayerThatAreNotThere) {
  std::cout << "seed " << kSeed << '\n';
  std::map<std::string_view, std::size_t> named;
  for (const PrefetchPolicy& policy : prefetch_policies()) {
    std::mt19937_64 random(kSeed);
    const std::uint32_t experts = 9;
    const ExpertTransitions transitions = random_transitions(random, experts);
    const PrefetchConfig config{.seed = kSeed, .transitions = &transitions};
    const auto prefetch = policy.make(config), again = policy.make(config);
    EXPECT_EQ(prefetch->name(), policy.name);
    for (int round = 0; round < 300; ++round) {
      const Layer layer(random, experts);
      std::vector<PartRequest> out, same;
      prefetch->propose(layer.state, out);
      again->propose(layer.state, same);
      EXPECT_EQ(indices(out), indices(same));
      EXPECT_LE(out.size(), layer.state.most);
      if (layer.state.layer + 1 == kLayers) {
        EXPECT_TRUE(out.empty());
      }
      std::set<ExpertId> ids;
      for (const PartRequest& one : out) {
        EXPECT_EQ(one.id.layer, layer.state.layer + 1);
        EXPECT_LT(one.id.index, experts);
        EXPECT_TRUE(layer.held.parts(one.id).empty());
        EXPECT_EQ(one.tier, layer.state.tier);
        EXPECT_TRUE(ids.insert(one.id).second);
      }
      named[policy.name] += out.size();
    }
  }
  std::cout << named.size() << " prefetches\n";
  for (const auto& [name, count] : named) EXPECT_EQ(count > 100, name != "none") << name;
}

TEST(ExpertTransitions, CountsWhatFollowedWhat) {
  ExpertTransitions transitions(2, 3);
  EXPECT_EQ(transitions.share(0, 0, 0), 0);
  transitions.add(0, Ids{0, 1}, Ids{1, 2});
  transitions.add(0, Ids{0}, Ids{0});
  EXPECT_EQ(transitions.share(0, 0, 1), .5);
  EXPECT_EQ(transitions.share(0, 1, 1), 1);
  EXPECT_EQ(transitions.share(0, 1, 0), 0);
  EXPECT_EQ(transitions.share(0, 2, 0), .5);  // nobody chose 2: as all tokens
}

// Against counts in a map.
TEST(StatPrefetch, OrdersByWhatIsExpected) {
  std::cout << "seed " << kSeed << '\n';
  std::mt19937_64 random(kSeed);
  std::size_t named = 0;
  for (int round = 0; round < 400; ++round) {
    const auto experts = static_cast<std::uint32_t>(1 + random() % 9);
    ExpertTransitions transitions(kLayers, experts);
    std::map<std::tuple<std::uint32_t, int, int>, int> pairs;  // -1: any
    const auto tokens = random() % 30;
    for (std::uint64_t t = 0; t < tokens; ++t) {
      const auto layer = static_cast<std::uint32_t>(random() % (kLayers - 1));
      const auto draw = [&] {
        std::set<std::uint16_t> some;
        for (int i = 0; i < 2; ++i) some.insert(static_cast<std::uint16_t>(random() % experts));
        return Ids(some.begin(), some.end());
      };
      const Ids here = draw(), next = draw();
      transitions.add(layer, here, next);
      ++pairs[{layer, -1, -1}];
      for (const int to : next) ++pairs[{layer, -1, to}];
      for (const int from : here) {
        ++pairs[{layer, from, -1}];
        for (const int to : next) ++pairs[{layer, from, to}];
      }
    }
    const Layer layer(random, experts);
    std::vector<PartRequest> out;
    make_stat_prefetch({.transitions = &transitions})->propose(layer.state, out);
    std::vector<std::pair<double, std::uint16_t>> list;
    for (std::uint16_t e = 0; e < experts && layer.state.layer + 1 < kLayers; ++e) {
      double expected = 0;
      for (const Choice& choice : layer.routing.choices) {
        const int seen = pairs[{layer.state.layer, choice.expert, -1}];
        const int from = seen > 0 ? choice.expert : -1;
        const int all = pairs[{layer.state.layer, from, -1}];
        if (all > 0) expected += static_cast<double>(pairs[{layer.state.layer, from, e}]) / all;
      }
      const ExpertId id{static_cast<std::uint16_t>(layer.state.layer + 1), e};
      if (expected > 0 && layer.held.parts(id).empty()) list.emplace_back(-expected, e);
    }
    std::ranges::sort(list);
    list.resize(std::min<std::size_t>(list.size(), layer.state.most));
    Ids expected;
    for (const auto& [order, e] : list) expected.push_back(e);
    EXPECT_EQ(indices(out), expected) << "round " << round;
    named += expected.size();
  }
  EXPECT_GT(named, 200u);
}

TEST(StatPrefetch, MustKnowWhatFollowsWhat) { EXPECT_THROW(make_stat_prefetch({}), Error); }

TEST(RandomPrefetch, DrawsAllAlike) {
  std::cout << "seed " << kSeed << '\n';
  const auto prefetch = make_random_prefetch({.seed = kSeed});
  HeldParts held;
  held.set({1, 2}, Part::kFull);
  Routing routing;
  routing.choices = {{.expert = 0}, {.expert = 4}, {.expert = 4}};
  LayerState state{.layers = 2, .experts = 5};
  state.routing = &routing;
  state.residency = &held;
  std::vector<PartRequest> out;
  prefetch->propose(state, out);
  EXPECT_EQ(out.size(), 2u);  // as many as this layer used
  std::map<std::uint16_t, int> drawn;
  state.most = 1;
  constexpr int kRounds = 4000;
  for (int round = 0; round < kRounds; ++round) {
    out.clear();
    prefetch->propose(state, out);
    ASSERT_EQ(out.size(), 1u);
    ++drawn[out[0].id.index];
  }
  EXPECT_EQ(drawn.size(), 4u);
  // Each share has a standard deviation of .7 %.
  for (const auto& [e, count] : drawn) EXPECT_NEAR(count, kRounds / 4, kRounds * .035) << e;
}

}  // namespace
}  // namespace sluice::experts::prefetch_variants_test
