#include "experts/decision_log.h"

#include <gtest/gtest.h>

#include "experts/registry.h"
#include "experts/test_traces.h"

namespace sluice::experts {
namespace {

TEST(DecisionLog, SpellsOutHitsMissesAndWhatLeft) {
  EventOutcome outcome;
  outcome.hits = {{{2, 3}, Part::kFull, Part::kFull}, {{2, 9}, Part::kFull, Part::kSm | Part::kExp}};
  outcome.misses = {{{2, 4}, Part::kFull}, {{2, 5}, {}}, {{2, 6}, Part::kSm | Part::kExp, Part::kSm}};
  outcome.evicted = {{{0, 17}, Part::kFull}, {{1, 2}, Part::kExp}};
  outcome.reduced = {{0, 8}};
  std::string log;
  append_decision(log, 41, 2, outcome);
  append_decision(log, 42, 0, EventOutcome{});
  EXPECT_EQ(
      log,
      "41 2 hit 3,9=sm+exp>full miss 4=full,5=-,6=sm>sm+exp out 0/17=full,1/2=exp reduce 0/8=sm\n42 0\n");
  const Parts both = Part::kMsb | Part::kLsb;
  outcome.hits = {{{2, 3}, Part::kMsb, Part::kMsb, Part::kMsb, Part::kMsb}};
  outcome.misses = {{{2, 4}, both, Part::kMsb, both, both}, {{2, 5}, {}, {}, both, Part::kMsb}};
  outcome.evicted = {};
  outcome.reduced = {};
  log.clear();
  append_decision(log, 0, 2, outcome);
  EXPECT_EQ(log, "0 2 hit 3:low miss 4=msb>msb+lsb:high,5=-:low\n");
  EXPECT_EQ(decision_heading({.cache = "slice-lru", .scope = "global", .capacity = 7, .keep = both}),
            "# sluice decisions v1 cache=slice-lru scope=global capacity=7 keep=slices seed=0\n");
  EXPECT_EQ(decision_heading({.cache = "lru", .scope = "layer", .capacity = 7, .seed = 3}),
            "# sluice decisions v1 cache=lru scope=layer capacity=7 keep=full seed=3\n");
  EXPECT_EQ(decision_heading({.cache = "zip-pools",
                              .scope = "global",
                              .capacity = 90,
                              .pools = PoolSlots{1, 2, 0, 4},
                              .rules = {.delta = 3, .demotion = Demotion::kRoom, .half_life = 0.5}}),
            "# sluice decisions v1 cache=zip-pools scope=global capacity=90 keep=full seed=0 "
            "pools=1,2,0,4 delta=3 demote=room half_life=0.5\n");
  EXPECT_EQ(decision_ending(0x12ab), "# hash 00000000000012ab\n");
}

TEST(DecisionLog, SpellsOutWhatHappensOnADevice) {
  EventOutcome outcome;
  outcome.misses = {{{2, 4}, Part::kFull}};
  LayerDecision decision;
  decision.outcome = &outcome;
  std::string log;
  append_decision(log, 7, 2, decision);
  EXPECT_EQ(log, "7 2 miss 4=full\n");  // without a device nothing is added
  DevicePlan plan;
  plan.uses = {{.id = {2, 9}, .from = DeviceBytes::kSlot},
               {.id = {2, 1}, .from = DeviceBytes::kPrefetch},
               {.id = {2, 3}, .stays = true},
               {.id = {2, 4}}};
  plan.evicted = {{{2, 9}, Part::kFull}};
  plan.updates = {{{2, 8}}, {{2, 7}}};
  decision.device = &plan;
  log.clear();
  append_decision(log, 7, 2, decision);
  append_start(log, {});
  append_start(log, plan.updates);
  EXPECT_EQ(log,
            "7 2 miss 4=full device 9,1*,3+,4- drop 2/9 bring 2/8,2/7\n"
            "start 2/8,2/7\n");
  plan.uses[0].view = Part::kMsb;
  plan.uses[2].view = Part::kMsb | Part::kLsb;
  log.clear();
  append_decision(log, 7, 2, decision);
  EXPECT_EQ(log, "7 2 miss 4=full device 9:low,1*,3+:high,4- drop 2/9 bring 2/8,2/7\n");
  DecisionSetting setting{.cache = "lru", .scope = "layer", .capacity = 7};
  setting.device = {.cache = "workload-ema",
                    .placement = "greedy",
                    .scope = "layer",
                    .capacity = 5,
                    .slots = 2,
                    .profile = 0xab};
  EXPECT_EQ(
      decision_heading(setting),
      "# sluice decisions v1 cache=lru scope=layer capacity=7 keep=full seed=0 device_cache=workload-ema "
      "device_scope=layer device_capacity=5 placement=greedy slots=2 buffers=any "
      "profile=00000000000000ab\n");
  setting.device->slices = Part::kMsb;
  EXPECT_NE(decision_heading(setting).find(" device_slices=msb profile="), std::string::npos);
  setting.device->slices = {};
  setting.device->buffers = 2;
  setting.device->prefill = "device";
  setting.device->prefill_from = 32;
  EXPECT_NE(decision_heading(setting).find(" slots=2 buffers=2 prefill=device prefill_from=32 profile="),
            std::string::npos);
  ExpertCosts costs, other;
  other.device.row = 1;
  EXPECT_EQ(hash_of(costs), hash_of(ExpertCosts{}));
  EXPECT_NE(hash_of(costs), hash_of(other));
}

TEST(DecisionLog, HashesOfSeveralCachesDependOnTheirOrder) {
  const TestSizes sizes(20, TestSizes::Kind::kEqual, 1);
  const auto cache = [&](std::uint64_t seed) {
    auto residency = std::make_unique<Residency>(make_cache("lru", {}), sizes, 5);
    const RequestList trace = random_trace(20, 30, 4, seed);
    for (std::size_t e = 0; e < trace.events(); ++e) residency->on_event(trace.event(e));
    return residency;
  };
  std::vector<std::unique_ptr<Residency>> ab, ba, a;
  ab.push_back(cache(1));
  ab.push_back(cache(2));
  ba.push_back(cache(2));
  ba.push_back(cache(1));
  a.push_back(cache(1));
  EXPECT_NE(decision_hash(ab), decision_hash(ba));
  EXPECT_EQ(decision_hash(a), a[0]->decision_hash());
}

}  // namespace
}  // namespace sluice::experts
