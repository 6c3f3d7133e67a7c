// Worlds decide as if each were alone: against deciders that are asked one world at a time.
#include "experts/worlds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <random>
#include <vector>

#include "experts/cache/cache_policies.h"
#include "experts/registry.h"
#include "experts/routing/router_config.h"

namespace sluice::experts::worlds_test {
namespace {

constexpr std::uint32_t kLayers = 3, kExperts = 8, kTopK = 2;
constexpr Bytes kEach = 10;

class SameSizes final : public ExpertSizes {
 public:
  ExpertBytes bytes(ExpertId) const override { return {.full = kEach}; }
};

// World i has room for 2 + 5 i experts, and replaces more of them than the one before it.
LayerPolicies world(std::size_t i, const ExpertSizes& sizes) {
  LayerPolicies policies;
  policies.router = find_router("smoe").make({.select = {.top_k = kTopK},
                                              .combine = {.renormalise = true},
                                              .smoe = {.alpha = .4 * static_cast<double>(i)}});
  CacheConfig config;
  config.keep = Part::kFull;
  const Bytes capacity = kEach * (2 + 5 * i);
  policies.residencies.push_back(std::make_unique<Residency>(make_cache("lru", config), sizes, capacity));
  return policies;
}

struct RandomScores {
  RandomScores(std::mt19937_64& random, std::uint32_t tokens) {
    std::normal_distribution<float> normal;
    for (std::uint32_t t = 0; t < tokens; ++t) {
      double sum = 0;
      for (std::uint32_t e = 0; e < kExperts; ++e) logits.push_back(normal(random));
      const std::span<const float> row = std::span(logits).last(kExperts);
      for (const float logit : row) sum += std::exp(logit);
      for (const float logit : row) scores.push_back(static_cast<float>(std::exp(logit) / sum));
    }
  }
  std::vector<float> logits, scores;
};

TEST(Worlds, DecideAsIfEachWereAlone) {
  constexpr std::size_t kWorlds = 3;
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  std::mt19937_64 random(seed);
  const SameSizes sizes;
  const SparseShape shape{.layers = kLayers, .top_k = kTopK};
  std::vector<LayerPolicies> policies;
  std::vector<std::unique_ptr<LayerDecider>> alone;
  for (std::size_t i = 0; i < kWorlds; ++i) {
    policies.push_back(world(i, sizes));
    alone.push_back(std::make_unique<LayerDecider>(world(i, sizes), shape));
  }
  Worlds worlds(std::move(policies), shape,
                [](const Admission& used) { return used.before.empty() ? kEach : 0; });
  std::vector<Bytes> read(kWorlds, 0);
  std::uint64_t apart = 0;  // tokens that do not take the same experts in all worlds

  for (std::uint32_t step = 0; step < 200; ++step) {
    const bool prompt = step % 50 == 0;
    const StepKind kind = prompt ? StepKind::kPrompt : StepKind::kDecode;
    const std::uint32_t tokens = prompt ? 6 : kWorlds;
    std::vector<SequenceSpan> spans;  // whoever computes has other ids
    for (std::uint32_t i = 0; i < (prompt ? 1 : kWorlds); ++i)
      spans.push_back({.sequence = 7 + i,
                       .first_token = i,
                       .tokens = prompt ? tokens : 1,
                       .position = step,
                       .kind = kind,
                       .first_of_forward = true});
    SequenceSpan one = spans[0];
    one.sequence = 1;
    worlds.begin_step(spans);
    for (const auto& decider : alone) decider->begin_step({&one, 1});
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
      const RandomScores values(random, tokens);
      const Routing& together = worlds.decide({.layer = layer,
                                               .experts = kExperts,
                                               .tokens = tokens,
                                               .logits = values.logits,
                                               .scores = values.scores,
                                               .spans = spans});
      EXPECT_EQ(together.begin.size(), prompt ? 1 : kWorlds + 1);
      bool same = true;
      for (std::uint32_t i = 0; i < kWorlds; ++i) {
        const std::size_t first = prompt ? 0 : std::size_t{i} * kExperts;
        const std::size_t count = std::size_t{one.tokens} * kExperts;
        alone[i]->route({.layer = layer,
                         .experts = kExperts,
                         .tokens = one.tokens,
                         .logits = std::span(values.logits).subspan(first, count),
                         .scores = std::span(values.scores).subspan(first, count),
                         .spans = {&one, 1}});
        const LayerDecision& decision = alone[i]->decide();
        if (prompt) continue;
        read[i] += kEach * decision.outcome->misses.size();
        const std::span<const Choice> mine = together.token(i), its = decision.routing.token(0);
        ASSERT_EQ(mine.size(), its.size());
        for (std::size_t c = 0; c < mine.size(); ++c) {
          EXPECT_EQ(mine[c].expert, its[c].expert);
          EXPECT_EQ(mine[c].weight, its[c].weight);
          same = same && mine[c].expert == together.token(0)[c].expert;
        }
      }
      apart += same ? 0 : 1;
    }
    worlds.end_step();
    for (const auto& decider : alone) decider->end_step();
  }
  for (std::size_t i = 0; i < kWorlds; ++i) {
    const WorldCounts counts = worlds.counts(i);
    EXPECT_EQ(counts.tokens, 196u);
    EXPECT_EQ(counts.places, 196u * kLayers);
    EXPECT_EQ(counts.mass, alone[i]->decode_changes().mass_lost);
    EXPECT_EQ(counts.bytes, read[i]);
    EXPECT_EQ(counts.low, 0);
  }
  EXPECT_GT(worlds.counts(2).mass, worlds.counts(1).mass);
  EXPECT_EQ(worlds.counts(0).mass, 0);
  EXPECT_GT(apart, 0u);
}

}  // namespace
}  // namespace sluice::experts::worlds_test
