#include "lab/machine/pipeline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string_view>

#include "base/error.h"
#include "experts/presets.h"
#include "experts/registry.h"
#include "lab/machine/layer_clock.h"
#include "lab/replay/made_up_trace.h"

namespace sluice::lab {
namespace {

using experts::ExpertId;
using experts::State;

const experts::Preset* preset_of(std::string_view name) { return &experts::find_preset(name); }

PipelineCosts small_costs() {
  PipelineCosts costs;
  costs.fetch = {.chunks = 2, .workers = 2, .u = 10, .v = 2, .c = 3};
  costs.tensors = 1;
  costs.run.measured = {{1, 2}, {2, 3}, {3, 4}, {4, 5}};
  costs.rest = 1;
  costs.bytes = {.full = 100, .sm = 50, .exp = 20};
  return costs;
}

LayerTime layer_time(const PipelineCosts& costs, std::vector<UsedExpert> used) {
  for (std::size_t i = 0; i < used.size(); ++i) used[i].id.index = static_cast<std::uint16_t>(i);
  experts::LayerPolicies policies;
  policies.residencies.emplace_back();  // nothing is decided
  policies.scheduler = experts::find_scheduler("zip-affinity").make();
  policies.costs = {.fetch = costs.fetch, .run = costs.run};
  experts::LayerDecider decider(std::move(policies), {.layers = 1});
  return LayerClock(costs, decider).time(used);
}

// One decode step for each set of experts, all in one layer, each for one token.
Requests decode_steps(const std::vector<std::vector<std::uint16_t>>& steps) {
  Requests requests;
  for (const std::vector<std::uint16_t>& step : steps) {
    std::vector<ExpertId> ids;
    for (const std::uint16_t e : step) ids.push_back({0, e});
    requests.list.add_event(ids);
    requests.tokens.resize(requests.list.accesses(), 1);
    requests.events.push_back({requests.steps++, 0, trace::TracePhase::kDecode, 1});
  }
  return requests;
}

TEST(LayerClock, AgreesWithTheVectorsOfTheSpecification) {
  const PipelineCosts costs = small_costs();  // by tokens: p = 2 3 4 5
  const LayerTime v1 = layer_time(costs, {{State::kM, 4}, {State::kC, 3}, {State::kS, 2}, {State::kE, 1}});
  EXPECT_DOUBLE_EQ(v1.makespan, 30);
  EXPECT_DOUBLE_EQ(v1.least, 28);
  EXPECT_DOUBLE_EQ(v1.compute, 14);
  EXPECT_DOUBLE_EQ(v1.disk, 16);  // reads end at 28; the last expert takes 2
  EXPECT_DOUBLE_EQ(v1.decode, 0);
  const LayerTime v3 = layer_time(costs, {{State::kM, 4}});
  EXPECT_DOUBLE_EQ(v3.makespan, 19);
  PipelineCosts slow = costs;
  slow.fetch.c = 12;
  const LayerTime v4 = layer_time(slow, {{State::kM, 4}, {State::kC, 3}, {State::kC, 2}, {State::kM, 1}});
  EXPECT_DOUBLE_EQ(v4.makespan, 51);
  EXPECT_DOUBLE_EQ(v4.compute + v4.disk + v4.decode, 51);
  EXPECT_GT(v4.decode, 10);
}

TEST(LayerClock, ExpertsInFullAreComputedFirst) {
  PipelineCosts costs = small_costs();
  EXPECT_DOUBLE_EQ(layer_time(costs, {}).makespan, 0);
  EXPECT_DOUBLE_EQ(layer_time(costs, {{State::kF, 1}, {State::kF, 4}}).makespan, 7);
  const LayerTime beside =
      layer_time(costs, {{State::kF, 4}, {State::kM, 4}});  // 5 runs while the other is read until 14
  EXPECT_DOUBLE_EQ(beside.makespan, 19);
  EXPECT_DOUBLE_EQ(beside.disk, 9);
  costs.run.measured = {{1, 20}};
  const LayerTime after = layer_time(costs, {{State::kF, 1}, {State::kM, 1}});
  EXPECT_DOUBLE_EQ(after.makespan, 40);
  EXPECT_DOUBLE_EQ(after.disk, 0);
}

TEST(PipelineCosts, ComputingIsAStraightLineBetweenWhatIsKnown) {
  PipelineCosts costs;
  EXPECT_EQ(costs.run.of(3), 0);
  costs.run.measured = {{1, 10}};
  EXPECT_EQ(costs.run.of(7), 10);
  costs.run.measured = {{1, 10}, {4, 16}, {8, 32}};
  for (const auto& [tokens, time] :
       {std::pair{1u, 10.0}, {2u, 12.0}, {4u, 16.0}, {6u, 24.0}, {8u, 32.0}, {16u, 64.0}})
    EXPECT_DOUBLE_EQ(costs.run.of(tokens), time) << tokens;
}

TEST(Pipeline, OneExpertOfMemoryByHand) {
  PipelineCosts costs = small_costs();
  costs.fetch.chunks = 0;  // stored whole
  costs.run.measured = {{1, 3}};
  const PipelineResult result = run_pipeline(decode_steps({{0}, {0}, {1}, {0}}), 1, 2, costs,
                                             {.preset = preset_of("auto"), .memory = 100});
  // Expert 0, used more often, stays when 1 comes.
  EXPECT_DOUBLE_EQ(result.decode.time, 14 + 4 + 14 + 4);
  EXPECT_DOUBLE_EQ(result.decode.disk, 20);
  EXPECT_DOUBLE_EQ(result.decode.compute, 12);
  EXPECT_DOUBLE_EQ(result.decode.rest, 4);
  EXPECT_EQ(result.decode.bytes, 200u);
  EXPECT_EQ(result.decode.hits, 2u);
  EXPECT_EQ(result.decode.found, (std::array<std::uint64_t, 5>{2, 0, 0, 0, 2}));
  EXPECT_DOUBLE_EQ(result.token_s(), 9);
  EXPECT_DOUBLE_EQ(result.bytes_per_token(), 50);
  EXPECT_EQ(result.first_token_s(), 0);
}

TEST(Pipeline, PoolsByHand) {
  // All counts are 1: rank 0 goes to C by its slot; expert 1 then has rank 1, which belongs to S.
  const PipelineCosts costs = small_costs();
  const PipelineResult result = run_pipeline(decode_steps({{0}, {0}, {1}, {1}}), 1, 2, costs,
                                             {.preset = preset_of("zipmoe"),
                                              .memory = 120,
                                              .pools = experts::PoolSlots{0, 1, 1, 0},
                                              .rules = {.delta = 0}});
  // M: io 14, p 2. C: two decodes in parallel, p 2. M again. Then S: two chunks end at 4, the last is decoded
  // at 7, p 2.
  EXPECT_DOUBLE_EQ(result.decode.time, (1 + 16) + (1 + 5) + (1 + 16) + (1 + 9));
  EXPECT_EQ(result.decode.found, (std::array<std::uint64_t, 5>{0, 1, 1, 0, 2}));
  EXPECT_EQ(result.decode.bytes, 70u + 0 + 70 + 20);
  EXPECT_DOUBLE_EQ(result.decode.decode, 3 + 3);
}

TEST(Pipeline, AcceleratesOwnEquation) {
  Requests requests;
  for (const trace::TracePhase phase : {trace::TracePhase::kPrefill, trace::TracePhase::kDecode})
    for (const std::uint16_t layer : {0, 1}) {
      requests.list.add_event(std::vector<ExpertId>{{layer, 0}, {layer, 1}});
      requests.events.push_back({phase == trace::TracePhase::kDecode, layer, phase, 1});
      requests.tokens.insert(requests.tokens.end(), {1, 1});
    }
  PipelineCosts costs = small_costs();
  costs.run.measured = {{1, 3}};
  const PipelineResult result =
      run_pipeline(requests, 2, 2, costs, {.preset = preset_of("z-accelerate"), .memory = 3 * 100 + 99});
  EXPECT_DOUBLE_EQ(result.prefill.time, 1 + 4 * (20 + 3));  // first uses
  EXPECT_EQ(result.prefill.bytes, 400u);
  EXPECT_DOUBLE_EQ(result.first_token_s(), 93);
  EXPECT_DOUBLE_EQ(result.decode.time, 1 + 3 * 3 + (20 + 3));  // the last one finds no room
  EXPECT_EQ(result.decode.bytes, 100u);
  EXPECT_EQ(result.decode.hits, 3u);
}

TEST(Pipeline, DeepspeedsOwnEquation) {
  Requests requests;
  for (int step = 0; step < 2; ++step)
    for (const std::uint16_t layer : {0, 1, 2}) {
      requests.list.add_event(std::vector<ExpertId>{{layer, 1}});
      requests.events.push_back({static_cast<std::uint64_t>(step), layer, trace::TracePhase::kDecode, 1});
      requests.tokens.push_back(1);
    }
  PipelineCosts costs = small_costs();
  costs.rest = 3;  // 1 a layer
  costs.run.measured = {{1, 3}};
  // Layers of 2 · 20 arrive at 40, 80, 120; each is computed before the next one arrives.
  PipelineResult result =
      run_pipeline(requests, 3, 2, costs, {.preset = preset_of("z-deepspeed"), .memory = 0});
  EXPECT_DOUBLE_EQ(result.decode.time, 2 * 123);
  EXPECT_EQ(result.decode.bytes, 2u * 3 * 2 * 100);
  // Computing is the limit: layer 0 ends at 140; layer 1 has arrived at 80, so it ends at 241; layer 2 may be
  // read once layer 0 is done.
  costs.run.measured = {{1, 100}};
  result = run_pipeline(requests, 3, 2, costs, {.preset = preset_of("z-deepspeed"), .memory = 1000});
  EXPECT_DOUBLE_EQ(result.decode.time, 2 * 342);
  EXPECT_DOUBLE_EQ(result.decode.disk, 2 * 39);
}

class PipelineProperties : public ::testing::TestWithParam<std::string_view> {
 protected:
  static constexpr std::uint32_t kLayers = 3, kExperts = 12;
  PipelineSettings settings(Bytes memory) const {
    PipelineSettings settings{.preset = preset_of(GetParam()), .memory = memory, .seed = 3};
    if (experts::find_preset(GetParam()).sharing != experts::PoolSharing::kNone) {
      const auto each = static_cast<std::uint32_t>(memory / kLayers / 240);  // an expert in every state
      settings.pools = experts::PoolSlots{each, each, each, each};
    }
    return settings;
  }
};

TEST_P(PipelineProperties, TimesAddUpAndNoneBeatsTheLowerBounds) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    MadeUpTrace trace(seed, 60);
    const Requests requests = read_requests(trace);
    PipelineCosts costs = small_costs();
    costs.tensors = 1 + seed % 3;
    costs.fetch.c = static_cast<double>(seed * seed);
    for (const Bytes memory : {0u, 500u, 1500u, 3600u}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " memory " + std::to_string(memory));
      const PipelineResult result = run_pipeline(requests, kLayers, kExperts, costs, settings(memory));
      EXPECT_EQ(result.prefill.steps, 6u);
      EXPECT_EQ(result.prompts, 6u);
      EXPECT_EQ(result.decode.tokens, 54u);
      EXPECT_EQ(result.prefill.accesses + result.decode.accesses, requests.list.accesses());
      for (const PipelineTimes* times : {&result.prefill, &result.decode}) {
        EXPECT_NEAR(times->time, times->rest + times->compute + times->disk + times->decode, 1e-6);
        EXPECT_GE(times->disk, -1e-9);
        EXPECT_GE(times->decode, -1e-9);
        EXPECT_GE(times->time, times->least - 1e-6);
      }
      const PipelineResult again = run_pipeline(requests, kLayers, kExperts, costs, settings(memory));
      EXPECT_EQ(again.decode.time, result.decode.time);
      EXPECT_EQ(again.prefill.time, result.prefill.time);
    }
  }
}

TEST_P(PipelineProperties, MoreMemoryNeverReadsMore) {
  if (GetParam() == "z-moe-infinity") return;  // its forecasts change with what it holds
  // More memory may read more under these (Belady's anomaly).
  if (GetParam() == "z-basic-fifo" || GetParam() == "z-basic-marking") return;
  // An expert that leaves F may keep no parts, and with odds experts leave F often: a larger F may read more.
  const bool never_more = GetParam() != "zipmoe-plus";
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    MadeUpTrace trace(seed, 150, 0);
    const Requests requests = read_requests(trace);
    Bytes before = ~Bytes{0};
    double none = 0, last = 0;
    for (Bytes memory = 900; memory <= 9000; memory += 900) {
      const PipelineResult result =
          run_pipeline(requests, kLayers, kExperts, small_costs(), settings(memory));
      if (never_more) {
        EXPECT_LE(result.decode.bytes, before) << "seed " << seed << " memory " << memory;
      }
      before = result.decode.bytes;
      (none == 0 ? none : last) = result.decode.time;
    }
    if (GetParam() == "z-deepspeed")
      EXPECT_EQ(last, none);  // for every budget
    else
      EXPECT_LT(last, none);
  }
}

// Compares with the replay that has no clock.
TEST_P(PipelineProperties, DecidesAsTheReplayWithoutAClock) {
  const experts::Preset& preset = experts::find_preset(GetParam());
  if (preset.whole_layers) return;  // it has no cache
  MadeUpTrace trace(11, 200);
  const Requests requests = read_requests(trace);
  const PipelineCosts costs = small_costs();
  trace::TraceSizes sizes(kLayers, kExperts);
  for (std::uint16_t layer = 0; layer < kLayers; ++layer)
    for (std::uint16_t e = 0; e < kExperts; ++e) sizes.set({layer, e}, costs.bytes, 70, 20);
  for (const Scope scope : {Scope::kLayer, Scope::kGlobal}) {
    PipelineSettings timed = settings(1500);
    timed.scope = scope;
    const PipelineResult pipeline = run_pipeline(requests, kLayers, kExperts, costs, timed);
    const ReplayResult replayed = replay(requests, kLayers, &sizes,
                                         {.cache = preset.cache,
                                          .scope = scope,
                                          .unit = CapacityUnit::kBytes,
                                          .capacity = scope == Scope::kLayer ? 500u : 1500u,
                                          .seed = 3,
                                          .pools = timed.pools});
    EXPECT_EQ(pipeline.prefill.hits + pipeline.decode.hits, replayed.total.hits);
    EXPECT_EQ(pipeline.decode.hits, replayed.decode.hits);
    // Synchronous: reads a store of whole experts, 100 bytes each instead of 50 + 20.
    EXPECT_EQ(pipeline.prefill.bytes + pipeline.decode.bytes,
              preset.synchronous ? *replayed.bytes_read / 70 * 100 : *replayed.bytes_read);
    EXPECT_EQ(pipeline.prefill.found[2] + pipeline.prefill.found[3] + pipeline.decode.found[2] +
                  pipeline.decode.found[3],
              replayed.partial);
    EXPECT_EQ(replayed.partial > 0, timed.pools.has_value());
  }
}

std::vector<std::string_view> preset_names() {
  std::vector<std::string_view> names;
  for (const experts::Preset& preset : experts::presets())
    if (!preset.sliced()) names.push_back(preset.name);  // for whole experts
  return names;
}

INSTANTIATE_TEST_SUITE_P(Presets, PipelineProperties, ::testing::ValuesIn(preset_names()),
                         [](const auto& param) {
                           std::string name;
                           for (const char c : param.param)
                             name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

TEST(Pipeline, SlotsOfFAloneAndRoomForAllMissFirstUsesOnly) {
  MadeUpTrace trace(5, 80);
  const Requests requests = read_requests(trace);
  const PipelineCosts costs = small_costs();
  const auto hits = [&](const PipelineSettings& settings) {
    const PipelineResult result = run_pipeline(requests, 3, 12, costs, settings);
    return result.prefill.hits + result.decode.hits;
  };
  const std::uint64_t pools =
      hits({.preset = preset_of("zipmoe"), .memory = 3600, .pools = experts::PoolSlots{12, 0, 0, 0}});
  EXPECT_EQ(pools, hits({.preset = preset_of("z-basic-lru"), .memory = 3600}));
  EXPECT_EQ(pools, requests.list.accesses() - 36);
}

TEST(Pipeline, WrongUseIsAnError) {
  const Requests requests = decode_steps({{0}});
  const PipelineCosts costs = small_costs();
  EXPECT_THROW(run_pipeline(requests, 1, 1, costs, {.preset = preset_of("zipmoe")}), Error);
  EXPECT_THROW(run_pipeline(requests, 1, 1, costs,
                            {.preset = preset_of("auto"), .pools = experts::PoolSlots{1, 0, 0, 0}}),
               Error);
  EXPECT_THROW(
      run_pipeline(requests, 1, 1, costs,
                   {.preset = preset_of("zipmoe"), .memory = 99, .pools = experts::PoolSlots{1, 0, 0, 0}}),
      Error);
  EXPECT_THROW(
      run_pipeline(requests, 1, 1, costs, {.preset = preset_of("auto"), .memory = 99}, [] { return true; }),
      Error);
}

}  // namespace
}  // namespace sluice::lab
