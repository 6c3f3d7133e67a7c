// Decisions about a device, for every placement with every cache: the plans against a plain model of what is
// where, and the modelled clock by hand.
#include "experts/device_decider.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "experts/core/equal_sizes.h"
#include "experts/decision_log.h"
#include "experts/device_presets.h"
#include "experts/layer_decider.h"
#include "experts/prefetch/expert_transitions.h"
#include "experts/registry.h"

namespace sluice::experts {
namespace {

constexpr Bytes kBytes = 10;
const EqualSizes kSizes({.full = kBytes});

struct Shape {
  std::uint32_t layers = 3, experts = 12, top_k = 3;
};

// The most used layers first, so that there are counts for static-popular.
CacheConfig config_of(const Shape& shape, std::uint32_t first, std::uint32_t layers, std::uint64_t seed) {
  CacheConfig config{.seed = seed};
  config.layers = {first, layers, shape.experts};
  config.workload.window = {.steps = 2, .swaps = 3};
  config.workload.top_k = shape.top_k;
  config.workload.admit = Admit::kIdle;
  config.workload.popularity.assign(shape.layers, {});
  for (auto& layer : config.workload.popularity)
    for (std::uint32_t e = 0; e < shape.experts; ++e) layer.push_back(e);
  return config;
}

struct Policies {
  const PlacementPolicy* placement = nullptr;
  const CachePolicy* cache = nullptr;
  const PrefetchPolicy* prefetch = nullptr;  // null: none
  std::uint32_t prefetch_size = 0;
  std::uint32_t experts_a_layer = 4;  // slots of the cache
  bool by_layer = true;
  std::optional<std::uint32_t> slots = {};
  std::uint64_t seed = 1;
  // With tiers that exclude each other: the host's cache, and how many experts of each layer it holds.
  const CachePolicy* host = nullptr;
  std::uint32_t host_experts = 0;
  // What else it sets: how prompts are placed, and whether prefetches are guarded.
  const DevicePreset* preset = nullptr;
};

// Each expert is followed by the next one.
const ExpertTransitions& transitions_of(const Shape& shape) {
  static const ExpertTransitions all = [&] {
    ExpertTransitions transitions(shape.layers, shape.experts);
    for (std::uint32_t layer = 0; layer + 1 < shape.layers; ++layer)
      for (std::uint16_t e = 0; e < shape.experts; ++e) {
        const std::uint16_t here[] = {e}, next[] = {static_cast<std::uint16_t>((e + 1) % shape.experts)};
        transitions.add(layer, here, next);
      }
    return transitions;
  }();
  return all;
}

LayerPolicies policies_of(const Policies& setup, const Shape& shape) {
  LayerPolicies policies;
  const std::uint32_t hosts = setup.host != nullptr && setup.seed % 2 == 0 ? shape.layers : 1;
  for (std::uint32_t i = 0; i < hosts; ++i)
    policies.residencies.push_back(std::make_unique<Residency>(
        make_cache(setup.host != nullptr ? setup.host->name : "lru", {.seed = setup.seed}), kSizes,
        kBytes * (shape.layers / hosts) * (setup.host != nullptr ? setup.host_experts : shape.experts)));
  policies.placement = setup.placement->make();
  policies.costs.run = {.fixed = 1, .per_token = 2};
  policies.costs.device = {.run = {.fixed = .5, .per_token = .25},
                           .transfer = 6,
                           .shared = {.fixed = .5},
                           .gate = {.fixed = 1},
                           .sync = .125,
                           .launch = .125,
                           .predict = .25,
                           .stream_switch = .125,
                           .row = .125};
  DevicePolicies& device = policies.device.emplace();
  device.slots = setup.slots;
  device.host_may_lack = setup.host != nullptr;
  if (setup.host != nullptr) device.tiers = Tiers::kExclusive;
  if (setup.prefetch != nullptr)
    device.prefetch = setup.prefetch->make({.seed = setup.seed, .transitions = &transitions_of(shape)});
  device.prefetch_size = setup.prefetch_size;
  if (setup.preset != nullptr) {
    const PrefillPlacement prefill = prefill_placement(setup.preset, nullptr, nullptr);
    if (prefill.policy != nullptr) device.prefill_placement = prefill.policy->make();
    device.prefill_from = std::min(prefill.from, 3u);  // prompts here are short
    device.guards_prefetch = guards_prefetch(setup.preset);
  }
  const std::uint32_t caches = setup.by_layer ? shape.layers : 1;
  for (std::uint32_t i = 0; i < caches; ++i) {
    const CacheConfig config = config_of(shape, i, shape.layers / caches, setup.seed);
    device.residencies.push_back(
        std::make_unique<Residency>(make_cache(setup.cache->name, config), kSizes,
                                    kBytes * setup.experts_a_layer * shape.layers / caches, Tier::kDevice));
  }
  return policies;
}

// Tokens that choose skewed experts.
struct Event {
  std::vector<Choice> choices;
  std::vector<std::uint32_t> begin{0};
  std::vector<float> scores;
  SequenceSpan span;
  ScoresView view;

  Event(std::mt19937_64& random, std::uint32_t layer, const Shape& shape, std::uint32_t tokens,
        StepKind kind) {
    for (std::uint32_t t = 0; t < tokens; ++t) {
      std::set<std::uint16_t> chosen;
      while (chosen.size() < shape.top_k)
        chosen.insert(
            static_cast<std::uint16_t>(std::min(random() % shape.experts, random() % shape.experts)));
      for (const std::uint16_t e : chosen) choices.push_back({.expert = e});
      begin.push_back(static_cast<std::uint32_t>(choices.size()));
      for (std::uint32_t e = 0; e < shape.experts; ++e)
        scores.push_back(static_cast<float>(random() % 64) / 64);
    }
    span = {.tokens = tokens, .kind = kind};
    view = {.layer = layer,
            .experts = shape.experts,
            .tokens = tokens,
            .logits = scores,
            .scores = scores,
            .spans = {&span, 1}};
  }
  Event(const Event&) = delete;
};

struct Met {
  std::uint64_t events = 0, slots = 0, loads = 0, streams = 0, updates = 0, under_way = 0, host = 0;
  PrefetchCounts prefetch;
  std::uint64_t given = 0, dropped = 0, adopted = 0, alone = 0, in_both = 0;
};

// Follows what is in the slots by the plans alone.
class Model {
 public:
  Model(const Policies& setup, const Shape& shape, const DeviceDecider& decider)
      : setup_(setup), shape_(shape) {
    for (const DeviceUpdate& one : decider.start()) EXPECT_TRUE(there_.insert(one.id).second);
    check_room();
  }

  void check(const LayerDecision& decision, Met& met) {
    ASSERT_NE(decision.device, nullptr);
    const DevicePlan& plan = *decision.device;
    ASSERT_EQ(decision.assignment.unit.size(), decision.experts.size());
    std::map<ExpertId, const DeviceUse*> uses;
    for (const DeviceUse& use : plan.uses) EXPECT_TRUE(uses.emplace(use.id, &use).second);
    std::uint32_t need_slots = 0;
    std::vector<ExpertId> host;
    for (std::size_t i = 0; i < decision.experts.size(); ++i) {
      const ExpertId id = decision.experts[i];
      const bool on_device = decision.assignment.unit[i] == Unit::kDevice;
      ASSERT_EQ(uses.contains(id), on_device);
      if (!on_device) {
        host.push_back(id);
        ++met.host;
        continue;
      }
      const DeviceUse& use = *uses[id];
      EXPECT_EQ(use.tokens, decision.tokens[i]);
      EXPECT_EQ(use.from, where_is(id));
      if (use.from == DeviceBytes::kLink) {
        EXPECT_EQ(use.remaining, 6);
        host.push_back(id);
        ++need_slots;
        ++(use.stays ? met.loads : met.streams);
      } else if (use.from == DeviceBytes::kPrefetch) {
        EXPECT_LE(use.remaining, 6);
        ++met.prefetch.used;
        met.prefetch.late += use.remaining > 0 ? 1 : 0;
        sent_.erase(id);
      } else {
        EXPECT_LE(use.remaining, 6);
        met.under_way += use.remaining > 0 ? 1 : 0;
        ++met.slots;
      }
    }
    EXPECT_EQ(
        uses.size() + static_cast<std::size_t>(std::ranges::count(decision.assignment.unit, Unit::kHost)),
        decision.experts.size());
    if (setup_.slots) {
      EXPECT_LE(need_slots, *setup_.slots);
    }
    EXPECT_THAT(host, testing::ElementsAreArray(decision.fetch_demand.experts));
    EXPECT_EQ(host.size(), decision.outcome->hits.size() + decision.outcome->misses.size());
    // Those that are there come first, then those under way, the nearest first, then the others.
    for (std::size_t i = 1; i < plan.uses.size(); ++i) {
      const DeviceUse &a = plan.uses[i - 1], &b = plan.uses[i];
      if (a.from == DeviceBytes::kLink) {
        EXPECT_EQ(b.from, DeviceBytes::kLink);
        EXPECT_GE(a.tokens, b.tokens);
      } else if (b.from != DeviceBytes::kLink) {
        EXPECT_LE(a.remaining, b.remaining);
      }
    }
    if (setup_.host != nullptr) check_exchange(decision, met);
    for (const Eviction& gone : plan.evicted) EXPECT_EQ(there_.erase(gone.id), 1u);
    for (const DeviceUse& use : plan.uses)
      if (use.stays) there_.insert(use.id);
    for (const DeviceUpdate& one : plan.updates) {
      EXPECT_FALSE(uses.contains(one.id));
      EXPECT_EQ(one.from, where_is(one.id));
      if (one.from == DeviceBytes::kPrefetch) {
        EXPECT_LE(one.remaining, 6);
        ++met.prefetch.kept;
        sent_.erase(one.id);
      } else {
        EXPECT_EQ(one.remaining, 6);
      }
      EXPECT_TRUE(there_.insert(one.id).second);
      if (one.remaining > 0) brought_.insert(one.id);
      ++met.updates;
    }
    met.prefetch.wasted += sent_.size();
    sent_.clear();
    for (const DeviceUse& use : plan.uses) EXPECT_EQ(use.stays, there_.contains(use.id));
    check_room();
    if (setup_.host != nullptr) check_both(met);
    ++met.events;
  }

  void check_prefetch(std::span<const PartRequest> named, std::uint32_t layer, Met& met) {
    EXPECT_LE(named.size(), setup_.prefetch_size);
    for (const PartRequest& one : named) {
      EXPECT_EQ(one.tier, Tier::kDevice);
      EXPECT_EQ(one.id.layer, layer + 1);
      EXPECT_FALSE(there_.contains(one.id));
      EXPECT_TRUE(sent_.insert(one.id).second);
      ++met.prefetch.sent;
    }
  }

 private:
  DeviceBytes where_is(ExpertId id) const {
    if (there_.contains(id)) return DeviceBytes::kSlot;
    return sent_.contains(id) ? DeviceBytes::kPrefetch : DeviceBytes::kLink;
  }
  // What the host has follows from its outcomes alone. It gets what the device drops, and nothing else; what
  // the device takes of it leaves at once, or when the layer's next event finds that it has arrived.
  void check_exchange(const LayerDecision& decision, Met& met) {
    const DevicePlan& plan = *decision.device;
    const EventOutcome& host = *decision.outcome;
    for (std::size_t i = 0; i < decision.experts.size(); ++i)
      if (decision.assignment.unit[i] == Unit::kHost) {
        EXPECT_TRUE(host_.contains(decision.experts[i]) || !there_.contains(decision.experts[i]))
            << "the device alone has what the host computes";
      }
    for (std::size_t i = host.trimmed; i < host.trimmed + host.given; ++i) {
      const ExpertId id = host.evicted[i].id;
      const auto use = std::ranges::find(plan.uses, id, &DeviceUse::id);
      const auto update = std::ranges::find(plan.updates, id, &DeviceUpdate::id);
      EXPECT_TRUE(use != plan.uses.end()         ? use->stays
                  : update != plan.updates.end() ? update->remaining == 0
                                                 : brought_.contains(id));
      brought_.erase(id);
    }
    for (const Eviction& gone : plan.evicted) brought_.erase(gone.id);
    for (const DeviceUse& use : plan.uses)
      if (use.stays && use.from == DeviceBytes::kPrefetch && use.remaining > 0) brought_.insert(use.id);
    met.given += host.given;
    for (const Eviction& gone : host.evicted) EXPECT_EQ(host_.erase(gone.id), 1u);
    for (const auto* used : {&host.hits, &host.misses})
      for (const Admission& one : *used)
        if (!one.parts.empty()) host_.insert(one.id);
    for (const Placed& one : host.adopted) {
      EXPECT_NE(std::ranges::find(plan.evicted, one.id, &Eviction::id), plan.evicted.end());
      EXPECT_TRUE(host_.insert(one.id).second);
    }
    met.dropped += plan.evicted.size();
    met.adopted += host.adopted.size();
  }
  // Both have nothing but updates that were on their way when this layer was decided.
  void check_both(Met& met) {
    for (const ExpertId id : there_) {
      if (!host_.contains(id)) continue;
      EXPECT_TRUE(brought_.contains(id));
      ++met.in_both;
    }
  }

  void check_room() const {
    std::map<std::uint16_t, std::size_t> of_layer;
    for (const ExpertId id : there_) ++of_layer[id.layer];
    EXPECT_LE(there_.size(), std::size_t{setup_.experts_a_layer} * shape_.layers);
    if (!setup_.by_layer) return;
    for (const auto& [layer, count] : of_layer) EXPECT_LE(count, setup_.experts_a_layer);
  }

  const Policies& setup_;
  const Shape& shape_;
  std::set<ExpertId> there_;
  std::set<ExpertId> sent_;  // by prefetches, for the next event
  std::set<ExpertId> host_, brought_;
};

// Runs 30 steps, every tenth of which is a prompt's; returns the log.
std::string run(const Policies& setup, Met& met) {
  const Shape shape;
  LayerDecider decider(policies_of(setup, shape), {shape.layers, shape.top_k});
  Model model(setup, shape, *decider.device());
  std::mt19937_64 random(setup.seed), prediction(setup.seed + 1);
  const PrefetchCounts met_before = met.prefetch;
  std::string log;
  append_start(log, decider.device()->start());
  double before = 0;
  std::uint64_t events = 0;
  for (int step = 0; step < 30 && !testing::Test::HasFailure(); ++step) {
    const StepKind kind = step % 10 == 0 ? StepKind::kPrompt : StepKind::kDecode;
    const auto tokens = static_cast<std::uint32_t>(1 + random() % 6);
    const SequenceSpan span{.tokens = tokens, .kind = kind};
    decider.begin_step({&span, 1});
    for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
      const Event event(random, layer, shape, tokens, kind);
      decider.follow(event.view, event.choices, event.begin);
      const LayerDecision& decision = decider.decide();
      model.check(decision, met);
      append_decision(log, events++, layer, decision);
      if (setup.prefetch == nullptr) continue;
      const Event next(prediction, layer + 1, shape, tokens, kind);
      const bool predicts = decider.device_predictor() != PredictorKind::kNone;
      const PredictorKind asked = setup.prefetch->make({.transitions = &transitions_of(shape)})->predictor();
      const bool may = decider.device()->may_prefetch();
      EXPECT_TRUE(may || decider.policies().device->guards_prefetch);
      EXPECT_EQ(predicts, may && layer + 1 < shape.layers && asked != PredictorKind::kNone &&
                              !(asked == PredictorKind::kPartial && kind == StepKind::kPrompt));
      model.check_prefetch(decider.look_ahead_on_device(predicts ? &next.view : nullptr), layer, met);
    }
    decider.end_step();
    EXPECT_GT(decider.device()->clock().now(), before);
    before = decider.device()->clock().now();
  }
  // What the link carried are the copies that were counted; updates may be under way, or withdrawn.
  DeviceCounts all;
  for (const StepKind kind : {StepKind::kPrompt, StepKind::kDecode}) {
    const DeviceCounts& one = decider.device()->counts(kind);
    all.loads += one.loads;
    all.streamed += one.streamed;
    all.updates += one.updates;
    all.assigned += one.assigned;
    all.hits += one.hits;
    all.returns += one.returns;
    all.late_returns += one.late_returns;
    all.there_alone += one.there_alone;
    all.prefetch.sent += one.prefetch.sent;
    all.prefetch.used += one.prefetch.used;
    all.prefetch.late += one.prefetch.late;
    all.prefetch.kept += one.prefetch.kept;
    all.prefetch.wasted += one.prefetch.wasted;
  }
  const PrefetchCounts& prefetch = all.prefetch;
  EXPECT_EQ(prefetch.sent, met.prefetch.sent - met_before.sent);
  EXPECT_EQ(prefetch.used, met.prefetch.used - met_before.used);
  EXPECT_EQ(prefetch.late, met.prefetch.late - met_before.late);
  EXPECT_EQ(prefetch.kept, met.prefetch.kept - met_before.kept);
  EXPECT_EQ(prefetch.wasted, met.prefetch.wasted - met_before.wasted);
  EXPECT_EQ(prefetch.sent, prefetch.used + prefetch.kept + prefetch.wasted);
  const LinkUse& link = decider.device()->clock().link();
  EXPECT_LE(link.loads + link.updates + link.prefetches,
            6.0 * static_cast<double>(all.loads + all.streamed + all.updates + prefetch.sent) + 1e-6);
  EXPECT_GE(link.loads + 1e-6, 6.0 * static_cast<double>(all.loads + all.streamed));
  EXPECT_EQ(all.assigned, all.hits + all.loads + all.streamed + prefetch.used);
  EXPECT_LE(link.returns, 6.0 * static_cast<double>(all.returns) + 1e-6);
  met.alone += all.there_alone;
  if (setup.host == nullptr) {
    EXPECT_EQ(all.returns + all.there_alone, 0u);
  }
  append_start(log, {});
  return log + decision_ending(decision_hash(decider.policies()));
}

// A device takes them: those that it is refused hold parts of experts, or know the future.
std::vector<const CachePolicy*> caches_of_devices() {
  std::vector<const CachePolicy*> all;
  for (const CachePolicy& cache : cache_policies())
    if (!cache.oracle && !cache.pooled && !cache.sliced) all.push_back(&cache);
  return all;
}

// Each placement with each cache and each prefetch, and each of these with what each preset sets beside them.
TEST(DeviceDecider, EveryCombinationOfPoliciesKeepsToThePlainModel) {
  constexpr std::uint64_t kSeed = 20261124;
  std::cout << "seed " << kSeed << '\n';
  Met met;
  std::size_t combinations = 0;
  std::uint64_t seed = kSeed;
  constexpr std::uint32_t kSlots[] = {0, 1, 4, 11, 12};
  std::set<std::tuple<std::string_view, std::string_view, std::string_view>> named;
  std::set<std::pair<std::string_view, std::string>> of_presets;
  const std::span<const DevicePreset> presets = device_presets();
  const std::vector<const CachePolicy*> caches = caches_of_devices();
  for (const PlacementPolicy& placement : placement_policies())
    for (std::size_t next = 0; next < caches.size(); ++next)
      for (const PrefetchPolicy& prefetch : prefetch_policies()) {
        const CachePolicy* const cache = caches[next];
        ++combinations;
        named.emplace(placement.name, cache->name, prefetch.name);
        const std::uint32_t experts = kSlots[combinations % std::size(kSlots)];
        // Steps without a common divisor, so that each row meets each preset.
        const auto turn =
            3 * (&placement - placement_policies().data()) + 7 * (&prefetch - prefetch_policies().data());
        const DevicePreset& preset = presets[(static_cast<std::size_t>(turn) + 5 * next) % presets.size()];
        of_presets.emplace(preset.name, "placement " + std::string(placement.name));
        of_presets.emplace(preset.name, "cache " + std::string(cache->name));
        of_presets.emplace(preset.name, "prefetch " + std::string(prefetch.name));
        Policies setup{.placement = &placement, .cache = cache, .experts_a_layer = experts, .seed = ++seed};
        setup.preset = &preset;
        setup.by_layer = seed % 3 != 0;
        if (seed % 4 == 0) setup.slots = static_cast<std::uint32_t>(seed % 5);
        if (prefetch.prefetches) setup.prefetch = &prefetch;
        setup.prefetch_size = static_cast<std::uint32_t>(seed % 5);
        SCOPED_TRACE(std::string(placement.name) + " " + std::string(cache->name) + ", " +
                     std::string(prefetch.name) + ", " + std::string(preset.name) + ", " +
                     std::to_string(experts) + " slots, seed " + std::to_string(seed));
        const std::string log = run(setup, met);
        Met again;
        EXPECT_EQ(run(setup, again), log);
        if (testing::Test::HasFailure()) return;
      }
  std::cout << combinations << " combinations, " << met.events << " events, " << met.loads << " loads, "
            << met.streams << " streamed, " << met.updates << " updates, " << met.under_way
            << " found under way; prefetches: " << met.prefetch.sent << " sent, " << met.prefetch.used
            << " used, " << met.prefetch.late << " of them late, " << met.prefetch.kept << " kept, "
            << met.prefetch.wasted << " wasted\n";
  // All rows of the registry that a device can have, each with all of the other kinds.
  EXPECT_EQ(named.size(), placement_policies().size() * caches.size() * prefetch_policies().size());
  EXPECT_GE(named.size(), 1500u);
  EXPECT_EQ(of_presets.size(),
            presets.size() * (placement_policies().size() + caches.size() + prefetch_policies().size()));
  std::cout << presets.size() << " presets beside them, " << of_presets.size() << " pairs\n";
  for (const std::uint64_t count : {met.slots, met.loads, met.streams, met.updates, met.under_way, met.host,
                                    met.prefetch.used, met.prefetch.late, met.prefetch.wasted})
    EXPECT_GT(count, 100u);
  EXPECT_GT(met.prefetch.kept, 10u);
}

TEST(DeviceDecider, TiersThatExcludeEachOtherKeepToThePlainModel) {
  constexpr std::uint64_t kSeed = 20261125;
  std::cout << "seed " << kSeed << '\n';
  Met met;
  int combinations = 0;
  std::uint64_t seed = kSeed;
  for (const CachePolicy& host : cache_policies())
    for (const CachePolicy& cache : cache_policies()) {
      if (!host.adopts || cache.oracle || cache.pooled || cache.sliced) continue;
      ++combinations;
      for (const std::uint32_t experts : {0u, 2u, 5u, 12u}) {
        Policies setup{.placement = &placement_policies()[++seed % placement_policies().size()],
                       .cache = &cache,
                       .experts_a_layer = experts,
                       .seed = seed,
                       .host = &host,
                       .host_experts = static_cast<std::uint32_t>(seed % 13)};
        setup.by_layer = seed % 3 != 0;
        if (seed % 2 == 0) setup.prefetch = &prefetch_policies()[seed % prefetch_policies().size()];
        setup.prefetch_size = static_cast<std::uint32_t>(seed % 5);
        SCOPED_TRACE(std::string(setup.placement->name) + " " + std::string(cache.name) + " beside " +
                     std::string(host.name) + ", " + std::to_string(experts) + " slots, host " +
                     std::to_string(setup.host_experts) + ", seed " + std::to_string(seed));
        const std::string log = run(setup, met);
        Met again;
        EXPECT_EQ(run(setup, again), log);
        EXPECT_NE(log.find("# hash"), std::string::npos);
        if (testing::Test::HasFailure()) return;
      }
    }
  std::cout << combinations << " combinations, " << met.given << " given to the device, " << met.dropped
            << " dropped by it, " << met.adopted << " adopted; " << met.alone << " kept there; "
            << met.in_both << " in both while their copies went on\n";
  EXPECT_GE(combinations, 80);
  for (const std::uint64_t count : {met.given, met.dropped, met.adopted, met.alone, met.in_both})
    EXPECT_GT(count, 1000u);
}

// Once everything fits, nothing moves (SPEC I11).
TEST(DeviceDecider, WithRoomForAllNothingMovesAfterTheFirstUse) {
  for (const CachePolicy& cache : cache_policies()) {
    if (cache.oracle || cache.pooled || cache.sliced || !(cache.keeps || cache.starts)) continue;
    SCOPED_TRACE(cache.name);
    const Shape shape;
    LayerDecider decider(
        policies_of(
            {.placement = &find_placement("device"), .cache = &cache, .experts_a_layer = shape.experts},
            shape),
        {shape.layers, shape.top_k});
    std::mt19937_64 random(3);
    std::set<ExpertId> seen;
    for (const DeviceUpdate& one : decider.device()->start()) seen.insert(one.id);
    EXPECT_EQ(seen.size(), cache.starts ? shape.layers * shape.experts : 0u);
    for (int step = 0; step < 40; ++step) {
      const SequenceSpan span{.tokens = 2};
      decider.begin_step({&span, 1});
      for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
        const Event event(random, layer, shape, 2, StepKind::kDecode);
        decider.follow(event.view, event.choices, event.begin);
        const DevicePlan& plan = *decider.decide().device;
        EXPECT_TRUE(plan.updates.empty() && plan.evicted.empty());
        for (const DeviceUse& use : plan.uses)
          EXPECT_EQ(use.from, seen.insert(use.id).second ? DeviceBytes::kLink : DeviceBytes::kSlot);
      }
      decider.end_step();
    }
  }
}

// Sends every expert to the device that it is told.
class ChosenUnits final : public Placement {
 public:
  explicit ChosenUnits(const std::set<std::uint16_t>& device) : device_(device) {}
  void assign(const Demand& demand, const PlacementCosts& costs, Assignment& out) override {
    out.unit.clear();
    for (const ExpertId id : demand.experts)
      out.unit.push_back(device_.contains(id.index) ? Unit::kDevice : Unit::kHost);
    there.assign(costs.on_device.begin(), costs.on_device.end());
    transfer.assign(costs.transfer.begin(), costs.transfer.end());
  }
  std::string name() const override { return "chosen"; }

  std::vector<std::uint8_t> there;  // PlacementCosts::on_device of the last event …
  std::vector<double> transfer;     // … and PlacementCosts::transfer

 private:
  const std::set<std::uint16_t>& device_;
};

struct ByHand {
  explicit ByHand(const char* cache, Bytes capacity) {
    policies.device.emplace().residencies.push_back(
        std::make_unique<Residency>(make_cache(cache, config()), kSizes, capacity, Tier::kDevice));
    policies.costs.run = {.per_token = 10};
    policies.costs.device = {.run = {.per_token = 1}, .transfer = 8, .gate = {.fixed = 2}, .sync = 1};
    decider.emplace(*policies.device, placement, policies.costs);
  }
  static CacheConfig config() {
    CacheConfig config;
    config.workload.window = {.steps = 1, .swaps = 1};
    return config;
  }
  // Experts of layer 0 with one token each, except the first with `first` tokens.
  const DevicePlan& decide(std::vector<std::uint16_t> experts, std::uint32_t first = 1) {
    ids.clear();
    tokens.assign(experts.size(), 1);
    layer_tokens.assign(8, 0);
    tokens.front() = first;
    for (const std::uint16_t e : experts) ids.push_back({0, e});
    for (std::size_t i = 0; i < experts.size(); ++i) layer_tokens[experts[i]] = tokens[i];
    return decider->decide({.demand = {ids, tokens},
                            .place = {.layer_tokens = layer_tokens},
                            .step_tokens = 1,
                            .precedes = precedes},
                           assignment);
  }

  bool precedes = false;  // DeviceEvent::precedes
  LayerPolicies policies;
  std::set<std::uint16_t> device;
  ChosenUnits placement{device};
  std::optional<DeviceDecider> decider;
  std::vector<ExpertId> ids;
  std::vector<std::uint32_t> tokens, layer_tokens;
  Assignment assignment;
};

TEST(DeviceDecider, AnUpdateIsResidentAtOnceAndCostsWhatIsLeftOfIt) {
  ByHand test("workload-window", kBytes);
  test.device = {1};
  EXPECT_EQ(test.decide({1}).uses[0].stays, true);  // there is room
  // Copied from 1 on, computed from 9 to 10; the next gate ends at 12.
  test.device = {};
  const DevicePlan& swap = test.decide({2}, 3);
  EXPECT_EQ(test.decider->clock().now(), 12);
  ASSERT_EQ(swap.updates.size(), 1u);
  EXPECT_EQ(swap.updates[0].id, (ExpertId{0, 2}));
  EXPECT_EQ(swap.evicted[0].id, (ExpertId{0, 1}));
  // The host computes 2 from 14 to 44; the copy begins then and the gate ends at 46. One more unit passes
  // until the next layer is decided.
  test.device = {2};
  const DevicePlan& under_way = test.decide({2});
  EXPECT_EQ(test.decider->clock().now(), 46);
  ASSERT_EQ(under_way.uses.size(), 1u);
  EXPECT_EQ(under_way.uses[0].from, DeviceBytes::kSlot);
  EXPECT_EQ(under_way.uses[0].remaining, 8 - 3);
  test.decider->end_layer();
  EXPECT_EQ(test.decider->clock().now(), 47 + 5 + 1 + 2);
  EXPECT_EQ(test.decide({2}).uses[0].remaining, 0);
  const DeviceCounts& counts = test.decider->counts(StepKind::kDecode);
  EXPECT_EQ(counts.assigned, 3u);
  EXPECT_EQ(counts.hits, 2u);
  EXPECT_EQ(counts.resident, 2u);
  EXPECT_EQ(counts.active, 4u);
  EXPECT_EQ(counts.resident_tokens, 2u);
  EXPECT_EQ(counts.tokens, 6u);
  EXPECT_EQ(counts.loads, 1u);
  EXPECT_EQ(counts.updates, 1u);
}

TEST(DeviceDecider, APrefetchServesTheNextEventAlone) {
  ByHand test("none", 0);
  test.device = {1, 2, 3};
  test.decide({1});
  const PartRequest wanted[] = {{{0, 2}, Part::kFull, Tier::kDevice}, {{0, 3}, Part::kFull, Tier::kDevice}};
  test.decider->prefetch(wanted);
  // 1 is copied from 1 to 9 and computed until 10; 2 is copied from 9 to 17. The layer ends at 12.
  const DevicePlan& second = test.decide({2, 3, 4});
  ASSERT_EQ(second.uses.size(), 2u);  // the host computes 4
  EXPECT_EQ(second.uses[0].id, (ExpertId{0, 2}));
  EXPECT_EQ(second.uses[0].from, DeviceBytes::kPrefetch);
  EXPECT_EQ(second.uses[0].remaining, 17 - 13);
  EXPECT_EQ(second.uses[1].remaining, 8);
  // The copy of 3 has not begun: the placement may leave it to the host as well as 4.
  EXPECT_THAT(test.placement.there, testing::ElementsAre(1, 0, 0));
  EXPECT_FALSE(second.uses[0].stays);
  const PrefetchCounts& prefetch = test.decider->counts(StepKind::kDecode).prefetch;
  EXPECT_EQ(prefetch.sent, 2u);
  EXPECT_EQ(prefetch.used, 2u);
  EXPECT_EQ(prefetch.late, 2u);
  EXPECT_EQ(prefetch.wasted, 0u);
  EXPECT_EQ(test.decider->counts(StepKind::kDecode).streamed, 1u);
  EXPECT_EQ(test.decide({2}).uses[0].from, DeviceBytes::kLink);
}

TEST(DeviceDecider, WhatIsReadInPlaceTakesNoTimeOnTheLink) {
  ByHand test("none", 0);
  test.policies.costs.device.in_place = true;
  test.device = {1, 2};
  const DevicePlan& plan = test.decide({1, 2});
  EXPECT_THAT(test.placement.transfer, testing::ElementsAre(0, 0));
  EXPECT_THAT(test.placement.there, testing::ElementsAre(0, 0));
  for (const DeviceUse& use : plan.uses) {
    EXPECT_EQ(use.from, DeviceBytes::kLink);
    EXPECT_EQ(use.remaining, 0);
  }
  test.decider->end_layer();
  EXPECT_EQ(test.decider->clock().now(), 1 + 2 * 1 + 2);
  EXPECT_EQ(test.decider->counts(StepKind::kDecode).streamed, 2u);
}

// What stays is copied, and what is copied ahead.
TEST(DeviceDecider, WhatStaysIsCopiedThoughItCouldBeReadInPlace) {
  ByHand test("workload-window", kBytes);
  test.policies.costs.device.in_place = true;
  test.device = {1};
  const DevicePlan& plan = test.decide({1});
  EXPECT_THAT(test.placement.transfer, testing::ElementsAre(0));
  ASSERT_TRUE(plan.uses[0].stays);
  EXPECT_EQ(plan.uses[0].remaining, 8);
  test.decider->end_layer();
  EXPECT_EQ(test.decider->clock().now(), 1 + 8 + 1 + 2);
  EXPECT_EQ(test.decide({1}).uses[0].from, DeviceBytes::kSlot);
  const PartRequest ahead{{0, 2}, Part::kFull, Tier::kDevice};
  test.decider->prefetch({&ahead, 1});
  test.device = {2};
  EXPECT_GT(test.decide({2}).uses[0].remaining, 0);
}

TEST(DeviceDecider, ALayerThatIsLeftOutIsTheHosts) {
  ByHand test("none", 0);
  test.device = {1, 2};
  test.policies.device->left_out = {1, 0};
  EXPECT_TRUE(test.decide({1, 2, 3}).uses.empty());
  EXPECT_THAT(test.assignment.unit, testing::Each(Unit::kHost));
  EXPECT_EQ(test.decider->counts(StepKind::kDecode).assigned, 0u);
  test.policies.device->left_out = {0, 1};
  EXPECT_EQ(test.decide({1, 2, 3}).uses.size(), 2u);
}

TEST(DeviceDecider, NothingIsPrefetchedForALayerThatIsLeftOut) {
  ByHand test("none", 0);
  test.precedes = true;
  test.policies.device->prefetch = find_prefetch("all-next").make({});
  for (const bool next : {false, true}) {
    test.policies.device->left_out = {std::uint8_t{0}, std::uint8_t{next}};
    test.decide({1});
    EXPECT_EQ(test.decider->may_prefetch(), !next);
    EXPECT_EQ(test.decider->counts(StepKind::kDecode).prefetch.asked, 1u);
  }
}

// Expert 1 is used in every event, and takes the link for 8 of 11 units.
TEST(DeviceDecider, PrefetchesInVainArePausedWhereTheyAreGuarded) {
  constexpr std::uint64_t kEvents = 100;
  for (const bool guarded : {false, true})
    for (const std::uint16_t named : {1, 5}) {
      SCOPED_TRACE(std::to_string(named) + (guarded ? " guarded" : ""));
      ByHand test("none", 0);
      test.policies.device->prefetch = find_prefetch("random").make({.seed = 1});
      test.policies.device->guards_prefetch = guarded;
      test.device = {1};
      test.precedes = true;
      const PartRequest wanted[] = {{{0, named}, Part::kFull, Tier::kDevice}};
      for (std::uint64_t event = 0; event < kEvents; ++event) {
        test.decide({1});
        if (test.decider->may_prefetch()) test.decider->prefetch(wanted);
      }
      const PrefetchCounts& counts = test.decider->counts(StepKind::kDecode).prefetch;
      EXPECT_EQ(counts.asked, kEvents);
      EXPECT_EQ(counts.sent, kEvents - counts.paused);
      if (guarded && named == 5) {
        EXPECT_GT(counts.paused, kEvents / 2);
      } else {
        EXPECT_EQ(counts.paused, 0u);
      }
    }
}

// The device changes to the stream that predicts, and back, behind what it has; loads wait for that.
TEST(DeviceDecider, APredictionTakesTimeAndTwoChangesOfStreams) {
  for (const bool predicts : {false, true}) {
    ByHand test("none", 0);
    test.policies.costs.device.predict = 16;
    test.policies.costs.device.stream_switch = 1;
    const std::vector<ExpertId> ids = {{0, 1}};
    const std::vector<std::uint32_t> tokens = {1};
    test.device = {1};
    test.decider->decide({.demand = {ids, tokens},
                          .place = {},
                          .step_tokens = 1,
                          .predicted_by = predicts ? PredictorKind::kGateInput : PredictorKind::kNone},
                         test.assignment);
    test.decider->end_layer();
    // Decided at 1; the copy arrives at 9, and 1 is computed until 10, or until 1 + 18 + 1.
    EXPECT_EQ(test.decider->clock().now(), predicts ? 20 + 2 : 10 + 2);
  }
}

TEST(DeviceDecider, PromptsMayBePlacedByAnotherRule) {
  ByHand test("none", 0);
  std::set<std::uint16_t> all = {0, 1, 2, 3};
  test.policies.device->prefill_placement = std::make_unique<ChosenUnits>(all);
  test.policies.device->prefill_from = 32;
  const std::vector<ExpertId> ids = {{0, 1}, {0, 2}};
  const std::vector<std::uint32_t> tokens = {30, 2};
  for (const std::uint32_t prompt : {0u, 31u, 32u}) {
    const DevicePlan& plan = test.decider->decide(
        {.demand = {ids, tokens}, .place = {}, .step_tokens = 32, .prompt_tokens = prompt}, test.assignment);
    EXPECT_EQ(plan.uses.size(), prompt == 32 ? 2u : 0u);
  }
}

}  // namespace
}  // namespace sluice::experts
