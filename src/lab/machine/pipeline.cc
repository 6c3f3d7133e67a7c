#include "lab/machine/pipeline.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "base/setting.h"
#include "base/stop_request.h"
#include "experts/cache/cache_policies.h"
#include "experts/core/equal_sizes.h"
#include "experts/core/state_order.h"
#include "experts/layer_decider.h"
#include "experts/policy_choice.h"
#include "experts/presets.h"
#include "lab/machine/layer_clock.h"
#include "lab/machine/weight_bytes.h"

namespace sluice::lab {
namespace {

using experts::ExpertId;
using experts::Part;
using experts::Parts;
using experts::State;

// One layer of one step.
struct Layer {
  std::uint32_t index = 0;
  std::span<const ExpertId> ids;
  std::span<const std::uint32_t> tokens;  // parallel to ids
  std::uint32_t step_tokens = 0;
};

// A system: how it brings experts in, and how long that takes.
class System {
 public:
  virtual ~System() = default;
  virtual void begin_step(experts::StepKind) {}
  // Adds the layer's times to `times`, except `rest`.
  virtual void add(const Layer& layer, PipelineTimes& times) = 0;
  virtual std::uint64_t fallbacks() const { return 0; }

 protected:
  static void count(PipelineTimes& times, State state, Bytes bytes) {
    times.accesses += 1;
    times.found[experts::place_of(state)] += 1;
    times.hits += state == State::kF || state == State::kC;
    times.bytes += bytes;
  }
};

// The policies of a preset that decide here: its cache and its scheduler.
experts::LayerPolicies policies_of(const experts::Preset& preset, std::uint32_t layers,
                                   const PipelineCosts& costs, const PipelineSettings& settings,
                                   const experts::CacheConfig& config, const experts::EqualSizes& sizes) {
  const std::size_t caches = settings.scope == Scope::kLayer ? layers : 1;
  return experts::make_policies({.host = experts::HostCaches{.cache = *preset.cache,
                                                             .config = config,
                                                             .count = caches,
                                                             .capacity = settings.memory / caches},
                                 .scheduler = preset.scheduler.row(),
                                 .costs = {.fetch = costs.fetch, .run = costs.run},
                                 .whole_layers = preset.whole_layers},
                                sizes);
}

// Calls visit(i, admission, whether it is a hit) for each expert of a decided event, in order; i is its place
// in LayerDecision::experts.
template <class Visit>
void for_each_used(const experts::LayerDecision& decision, const Visit& visit) {
  const experts::EventOutcome& outcome = *decision.outcome;
  std::size_t hit = 0, miss = 0;
  for (std::size_t i = 0; i < decision.experts.size(); ++i) {
    const bool is_hit = hit < outcome.hits.size() && outcome.hits[hit].id == decision.experts[i];
    visit(i, is_hit ? outcome.hits[hit++] : outcome.misses[miss++], is_hit);
  }
}

// A system whose layers are decided as in the engine.
class Decided : public System {
 public:
  // `experts`: of a layer.
  Decided(const experts::Preset& preset, std::uint32_t layers, std::uint32_t experts,
          const PipelineCosts& costs, const PipelineSettings& settings, const experts::CacheConfig& config)
      : costs_(costs),
        sizes_(costs.bytes),
        experts_(experts),
        decider_(policies_of(preset, layers, costs, settings, config, sizes_), {.layers = layers}) {}

  // Requests do not say whose their tokens are.
  void begin_step(experts::StepKind kind) override {
    const experts::SequenceSpan span{.tokens = 1, .kind = kind};
    decider_.begin_step({&span, 1});
  }

 protected:
  const experts::LayerDecision& decide(const Layer& layer) {
    decider_.follow(layer.index, {layer.ids, layer.tokens},
                    {.experts = experts_, .tokens = layer.step_tokens});
    return decider_.decide();
  }

  const PipelineCosts& costs_;
  const experts::EqualSizes sizes_;
  const std::uint32_t experts_;
  experts::LayerDecider decider_;
};

// A system with caches, tasks and a scheduler.
class Scheduled final : public Decided {
 public:
  Scheduled(const experts::Preset& preset, std::uint32_t layers, std::uint32_t experts,
            const PipelineCosts& costs, const PipelineSettings& settings)
      : Decided(preset, layers, experts, costs, settings, cache_config(costs, settings)),
        clock_(costs, decider_) {}

  void add(const Layer& layer, PipelineTimes& times) override {
    used_.clear();
    const experts::LayerDecision& decided = decide(layer);
    for_each_used(decided, [&](std::size_t i, const experts::Admission& one, bool) {
      const State state = experts::state_of(one.before);
      used_.push_back({state, layer.tokens[i], one.id});
      count(times, state, missing(one.before));
    });
    // Nobody waits for what the cache brings in besides, but it is read.
    for (const experts::Update& update : decided.outcome->updates)
      times.bytes += sizes_.bytes(update.id).of(update.parts - update.before);
    const LayerTime time = clock_.time(used_);
    times.compute += time.compute;
    times.disk += time.disk;
    times.decode += time.decode;
    times.time += time.makespan;
    times.least += time.least;
    fallbacks_ += time.fallback;
  }
  std::uint64_t fallbacks() const override { return fallbacks_; }

 private:
  static experts::CacheConfig cache_config(const PipelineCosts& costs, const PipelineSettings& settings) {
    experts::CacheConfig config;
    config.seed = settings.seed;
    if (settings.pools)
      config.pools = {
          .slots = {*settings.pools}, .rules = settings.rules, .whole_only = costs.fetch.chunks == 0};
    return config;
  }

  Bytes missing(Parts before) const {
    if (before.has(Part::kFull)) return 0;
    if (costs_.fetch.chunks == 0) return costs_.bytes.full;
    return (before.has(Part::kSm) ? 0 : costs_.bytes.sm) + (before.has(Part::kExp) ? 0 : costs_.bytes.exp);
  }

  LayerClock clock_;
  std::vector<UsedExpert> used_;
  std::uint64_t fallbacks_ = 0;
};

// z-accelerate: cached experts are in memory; every other expert is read whole at its use, and nothing else
// happens meanwhile.
class Synchronous final : public Decided {
 public:
  Synchronous(const experts::Preset& preset, std::uint32_t layers, std::uint32_t experts,
              const PipelineCosts& costs, const PipelineSettings& settings)
      : Decided(preset, layers, experts, costs, settings, {}) {}

  void add(const Layer& layer, PipelineTimes& times) override {
    for_each_used(decide(layer), [&](std::size_t i, const experts::Admission&, bool there) {
      const double read = there ? 0 : costs_.whole_read(), run = costs_.run.of(layer.tokens[i]);
      count(times, there ? State::kF : State::kM, there ? 0 : costs_.bytes.full);
      times.disk += read;
      times.compute += run;
      times.time += read + run;
      times.least += read + run;
    });
  }
};

// z-deepspeed: a window of two layers. All experts of a layer are read, whatever the routing, while the layer
// before is computed; the first layer of a step waits for all its experts.
class WholeLayers final : public Decided {
 public:
  WholeLayers(const experts::Preset& preset, std::uint32_t layers, std::uint32_t experts,
              const PipelineCosts& costs, const PipelineSettings& settings)
      : Decided(preset, layers, experts, costs, settings, {}), dense_(costs.rest / layers) {}

  void begin_step(experts::StepKind kind) override {
    Decided::begin_step(kind);
    loaded_ = computed_ = computed_before_ = 0;
  }

  void add(const Layer& layer, PipelineTimes& times) override {
    double run = 0;
    const experts::LayerDecision& decided = decide(layer);
    for_each_used(decided, [&](std::size_t i, const experts::Admission& one, bool) {
      run += costs_.run.of(layer.tokens[i]);
      count(times, experts::state_of(one.before), 0);
    });
    const std::size_t fetched = decided.fetch->misses.size();
    times.bytes += fetched * costs_.bytes.full;
    loaded_ = std::max(loaded_, computed_before_) + static_cast<double>(fetched) * costs_.whole_read();
    const double begin = computed_;
    computed_before_ = computed_;
    computed_ = std::max(loaded_, begin + dense_) + run;
    // The dense part of the layer is in `rest`.
    const double spent = computed_ - begin - dense_;
    times.compute += run;
    times.disk += spent - run;
    times.time += spent;
    times.least += run;  // all reads may be hidden
  }

 private:
  const double dense_;
  double loaded_ = 0, computed_ = 0, computed_before_ = 0;
};

std::unique_ptr<System> make_system(std::uint32_t layers, std::uint32_t experts, const PipelineCosts& costs,
                                    const PipelineSettings& settings) {
  const experts::Preset& preset = *settings.preset;
  if (preset.sliced())
    throw Error(ErrorKind::kUsage, "this preset is for models in slices, which have no timed replay")
        .in(Setting::kPreset)
        .expected("a preset for whole experts")
        .found(preset.name)
        .fix("name another, or replay it on a machine: " + Setting::kMachine + " slicemoe");
  if (preset.synchronous) return std::make_unique<Synchronous>(preset, layers, experts, costs, settings);
  if (preset.whole_layers) return std::make_unique<WholeLayers>(preset, layers, experts, costs, settings);
  if (preset.cache->pooled != settings.pools.has_value())
    throw Error(ErrorKind::kUsage, settings.pools ? "this preset has no pools" : "this preset needs pools")
        .in(Setting::kPreset)
        .expected(settings.pools ? "a preset with the cache zip-pools" : "slots of its pools")
        .found(preset.name)
        .fix(settings.pools ? "name such a preset, or leave the slots out"
                            : "give the slots of a layer, or name a preset without pools");
  return std::make_unique<Scheduled>(preset, layers, experts, costs, settings);
}

}  // namespace

PipelineCosts pipeline_costs(const engine::Profile& profile) {
  PipelineCosts costs;
  costs.fetch = profile.costs().fetch;
  costs.tensors = profile.model.tensors;
  for (const auto& [tokens, time] : profile.p_of_tokens) costs.run.measured.emplace_back(tokens, time.median);
  if (costs.run.measured.empty()) costs.run.measured.emplace_back(1, profile.p.median);
  costs.rest = profile.rest.median;
  costs.bytes = {.full = profile.model.full, .sm = profile.model.sm, .exp = profile.model.exp};
  return costs;
}

double PipelineCosts::whole_read() const {
  // With chunks, u is the time to read the sign+mantissa plane of a tensor.
  return tensors * fetch.u * (fetch.chunks > 0 ? words_to_plane() : 1);
}

double PipelineResult::first_token_s() const {
  return prompts == 0 ? 0 : prefill.time / static_cast<double>(prompts);
}
double PipelineResult::token_s() const {
  return decode.steps == 0 ? 0 : decode.time / static_cast<double>(decode.steps);
}
double PipelineResult::tokens_per_second() const {
  return decode.time > 0 ? static_cast<double>(decode.tokens) / decode.time : 0;
}
double PipelineResult::bytes_per_token() const {
  return decode.tokens == 0 ? 0 : static_cast<double>(decode.bytes) / static_cast<double>(decode.tokens);
}

PipelineResult run_pipeline(const Requests& requests, std::uint32_t layers, std::uint32_t experts,
                            const PipelineCosts& costs, const PipelineSettings& settings,
                            const std::function<bool()>& stop) {
  const std::unique_ptr<System> system = make_system(layers, experts, costs, settings);
  PipelineResult result;
  bool in_prompt = false;
  for (std::size_t e = 0; e < requests.events.size(); ++e) {
    stop_if(stop, e);
    const Requests::Event& event = requests.events[e];
    const bool prefill = !settings.all_decode && event.phase == trace::TracePhase::kPrefill;
    PipelineTimes& times = prefill ? result.prefill : result.decode;
    if (e == 0 || requests.events[e - 1].step != event.step) {
      system->begin_step(prefill ? experts::StepKind::kPrompt : experts::StepKind::kDecode);
      result.prompts += prefill && !in_prompt;
      in_prompt = prefill;
      times.steps += 1;
      times.tokens += event.tokens;
      times.time += costs.rest;
      times.rest += costs.rest;
      times.least += costs.rest;
    }
    const std::span<const ExpertId> ids = requests.list.event(e);
    const auto tokens = std::span(requests.tokens).subspan(requests.list.begin(e), ids.size());
    system->add({event.layer, ids, tokens, event.tokens}, times);
  }
  result.fallbacks = system->fallbacks();
  return result;
}

}  // namespace sluice::lab
