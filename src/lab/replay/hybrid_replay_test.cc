// Replays with a device against the replay of one cache, and against times by hand.
#include "lab/replay/hybrid_replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>
#include <set>
#include <string>

#include "base/error.h"
#include "experts/device_presets.h"
#include "experts/registry.h"
#include "lab/replay/assumed_prediction.h"
#include "lab/replay/batches.h"
#include "lab/replay/made_up_trace.h"
#include "lab/replay/predicted_steps.h"
#include "lab/replay/replay.h"

namespace sluice::lab {
namespace {

constexpr std::uint64_t kSeed = 5, kSteps = 120;

RoutedSteps made_up(std::uint64_t prefill_every = 0) {
  MadeUpTrace trace(kSeed, kSteps, prefill_every);
  return read_routed_steps(trace);
}

experts::ExpertCosts costs() {
  return {.fetch = {},
          .run = {.fixed = 3, .per_token = 2},
          .device = {.run = {.fixed = 1},
                     .transfer = 8,
                     .shared = {.fixed = 2},
                     .gate = {.fixed = 1},
                     .sync = .5,
                     .policy = .25,
                     .launch = .125,
                     .row = .0625}};
}

// With logits by which the recorded experts are the best: one more each than the last.
RoutedSteps with_logits(RoutedSteps steps) {
  std::mt19937_64 random(kSeed);
  steps.logits = true;
  for (RoutedStep& step : steps.steps)
    for (RoutedLayer& layer : step.layers)
      for (std::uint32_t t = 0; t < layer.tokens(); ++t) {
        const std::size_t first = layer.logits.size();
        for (std::uint32_t e = 0; e < steps.experts; ++e)
          layer.logits.push_back(static_cast<float>(random() % 1000) * 1e-3f);
        for (std::uint32_t c = layer.begin[t]; c < layer.begin[t + 1]; ++c)
          layer.logits[first + layer.choices[c].expert] += 1;
      }
  return steps;
}

TEST(HybridReplay, AllOnTheDeviceIsTheReplayOfItsCache) {
  const RoutedSteps steps = made_up(10);
  for (const char* cache : {"lru", "fifo", "lfu", "none"})
    for (const std::uint32_t slots : {1u, 4u, 12u}) {
      SCOPED_TRACE(std::string(cache) + " of " + std::to_string(slots));
      HybridSettings settings{.placement = "device", .device_cache = cache, .slots = slots, .costs = costs()};
      const HybridResult found = replay_hybrid(steps, settings);
      MadeUpTrace trace(kSeed, kSteps, 10);
      const ReplayResult plain =
          replay(read_requests(trace), 3, nullptr, {.cache = cache, .capacity = slots});
      EXPECT_EQ(found.decode.counts.hits, plain.decode.hits);
      EXPECT_EQ(found.decode.counts.assigned, plain.decode.accesses);
      EXPECT_EQ(found.prefill.counts.hits + found.decode.counts.hits, plain.total.hits);
      EXPECT_EQ(found.decode.counts.active, found.decode.counts.assigned);
      EXPECT_EQ(found.decode.counts.loads + found.decode.counts.streamed, plain.decode.misses());
      EXPECT_EQ(found.prefill.steps, 12u);
      EXPECT_NEAR(found.prefill.link.loads + found.decode.link.loads,
                  8.0 * static_cast<double>(plain.total.misses()), 1e-6);
    }
}

TEST(HybridReplay, AllOnTheHostTakesTheSumOfItsExperts) {
  const RoutedSteps steps = made_up();
  const HybridResult found =
      replay_hybrid(steps, {.placement = "cpu", .device_cache = "none", .costs = costs()});
  // Each layer has one token of three experts: the host computes longer than the device.
  const double moe = .5 + .25 + .5 + 3 * (3 + 2) + 3 * .0625;
  const auto layers = static_cast<double>(kSteps * 3);
  EXPECT_NEAR(found.decode.counts.moe, layers * moe, 1e-6);
  EXPECT_NEAR(found.decode.seconds, layers * (moe + 1), 1e-6);
  EXPECT_EQ(found.decode.counts.host, layers * 15);
  EXPECT_EQ(found.decode.counts.assigned, 0u);
  EXPECT_EQ(found.decode.link.loads, 0);
}

TEST(HybridReplay, EveryPresetRunsAndRepeats) {
  MadeUpTrace trace(kSeed, 160, 10);  // `eam` has to see 128 steps
  RoutedSteps steps = with_logits(read_routed_steps(trace));
  assume_predictions(.7, kSeed, steps);
  const experts::ExpertTransitions transitions = count_transitions(steps);
  std::size_t ran = 0;
  for (const experts::DevicePreset& preset : experts::device_presets()) {
    SCOPED_TRACE(preset.name);
    EXPECT_FALSE(preset.device_cache.empty() || preset.placement.empty());
    EXPECT_EQ(&experts::find_device_preset(preset.name), &preset);
    HybridSettings settings{.router = preset.router,
                            .placement = preset.placement,
                            .prefill_placement = preset.prefill_placement,
                            .prefill_from = preset.prefill_from,
                            .device_cache = preset.device_cache,
                            .slots = 5,
                            .prefetch = preset.prefetch,
                            .prefetch_size = 2,
                            .transitions = &transitions,
                            .costs = costs()};
    settings.workload.popularity.assign(3, std::vector<double>(12, 1));
    std::string log, again;
    const HybridResult found = replay_hybrid(steps, settings, [&](std::string_view line) { log += line; });
    replay_hybrid(steps, settings, [&](std::string_view line) { again += line; });
    EXPECT_EQ(log, again);
    EXPECT_THAT(log, testing::HasSubstr("device_cache=" + std::string(settings.device_cache.name())));
    EXPECT_EQ(found.decode.tokens, steps.decode_tokens);
    EXPECT_GT(found.decode.seconds, 0);
    EXPECT_GE(found.decode.seconds, found.decode.counts.moe);
    EXPECT_LE(found.start, 15u);
    EXPECT_EQ(found.changes.substituted > 0, preset.router->lossy);
    const experts::PrefetchCounts& ahead = found.decode.counts.prefetch;
    EXPECT_EQ(ahead.sent > 0, preset.prefetch != "none");
    EXPECT_EQ(ahead.sent, ahead.used + ahead.kept + ahead.wasted);
    EXPECT_EQ(log.find(" device_prefetch=" + std::string(preset.prefetch.name())) != std::string::npos,
              preset.prefetch != "none");
    ++ran;
  }
  std::cout << ran << " presets\n";
  EXPECT_GE(ran, 15u);
}

// The experts of the trace differ in size. A slot holds any of them, so no more stay than there are slots,
// and decisions are those of experts that are all alike.
TEST(HybridReplay, ADeviceHoldsOneExpertASlotWhateverItsSize) {
  MadeUpTrace trace(kSeed, kSteps, 0);
  const trace::TraceSizes sizes = trace.header().sizes.value();
  const RoutedSteps steps = read_routed_steps(trace);
  for (const char* cache : {"lru", "fifo", "lfu", "workload-window-unconditional", "hybrimoe"})
    for (const std::uint32_t slots : {1u, 5u}) {
      SCOPED_TRACE(std::string(cache) + " of " + std::to_string(slots));
      std::set<experts::ExpertId> there;
      std::size_t most = 0;
      const auto watch = [&](const RoutedStep&, const experts::LayerDecision& decision,
                             const experts::DeviceDecider& device) {
        if (most == 0)
          for (const experts::DeviceUpdate& first : device.start()) there.insert(first.id);
        for (const experts::DeviceUse& use : decision.device->uses)
          if (use.stays) there.insert(use.id);
        for (const experts::Eviction& gone : decision.device->evicted) there.erase(gone.id);
        for (const experts::DeviceUpdate& update : decision.device->updates) there.insert(update.id);
        most = std::max(most, there.size());
      };
      HybridSettings settings{.placement = "device", .device_cache = cache, .slots = slots, .costs = costs()};
      const HybridResult alike = replay_hybrid(steps, settings);
      settings.sizes = &sizes;
      const HybridResult found = replay_hybrid(steps, settings, {}, {}, watch);
      EXPECT_LE(most, 3 * slots);
      EXPECT_GT(most, 2 * slots);
      EXPECT_EQ(found.decode.counts.hits, alike.decode.counts.hits);
    }
}

// The better the prediction, the less is waited for.
TEST(HybridReplay, PrefetchesThatAreRightSaveTime) {
  RoutedSteps steps = made_up();
  HybridSettings settings{
      .placement = "device", .device_cache = "none", .prefetch_size = 3, .costs = costs()};
  settings.costs.device.gate.fixed = 30;  // the link is idle meanwhile
  const HybridPhase none = replay_hybrid(steps, settings).decode;
  EXPECT_EQ(none.counts.prefetch.sent, 0u);
  EXPECT_EQ(none.link.prefetches, 0);
  EXPECT_EQ(none.predictions.predicted, 0u);
  settings.prefetch = "raw";
  double last = none.seconds * 1.01;  // what is wrong costs nothing here but the prediction
  for (const double right : {0.0, .5, 1.0}) {
    assume_predictions(right, kSeed, steps);
    const HybridPhase ahead = replay_hybrid(steps, settings).decode;
    const experts::PrefetchCounts& counts = ahead.counts.prefetch;
    EXPECT_EQ(counts.sent, kSteps * 2 * 3) << "of each layer but the first all three experts";
    EXPECT_NEAR(static_cast<double>(counts.used) / static_cast<double>(counts.sent), right, .08);
    // One token chooses three experts: each of them is of the top three.
    const experts::PredictionCounts& predictions = ahead.predictions;
    EXPECT_EQ(predictions.predicted, counts.sent);
    EXPECT_EQ(predictions.wanted, counts.sent);
    EXPECT_EQ(predictions.active, counts.used);
    EXPECT_EQ(predictions.top, counts.used);
    EXPECT_LT(ahead.seconds, last) << right;
    last = ahead.seconds;
  }
  EXPECT_LT(last, .9 * none.seconds);
}

// A prediction that is not used costs its time on the device.
TEST(HybridReplay, APredictionIsOnTheClock) {
  RoutedSteps steps = made_up();
  assume_predictions(1, kSeed, steps);
  HybridSettings settings{
      .placement = "device", .device_cache = "none", .prefetch = "raw", .prefetch_size = 0, .costs = costs()};
  settings.costs.device.transfer = 1e-3;  // the device is what is waited for
  const double free = replay_hybrid(steps, settings).decode.seconds;
  settings.costs.device.predict = 3;
  settings.costs.device.stream_switch = .5;
  EXPECT_NEAR(replay_hybrid(steps, settings).decode.seconds - free, 4.0 * kSteps * 2,
              1e-6);  // not of the last
}

TEST(HybridReplay, SmoeChoosesByTheRecordedLogits) {
  const RoutedSteps steps = with_logits(made_up(10));
  HybridSettings settings{
      .placement = "device", .device_cache = "score-window", .slots = 4, .costs = costs()};
  const auto replayed = [&](std::string& log) {
    return replay_hybrid(steps, settings, [&](std::string_view line) { log += line; });
  };
  std::string recorded, none, all;
  const HybridResult exact = replayed(recorded);
  EXPECT_EQ(exact.changes.substituted, 0u);
  EXPECT_EQ(exact.decode.own.active, exact.decode.counts.active);
  EXPECT_EQ(exact.decode.own.resident, exact.decode.counts.resident);
  settings.router = "smoe";
  settings.smoe.alpha = 0;
  EXPECT_EQ(replayed(none).changes.substituted, 0u);
  EXPECT_EQ(none, recorded);
  settings.smoe.alpha = 1;
  const HybridResult smoe = replayed(all);
  EXPECT_EQ(smoe.recorded_differs, 0u);
  EXPECT_EQ(smoe.changes.tokens, exact.changes.tokens);
  EXPECT_EQ(smoe.decode_changes.substituted, smoe.changes.substituted) << "prompts are routed exactly";
  EXPECT_GT(smoe.changes.substituted, kSteps / 2);
  EXPECT_GT(smoe.changes.mass_lost, 0);
  EXPECT_GT(smoe.decode.counts.a_hit(), exact.decode.counts.a_hit() + .1);
  EXPECT_EQ(smoe.decode.own.active, exact.decode.own.active);
  EXPECT_LT(smoe.decode.own.resident, smoe.decode.counts.resident);
  EXPECT_LT(smoe.decode.seconds, exact.decode.seconds);
}

// Each rung of SMoE's ladder finds more on the device than the one before.
TEST(HybridReplay, TheRungsOfSmoeFindMoreAndMore) {
  const RoutedSteps steps = with_logits(made_up(10));
  double last = 0;
  for (const char* name : {"s-base", "s-ce", "s-er"}) {  // s-pre needs predictions
    const experts::DevicePreset& preset = experts::find_device_preset(name);
    const HybridResult found = replay_hybrid(steps, {.router = preset.router,
                                                     .placement = preset.placement,
                                                     .device_cache = preset.device_cache,
                                                     .slots = 4,
                                                     .costs = costs()});
    EXPECT_EQ(found.decode.counts.assigned, found.decode.counts.active) << "what is missing is copied there";
    EXPECT_GT(found.decode.counts.a_hit(), last) << name;
    last = found.decode.counts.a_hit();
    EXPECT_EQ(found.decode.counts.loads == 0, preset.device_cache == "static-random") << name;
  }
}

// A model that limits its selection records other experts than the best ones.
TEST(HybridReplay, SmoeCountsPromptsThatWereChosenOtherwise) {
  RoutedSteps steps = with_logits(made_up(10));
  HybridSettings settings{.router = "smoe", .device_cache = "lru", .slots = 4, .costs = costs()};
  for (RoutedStep& step : steps.steps) std::ranges::reverse(step.layers[1].logits);
  const HybridResult found = replay_hybrid(steps, settings);
  EXPECT_GT(found.recorded_differs, 40u);  // 48 tokens of prompts, in one layer
  EXPECT_LE(found.recorded_differs, 48u);
  settings.router = "exact";
  EXPECT_EQ(replay_hybrid(steps, settings).recorded_differs, 0u);
}

TEST(HybridReplay, AFullDeviceIsFasterThanTheHostAndTheSplitThanBoth) {
  const RoutedSteps steps = made_up();
  const auto seconds = [&](const char* placement, const char* cache, std::uint32_t slots) {
    return replay_hybrid(steps,
                         {.placement = placement, .device_cache = cache, .slots = slots, .costs = costs()})
        .decode.seconds;
  };
  EXPECT_LT(seconds("device", "workload-ema", 12), seconds("cpu", "none", 0));
  EXPECT_LT(seconds("ratio-prefix", "workload-ema", 6), seconds("cpu", "none", 0));
  EXPECT_LT(seconds("ratio-prefix", "workload-ema", 6), seconds("device", "workload-ema", 6));
}

TEST(HybridReplay, RefusesWhatCannotBe) {
  const RoutedSteps steps = made_up();
  const auto refused = [&](const char* placement, const char* cache) {
    EXPECT_THROW(
        replay_hybrid(steps, {.placement = placement, .device_cache = cache, .slots = 2, .costs = costs()}),
        Error);
  };
  refused("greedy", "belady");
  refused("greedy", "zip-pools");
  refused("greedy", "slice-lru");
  refused("greedy", "static-popular");  // nothing says what is popular
  refused("fastest", "lru");
  EXPECT_THAT([&] { replay_hybrid(steps, {.router = "smoe", .device_cache = "lru", .costs = costs()}); },
              testing::ThrowsMessage<Error>(
                  testing::AllOf(testing::HasSubstr("--router"), testing::HasSubstr("sluice trace"))));
  for (const char* cache : {"static-popular", "static-layers"})  // the host begins empty
    EXPECT_THROW(replay_hybrid(steps, {.host = {.cache = cache},
                                       .placement = "cpu",
                                       .device_cache = "lru",
                                       .slots = 2,
                                       .costs = costs()}),
                 Error)
        << cache;
  const auto ahead = [&](const char* prefetch) {
    EXPECT_THROW(replay_hybrid(steps, {.prefetch = prefetch, .costs = costs()}), Error) << prefetch;
  };
  for (const char* prefetch : {"raw", "dali-residual", "stream", "stat", "farthest"}) ahead(prefetch);
}

}  // namespace
}  // namespace sluice::lab
