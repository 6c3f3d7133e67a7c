#include "lab/replay/hybrid_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/setting.h"
#include "base/stop_request.h"
#include "experts/combination.h"
#include "experts/core/equal_sizes.h"
#include "experts/decision_log.h"
#include "experts/device_caches.h"
#include "experts/layer_decider.h"
#include "experts/policy_choice.h"
#include "kernels/elementwise/elementwise.h"

namespace sluice::lab {
namespace {

void check_router(const HybridSettings& settings, const RoutedSteps& steps) {
  settings.smoe.validate();
  if (steps.logits || !settings.router->lossy) return;
  throw Error(ErrorKind::kUsage,
              "this router looks at the scores of experts that were not chosen, and the trace has none")
      .in(Setting::kRouter)
      .expected("a trace with router logits, as sluice trace writes it")
      .found(settings.router.name())
      .fix("record one with sluice trace, or use the router exact");
}

void check_slices(const HybridSettings& settings, const RoutedSteps& steps) {
  if (!settings.slices) return;
  settings.slices->precision.critical.validate(steps.top_k);
  if (settings.sizes != nullptr && settings.sizes->bytes({0, 0}).msb > 0) return;
  throw Error(ErrorKind::kUsage, "the trace is of whole experts, which have one precision")
      .in(Setting::kPrecision)
      .expected("what sluice trace records of a store that was packed with " + Setting::kSlices)
      .found("whole experts")
      .fix("record such a run, or leave " + Setting::kPrecision + " out");
}

void check(const HybridSettings& settings, const RoutedSteps& steps) {
  experts::check_host_cache(*settings.host.cache);
  check_slices(settings, steps);
  const std::array routers = {settings.router};
  const experts::SliceSetting* const slices = settings.slices ? &*settings.slices : nullptr;
  experts::check_combination(
      {.family = slices != nullptr ? experts::Family::kSliced : experts::Family::kRaw,
       .routers = routers,
       .cache = settings.host.cache,
       .precision = slices != nullptr ? slices->precision.mode : experts::PrecisionMode::kFull,
       .constraint = slices != nullptr ? slices->limits.mode : experts::ConstraintMode::kNone,
       .prefetch = settings.prefetch,
       .slices = slices != nullptr ? &slices->cache : nullptr,
       .placement = settings.placement,
       .device_cache = settings.device_cache,
       .tiers = settings.tiers.value_or(experts::Tiers::kInclusive),
       .residual = true,  // `steps` are what it predicts
       .transitions = settings.transitions != nullptr});
  check_router(settings, steps);
  const experts::PredictorKind predictor = settings.prefetch->predictor;
  if (predictor != experts::PredictorKind::kNone && !steps.predicted)
    throw Error(ErrorKind::kUsage,
                "this prefetch follows what is predicted of each next layer, and the recorded "
                "routing has no such predictions")
        .in(Setting::kPrefetch)
        .expected(fmt::format("a trace with those of the predictor {}", experts::predictor_name(predictor)))
        .found(settings.prefetch.name())
        .fix("record one with sluice trace " + Setting::kAhead + ", or give " + Setting::kPrefetch + " none");
  const experts::CachePolicy& cache = *settings.device_cache;
  if (cache.oracle)
    throw Error(ErrorKind::kUsage, "which experts a device's cache is asked about depends on what it holds")
        .in(Setting::kDeviceCache)
        .expected("a cache that does not know the future")
        .found(settings.device_cache.name())
        .fix("name another");
  for (const auto& [named, setting] :
       {std::pair(&settings.device_cache, Setting::kDeviceCache), {&settings.host.cache, Setting::kCache}})
    if (!steps.logits && (*named)->scores == experts::CacheScores::kAll)
      throw Error(ErrorKind::kUsage, "this cache goes by the scores of all experts, and the trace has none")
          .in(setting)
          .expected("a trace with router logits, as sluice trace writes it")
          .found(named->name())
          .fix("record one with sluice trace, or name another cache");
  if (cache.by_popularity && settings.workload.popularity.empty())
    throw Error(ErrorKind::kUsage, "this cache needs to know how often each expert is used")
        .in(Setting::kDeviceCache)
        .expected(Setting::kRanksOf + " beside it")
        .found(settings.device_cache.name())
        .fix("name recorded routing of another text: " + Setting::kRanksOf + " FILE");
}

class HybridReplay {
 public:
  HybridReplay(const RoutedSteps& steps, const HybridSettings& settings,
               const std::function<void(std::string_view)>& log, const HybridWatch& watch)
      : steps_(steps),
        settings_(settings),
        log_(log),
        watch_(watch),
        decider_(policies(), {.layers = steps.layers, .top_k = steps.top_k}) {}

  HybridResult run(const std::function<bool()>& stop) {
    result_.tiers = tiers();
    result_.start = decider_.device()->start().size();
    write_heading();
    for (std::size_t s = 0; s < steps_.steps.size(); ++s) {
      stop_if(stop, s, 64);
      step(steps_.steps[s]);
    }
    const experts::LayerPolicies& all = decider_.policies();
    result_.prefill.counts = decider_.device()->counts(experts::StepKind::kPrompt);
    result_.decode.counts = decider_.device()->counts(experts::StepKind::kDecode);
    result_.prefill.predictions = decider_.predictions(experts::StepKind::kPrompt);
    result_.decode.predictions = decider_.predictions(experts::StepKind::kDecode);
    result_.changes = decider_.changes();
    result_.decode_changes = decider_.decode_changes();
    result_.fallbacks = all.placement->fallbacks();
    result_.decision_hash = experts::decision_hash(all);
    if (log_) log_(experts::decision_ending(result_.decision_hash));
    return result_;
  }

 private:
  const experts::ExpertSizes& sizes() const {
    return settings_.sizes != nullptr ? *settings_.sizes : counted_;
  }

  bool in_slices() const { return settings_.slices.has_value(); }

  experts::Parts kept() const {  // for an expert that stays with the host
    if (!in_slices()) return settings_.host.keep;
    return experts::kept_slices(settings_.slices->precision.mode, settings_.host.cache->sliced);
  }

  Bytes whole_experts() const {  // bytes of all layers
    const experts::Parts whole = in_slices() ? kept() : experts::Parts(experts::Part::kFull);
    Bytes all = 0;
    for (std::uint32_t layer = 0; layer < steps_.layers; ++layer)
      for (std::uint32_t e = 0; e < steps_.experts; ++e)
        all += sizes().bytes({static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(e)}).of(whole);
    return all;
  }

  Bytes host_capacity() const {
    return settings_.host.capacity.value_or(whole_experts() / (settings_.host.by_layer ? steps_.layers : 1));
  }

  experts::TierChoice tiers() const {
    if (settings_.tiers) return {*settings_.tiers};
    return experts::usual_tiers(
        {.cache = *settings_.host.cache,
         .sizes = sizes(),
         .keep = kept(),
         .layers = steps_.layers,
         .experts = steps_.experts,
         .by_layer = settings_.host.by_layer,
         .capacity = settings_.host.capacity.value_or(experts::kAnyBytes),
         .would_repack = !in_slices() && settings_.host.keep != experts::Parts(experts::Part::kFull) &&
                         !settings_.packed_copies});
  }

  bool routes() const { return settings_.router->lossy; }

  experts::LayerPolicies policies() const {
    const HybridHost& host = settings_.host;
    experts::CacheConfig config{.keep = kept(), .seed = settings_.seed};
    if (host.pools) config.pools.slots = {*host.pools};
    if (in_slices()) config.slices = settings_.slices->cache;
    config.workload.top_k = steps_.top_k;
    return experts::make_policies(
        {.precision = in_slices() ? settings_.slices->precision
                                  : experts::PrecisionRule{.mode = experts::PrecisionMode::kFull},
         .router = routes() ? settings_.router.row() : nullptr,
         .router_config = {.select = {.top_k = steps_.top_k}, .smoe = settings_.smoe},
         .placement = settings_.placement.row(),
         .host = experts::HostCaches{.cache = *host.cache,
                                     .config = config,
                                     .count = host.by_layer ? steps_.layers : 1,
                                     .capacity = host_capacity()},
         .device = device(),
         .costs = settings_.costs},
        sizes());
  }

  std::optional<experts::DeviceSlices> slots() const {
    if (!in_slices()) return std::nullopt;
    return experts::device_slices(settings_.slices->precision.mode, settings_.slot_slices);
  }

  experts::DevicePolicyChoice device() const {
    const experts::PlacementPolicy* const in_prompts = settings_.prefill_placement.row();
    const experts::PrefetchPolicy& prefetch = *settings_.prefetch;
    const experts::Tiers tiers = this->tiers().tiers;
    return {.takes = experts::takes_experts(*settings_.placement, in_prompts, tiers),
            .caches = {.cache = settings_.device_cache,
                       .layers = steps_.layers,
                       .experts = steps_.experts,
                       .top_k = steps_.top_k,
                       .slots = settings_.slots,
                       .seed = settings_.seed,
                       .workload = settings_.workload},
            .slices = slots(),
            .buffers = settings_.buffers,
            .prefill_placement = in_prompts,
            .prefill_from = settings_.prefill_from,
            .prefetch = prefetch.prefetches ? &prefetch : nullptr,
            .prefetch_config = {.seed = settings_.seed,
                                .transitions = settings_.transitions,
                                .alpha = settings_.smoe.alpha},
            .prefetch_size = settings_.prefetch_size,
            .guards_prefetch = settings_.guards_prefetch,
            .tiers = tiers,
            .host_may_lack = settings_.host.capacity.has_value()};
  }

  void write_heading() {
    if (!log_) return;
    log_(experts::decision_heading({.cache = std::string(settings_.host.cache.name()),
                                    .scope = settings_.host.by_layer ? "layer" : "global",
                                    .capacity = host_capacity(),
                                    .keep = kept(),
                                    .seed = settings_.seed,
                                    .pools = settings_.host.pools,
                                    .slices = settings_.slices,
                                    .routing = steps_.played,
                                    .device = experts::device_setting(decider_.policies())}));
    line_.clear();
    experts::append_start(line_, decider_.device()->start());
    if (!line_.empty()) log_(line_);
  }

  void step(const RoutedStep& step) {
    step.describe_spans(step.tokens(), spans_);
    in_prompt_ = step.prompt;
    decider_.begin_step(spans_);
    for (std::uint32_t layer = 0; layer < steps_.layers; ++layer) {
      const RoutedLayer& routed = step.layers[layer];
      if (routed.begin.size() < 2) continue;
      step.describe_spans(routed.tokens(), spans_);
      const experts::LayerDecision& decision = decide(routed, layer);
      if (decider_.policies().device->prefetch) look_ahead(step, layer);
      if (watch_) watch_(step, decision, *decider_.device());
    }
    decider_.end_step();
    HybridPhase& phase = step.prompt ? result_.prefill : result_.decode;
    const experts::HybridTimeline& clock = decider_.device()->clock();
    phase.steps += 1;
    phase.tokens += step.tokens();
    phase.seconds += clock.now() - before_;
    const experts::LinkUse& link = clock.link();
    phase.link.loads += link.loads - link_before_.loads;
    phase.link.rows += link.rows - link_before_.rows;
    phase.link.prefetches += link.prefetches - link_before_.prefetches;
    phase.link.updates += link.updates - link_before_.updates;
    phase.link.returns += link.returns - link_before_.returns;
    link_before_ = link;
    before_ = clock.now();
  }

  const experts::LayerDecision& decide(const RoutedLayer& routed, std::uint32_t layer) {
    const RecordedEvent recorded = routed.recorded();
    const experts::ScoresView scores = recorded.seen(layer, steps_.experts, spans_, scores_);
    const experts::Routing& routing =
        routes() ? decider_.route(scores) : decider_.follow(scores, routed.choices, routed.begin);
    // Prompts are routed as the model does, if its experts are the best ones.
    if (routes() && in_prompt_) result_.recorded_differs += recorded.differing(routing);
    count_own(layer, routing);
    const experts::LayerDecision& decision = decider_.decide();
    count_host(*decision.outcome);
    if (!log_) return decision;
    line_.clear();
    experts::append_decision(line_, events_++, layer, decision);
    log_(line_);
    return decision;
  }

  // Before the layer is decided, which changes what is resident.
  void count_own(std::uint32_t layer, const experts::Routing& routing) {
    is_own_.assign(steps_.experts, 0);
    if (routing.exact_begin.empty())
      for (const experts::Choice& one : routing.choices) is_own_[one.expert] = 1;
    for (const std::uint16_t expert : routing.exact) is_own_[expert] = 1;
    OwnExperts& own = (in_prompt_ ? result_.prefill : result_.decode).own;
    const experts::Residency& device = decider_.policies().device->residency(layer);
    for (std::uint32_t e = 0; e < steps_.experts; ++e) {
      if (is_own_[e] == 0) continue;
      own.active += 1;
      own.resident +=
          device.computable({static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(e)}) ? 1 : 0;
    }
  }

  void count_host(const experts::EventOutcome& outcome) {
    HybridHostCounts& counts = (in_prompt_ ? result_.prefill : result_.decode).host;
    counts.accesses += outcome.hits.size() + outcome.misses.size();
    counts.hits += outcome.hits.size();
    if (in_slices())
      counts.slices.add(outcome, sizes(), experts::least_parts(settings_.slices->precision.mode),
                        experts::Part::kMsb | experts::Part::kLsb);
  }

  // A layer whose tokens nobody predicts has no predicted logits.
  void look_ahead(const RoutedStep& step, std::uint32_t layer) {
    std::optional<experts::ScoresView> next;
    if (decider_.device_predictor() != experts::PredictorKind::kNone)
      next = predicted(step.layers[layer + 1], layer + 1);
    decider_.look_ahead_on_device(next ? &*next : nullptr);
  }

  experts::ScoresView predicted(const RoutedLayer& layer, std::uint32_t index) {
    ahead_.assign(layer.predicted.begin(), layer.predicted.end());
    const std::size_t tokens = ahead_.size() / steps_.experts;
    kernels::softmax_rows({}, ahead_.data(), tokens, steps_.experts);  // as the engine does
    return {.layer = index,
            .experts = steps_.experts,
            .tokens = static_cast<std::uint32_t>(tokens),
            .logits = layer.predicted,
            .scores = ahead_};
  }

  const RoutedSteps& steps_;
  const HybridSettings& settings_;
  const std::function<void(std::string_view)>& log_;
  const HybridWatch& watch_;
  const experts::EqualSizes counted_{{.full = 1, .sm = 1, .exp = 0}};  // every expert counts 1
  experts::LayerDecider decider_;
  HybridResult result_;
  double before_ = 0;
  experts::LinkUse link_before_;
  bool in_prompt_ = false;  // the running step
  std::uint64_t events_ = 0;
  std::string line_;
  std::vector<float> scores_;         // (T, N) of the running event
  std::vector<float> ahead_;          // … and as predicted of the next one
  std::vector<std::uint8_t> is_own_;  // (N) whether the model's own router chose it for some token
  std::vector<experts::SequenceSpan> spans_;
};

}  // namespace

HybridResult replay_hybrid(const RoutedSteps& steps, const HybridSettings& settings,
                           const std::function<void(std::string_view)>& log,
                           const std::function<bool()>& stop, const HybridWatch& watch) {
  check(settings, steps);
  return HybridReplay(steps, settings, log, watch).run(stop);
}

}  // namespace sluice::lab
