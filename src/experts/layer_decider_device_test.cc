// What LayerDecider asks a placement, and what it decides where there is a device beside the host, by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experts/cache/cache_policies.h"
#include "experts/decider_setting_testing.h"
#include "experts/layer_decider.h"
#include "experts/plain_decider_testing.h"
#include "experts/registry.h"

namespace sluice::experts {
namespace {

// Remembers what it saw, and sends experts with more than one token to the device.
class WatchingPlacement final : public Placement {
 public:
  struct Seen {
    StepKind phase = StepKind::kPrompt;
    std::vector<double> t_host, t_device, transfer;
    std::vector<std::uint8_t> on_device;
    std::optional<std::uint32_t> slots;
  };
  explicit WatchingPlacement(Seen& seen) : seen_(seen) {}
  void assign(const Demand& demand, const PlacementCosts& costs, Assignment& out) override {
    seen_ = {.phase = costs.phase,
             .t_host = {costs.t_host.begin(), costs.t_host.end()},
             .t_device = {costs.t_device.begin(), costs.t_device.end()},
             .transfer = {costs.transfer.begin(), costs.transfer.end()},
             .on_device = {costs.on_device.begin(), costs.on_device.end()},
             .slots = costs.slots};
    out.unit.clear();
    for (const std::uint32_t tokens : demand.tokens)
      out.unit.push_back(tokens > 1 ? Unit::kDevice : Unit::kHost);
  }
  std::string name() const override { return "watching"; }

 private:
  Seen& seen_;
};

TEST(LayerDecider, PlacementSeesCostsResidencyAndPhaseAndTheDeviceDecidesAboutItsExperts) {
  const LayerSizes sizes(Family::kRaw);
  WatchingPlacement::Seen seen;
  LayerPolicies policies;
  policies.placement = std::make_unique<WatchingPlacement>(seen);
  policies.residencies.push_back(std::make_unique<Residency>(make_cache("none", {}), sizes, 0));
  policies.device.emplace().residencies.push_back(
      std::make_unique<Residency>(make_cache("lru", {}), sizes, 1000, Tier::kDevice));
  policies.device->slots = 7;
  policies.costs.run = {.fixed = 1, .per_token = 10};
  policies.costs.device.run = {.fixed = 2, .per_token = .5};
  policies.costs.device.transfer = 30;
  LayerDecider decider(std::move(policies), {1, 2});
  const ExpertId ids[] = {{0, 1}, {0, 4}, {0, 6}};
  const std::uint32_t tokens[] = {3, 1, 2};
  const SequenceSpan span{.tokens = 1, .kind = StepKind::kDecode};
  decider.begin_step({&span, 1});
  decider.follow(0, {ids, tokens});
  const LayerDecision& first = decider.decide();
  EXPECT_EQ(seen.phase, StepKind::kDecode);
  EXPECT_THAT(seen.t_host, testing::ElementsAre(31, 11, 21));
  EXPECT_THAT(seen.t_device, testing::ElementsAre(3.5, 2.5, 3));
  EXPECT_THAT(seen.transfer, testing::ElementsAre(30, 30, 30));
  EXPECT_THAT(seen.on_device, testing::ElementsAre(0, 0, 0));
  EXPECT_EQ(seen.slots, 7u);
  EXPECT_THAT(first.assignment.unit, testing::ElementsAre(Unit::kDevice, Unit::kHost, Unit::kDevice));
  ASSERT_NE(first.device, nullptr);
  EXPECT_EQ(first.outcome->tier, Tier::kHost);
  // Both are copied, the longer computation first, and stay; the host must have all three.
  ASSERT_EQ(first.device->uses.size(), 2u);
  EXPECT_EQ(first.device->uses[0].id, ids[0]);
  EXPECT_EQ(first.device->uses[1].id, ids[2]);
  for (const DeviceUse& use : first.device->uses) {
    EXPECT_EQ(use.from, DeviceBytes::kLink);
    EXPECT_TRUE(use.stays);
    EXPECT_EQ(use.remaining, 30);
  }
  EXPECT_EQ(first.outcome->misses.size(), 3u);
  decider.follow(0, {ids, tokens});
  const LayerDecision& second = decider.decide();
  EXPECT_THAT(seen.transfer, testing::ElementsAre(0, 30, 0));
  EXPECT_THAT(seen.on_device, testing::ElementsAre(1, 0, 1));
  EXPECT_EQ(second.device->uses.size(), 2u);
  EXPECT_EQ(second.device->uses[0].from, DeviceBytes::kSlot);
  // What the device has needs nothing of the host.
  ASSERT_EQ(second.outcome->misses.size(), 1u);
  EXPECT_EQ(second.outcome->misses[0].id, ids[1]);
  EXPECT_EQ(second.fetch_demand.experts.size(), 1u);
}

// Copies fail: what the device has by its residency, and not in truth, is fetched to the host as well.
TEST(LayerDecider, WhatADeviceHasLostIsFetchedToTheHost) {
  const LayerSizes sizes(Family::kRaw);
  WatchingPlacement::Seen seen;
  LayerPolicies policies;
  policies.placement = std::make_unique<WatchingPlacement>(seen);
  policies.residencies.push_back(std::make_unique<Residency>(make_cache("lru", {}), sizes, 16));
  policies.device.emplace().residencies.push_back(
      std::make_unique<Residency>(make_cache("lru", {}), sizes, 1000, Tier::kDevice));
  LayerDecider decider(std::move(policies), {1, 2});
  const ExpertId ids[] = {{0, 1}, {0, 3}, {0, 4}, {0, 6}};
  const std::uint32_t tokens[] = {3, 2, 1, 2};
  const SequenceSpan span{.tokens = 1, .kind = StepKind::kDecode};
  const auto decide = [&]() -> const LayerDecision& {
    decider.begin_step({&span, 1});
    decider.follow(0, {ids, tokens});
    return decider.decide();
  };
  decide();
  const LayerDecision& decision = decide();
  ASSERT_EQ(decision.device->uses.size(), 3u);
  EXPECT_THAT(decision.fetch_demand.experts, testing::ElementsAre(ids[2]));
  const std::string outcome = text_of(*decision.outcome);
  decider.fetch_lost({});
  EXPECT_EQ(decision.fetch, decision.outcome);
  // In the order of the device's plan, as the engine finds them.
  const ExpertId lost[] = {ids[3], ids[0]};
  decider.fetch_lost(lost);
  EXPECT_THAT(decision.fetch_demand.experts, testing::ElementsAre(ids[0], ids[2], ids[3]));
  EXPECT_THAT(decision.fetch_demand.tokens, testing::ElementsAre(3u, 1u, 2u));
  std::vector<ExpertId> missed;
  const Residency& host = decider.policies().residency(0);
  for (const Admission& one : decision.fetch->misses) {
    missed.push_back(one.id);
    EXPECT_TRUE(one.id == ids[2] || one.before == host.parts(one.id));
  }
  for (const Admission& one : decision.fetch->hits) missed.push_back(one.id);
  EXPECT_THAT(missed, testing::UnorderedElementsAre(ids[0], ids[2], ids[3]));
  EXPECT_TRUE(std::ranges::is_sorted(decision.fetch->misses, {}, &Admission::id));
  EXPECT_EQ(text_of(*decision.outcome), outcome);  // residency does not change
  const LayerDecision& next = decide();            // … and the next event knows nothing of it
  EXPECT_EQ(next.fetch, next.outcome);
  EXPECT_THAT(next.fetch_demand.experts, testing::ElementsAre(ids[2]));
}

TEST(LayerDeciderDeath, OnlyWhatTheDeviceWasToHaveCanBeLost) {
  const LayerSizes sizes(Family::kRaw);
  LayerPolicies policies;
  policies.residencies.push_back(std::make_unique<Residency>(make_cache("none", {}), sizes, 0));
  LayerDecider decider(std::move(policies), {1, 1});
  const ExpertId ids[] = {{0, 2}};
  const std::uint32_t tokens[] = {1};
  const SequenceSpan span{.tokens = 1};
  decider.begin_step({&span, 1});
  decider.follow(0, {ids, tokens});
  decider.decide();
  EXPECT_DEATH(decider.fetch_lost(ids), "no device was to have");
}

// What is ahead goes in two hops: to the host what neither tier has, to the device what the host has.
TEST(LayerDecider, PrefetchesOfBothTiersDivideWhatIsMissing) {
  constexpr std::uint32_t kExperts = 6;
  const LayerSizes sizes(Family::kRaw);
  for (const bool host_may_lack : {true, false}) {
    SCOPED_TRACE(host_may_lack);
    WatchingPlacement::Seen seen;
    LayerPolicies policies;
    policies.placement = std::make_unique<WatchingPlacement>(seen);
    policies.residencies.push_back(std::make_unique<Residency>(make_cache("lru", {}), sizes, Bytes{1} << 30));
    policies.prefetch = find_prefetch("all-next").make({});
    DevicePolicies& device = policies.device.emplace();
    device.residencies.push_back(
        std::make_unique<Residency>(make_cache("lru", {}), sizes, Bytes{1} << 30, Tier::kDevice));
    device.prefetch = find_prefetch("all-next").make({});
    device.host_may_lack = host_may_lack;
    LayerDecider decider(std::move(policies), {2, 2});
    const std::vector<float> scores(2 * kExperts, 1.f / kExperts);
    const SequenceSpan span{.tokens = 2, .kind = StepKind::kDecode};
    const auto event = [&](std::uint32_t layer, const std::vector<std::uint16_t>& chosen) {
      std::vector<Choice> choices;  // two of each token
      for (const std::uint16_t expert : chosen) choices.push_back({.expert = expert, .weight = .5f});
      decider.begin_step({&span, 1});
      const std::uint32_t begin[] = {0, 2, 4};
      decider.follow(
          {.layer = layer, .experts = kExperts, .tokens = 2, .scores = scores, .spans = {&span, 1}}, choices,
          begin);
      decider.decide();
    };
    const auto ids = [](std::span<const PartRequest> requests, Tier tier) {
      std::vector<int> found;
      for (const PartRequest& one : requests) {
        EXPECT_EQ(one.id.layer, 1);
        EXPECT_EQ(one.tier, tier);
        found.push_back(one.id.index);
      }
      return found;
    };
    event(1, {1, 4, 1, 5});  // 1 on both tiers, 4 and 5 on the host
    event(0, {0, 1, 0, 1});
    ASSERT_TRUE(decider.prefetches_to_device());
    EXPECT_THAT(ids(decider.look_ahead_on_device(nullptr), Tier::kDevice),
                testing::UnorderedElementsAreArray(host_may_lack ? std::vector<int>{4, 5}
                                                                 : std::vector<int>{0, 2, 3, 4, 5}));
    EXPECT_THAT(ids(decider.look_ahead(nullptr), Tier::kHost), testing::UnorderedElementsAre(0, 2, 3));
  }
}

// The event behind one of an encoder's layer is that layer's next chunk, so nothing is read ahead there.
TEST(LayerDecider, LayersOfAnEncoderPredictNothing) {
  const LayerSizes sizes(Family::kRaw);
  WatchingPlacement::Seen seen;
  LayerPolicies policies;
  policies.placement = std::make_unique<WatchingPlacement>(seen);
  policies.residencies.push_back(std::make_unique<Residency>(make_cache("lru", {}), sizes, Bytes{1} << 30));
  policies.prefetch = find_prefetch("stream").make({});
  DevicePolicies& device = policies.device.emplace();
  device.residencies.push_back(
      std::make_unique<Residency>(make_cache("lru", {}), sizes, Bytes{1} << 30, Tier::kDevice));
  device.prefetch = find_prefetch("stream").make({});
  LayerDecider decider(std::move(policies), {.layers = 4, .top_k = 1, .encoder_layers = 2});
  const SequenceSpan span{.tokens = 2, .kind = StepKind::kPrompt};
  decider.begin_step({&span, 1});
  const ExpertId ids[] = {{0, 1}};
  const std::uint32_t tokens[] = {2};
  for (const std::uint32_t layer : {0u, 0u, 1u, 2u, 3u}) {
    SCOPED_TRACE(layer);
    decider.follow(layer, {ids, tokens});
    decider.decide();
    const PredictorKind expected = layer == 2 ? PredictorKind::kStream : PredictorKind::kNone;
    EXPECT_EQ(decider.predictor(), expected);
    EXPECT_EQ(decider.device_predictor(), expected);
  }
  decider.end_step();
  EXPECT_EQ(decider.device()->counts(StepKind::kPrompt).prefetch.asked, 1u);
}

TEST(LayerDecider, WithoutADevicePlacementSeesHostTimesAlone) {
  const LayerSizes sizes(Family::kRaw);
  WatchingPlacement::Seen seen;
  LayerPolicies policies;
  policies.placement = std::make_unique<WatchingPlacement>(seen);
  policies.residencies.push_back(std::make_unique<Residency>(make_cache("none", {}), sizes, 0));
  policies.costs.run = {.fixed = 1};
  LayerDecider decider(std::move(policies), {1, 1});
  const ExpertId ids[] = {{0, 2}};
  const std::uint32_t tokens[] = {1};
  const SequenceSpan span{.tokens = 1, .kind = StepKind::kPrompt};
  decider.begin_step({&span, 1});
  decider.follow(0, {ids, tokens});
  EXPECT_EQ(decider.decide().device, nullptr);
  EXPECT_EQ(seen.phase, StepKind::kPrompt);
  EXPECT_THAT(seen.t_host, testing::ElementsAre(1));
  EXPECT_TRUE(seen.t_device.empty() && seen.transfer.empty() && seen.on_device.empty() && !seen.slots);
}

}  // namespace
}  // namespace sluice::experts
