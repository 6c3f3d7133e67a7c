#include "lab/machine/machine_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/setting.h"
#include "base/stop_request.h"
#include "experts/combination.h"
#include "experts/core/equal_sizes.h"
#include "experts/decision_log.h"
#include "experts/device_caches.h"
#include "experts/layer_decider.h"
#include "experts/policy_choice.h"
#include "lab/machine/expert_phase.h"

namespace sluice::lab {
namespace {

using experts::ExpertId, experts::Part, experts::Parts;

constexpr Parts kHighView = Part::kMsb | Part::kLsb;

void check(const RoutedSteps& steps, const SlicedModel& model, const MachineReplaySettings& settings) {
  experts::check_host_cache(*settings.cache);
  const std::array routers = {settings.router};
  experts::check_combination({.family = experts::Family::kSliced,
                              .routers = routers,
                              .cache = settings.cache,
                              .precision = settings.precision.mode,
                              .constraint = settings.constraint.mode,
                              .slices = &settings.slices});
  settings.precision.critical.validate(model.top_k());
  settings.cache_aware.validate_for(model.experts());
  settings.smoe.validate();
  const auto shape = [](std::uint32_t layers, std::uint32_t experts, std::uint32_t k) {
    return fmt::format("{} sparse layers of {} experts, top {}", layers, experts, k);
  };
  const std::string expected = shape(model.layers(), model.experts(), model.top_k()),
                    found = shape(steps.layers, steps.experts, steps.top_k);
  if (expected != found)
    throw Error(ErrorKind::kInvalid, "the trace was recorded from another model")
        .in(Setting::kShape)
        .expected(expected + ", as " + model.name())
        .found(found)
        .fix("give " + Setting::kShape + " with the model that was recorded");
  if (!steps.logits && settings.router->lossy)
    throw Error(ErrorKind::kUsage, "this router needs the logits of all experts, and the trace has none")
        .in(Setting::kRouter)
        .expected("a trace with router logits, as sluice trace writes it")
        .found(settings.router.name())
        .fix("use the router exact, or a trace of `sluice trace`");
  if (!steps.logits && settings.cache->scores == experts::CacheScores::kAll)
    throw Error(ErrorKind::kUsage, "this cache goes by the scores of all experts, and the trace has none")
        .in(Setting::kCache)
        .expected("a trace with router logits, as sluice trace writes it")
        .found(settings.cache.name())
        .fix("use the cache slice-lru or lru, or a trace of `sluice trace`");
  if (settings.memory < settings.bytes.of(experts::least_parts(settings.precision.mode)))
    throw Error(ErrorKind::kBudget, "no expert fits in this memory")
        .in(Setting::kMemoryExperts)
        .expected(fmt::format("at least {} bytes",
                              settings.bytes.of(experts::least_parts(settings.precision.mode))))
        .found(std::to_string(settings.memory))
        .fix("give more memory, or a model with smaller experts (" + Setting::kShape + ")");
}

experts::CacheConfig cache_config(const MachineReplaySettings& settings, std::uint32_t top_k) {
  experts::CacheConfig config;
  config.workload.top_k = top_k;
  config.keep = experts::kept_slices(settings.precision.mode, settings.cache->sliced);
  config.seed = settings.seed;
  config.slices = settings.slices;
  return config;
}

experts::ConstraintConfig constraint_config(const MachineReplaySettings& settings) {
  experts::ConstraintConfig config = settings.constraint;
  experts::set_views(settings.precision.mode, config);
  return config;
}

experts::LayerPolicies policies_of(const RoutedSteps& steps, const MachineReplaySettings& settings,
                                   const experts::ExpertSizes& sizes) {
  return experts::make_policies({.precision = settings.precision,
                                 .limits = constraint_config(settings),
                                 .router = settings.router.row(),
                                 .router_config = {.select = {.top_k = steps.top_k},
                                                   .cache_aware = settings.cache_aware,
                                                   .smoe = settings.smoe},
                                 .host = experts::HostCaches{.cache = *settings.cache,
                                                             .config = cache_config(settings, steps.top_k),
                                                             .capacity = settings.memory}},
                                sizes);
}

class MachineReplay {
 public:
  MachineReplay(const RoutedSteps& steps, const SlicedModel& model, const Machine& machine,
                const MachineReplaySettings& settings, const DecisionObserver& observer)
      : steps_(steps),
        model_(model),
        machine_(machine),
        settings_(settings),
        observer_(observer),
        sizes_(settings.bytes),
        decider_(policies_of(steps, settings, sizes_), {steps.layers, steps.top_k}),
        clock_(machine) {
    result_.critical.resize(steps.top_k + std::size_t{1});
  }

  MachineReplayResult run(const std::function<bool()>& stop) {
    for (std::size_t s = 0; s < steps_.steps.size(); ++s) {
      stop_if(stop, s, 64);
      step(steps_.steps[s]);
    }
    result_.prompts = steps_.prompts;
    const experts::MissConstraint& constraint = *decider_.policies().constraint;
    result_.accounted = constraint.account();
    result_.replaced = constraint.replaced();
    result_.violations = constraint.violations();
    result_.lambda = constraint.lambda().value_or(settings_.cache_aware.lambda);
    result_.changes = decider_.decode_changes();
    result_.decision_hash = experts::decision_hash(decider_.policies().residencies);
    return std::move(result_);
  }

 private:
  void step(const RoutedStep& step) {
    step.describe_spans(step.tokens(), spans_);
    decider_.begin_step(spans_);
    MachinePhase& phase = step.prompt ? result_.prefill : result_.decode;
    stretches_.clear();
    for (const RoutedStretch& one : step.sequences)
      stretches_.push_back({static_cast<double>(one.tokens), static_cast<double>(one.context)});
    const SlicedModel::Work rest = model_.rest(machine_, stretches_);
    Traffic traffic = rest.traffic;
    double seconds = rest.seconds;
    const experts::MissAccount before = phase.account;
    for (std::uint32_t layer = 0; layer < steps_.layers; ++layer) {
      if (step.layers[layer].begin.size() < 2) continue;
      const ExpertPhase took = this->layer(step, layer, phase, traffic);
      seconds += took.seconds;
      phase.compute_s += took.xpu_s;
      phase.wait_s += took.wait_s();
    }
    const Energy energy = machine_.energy(traffic);
    phase.steps += 1;
    phase.tokens += step.tokens();
    phase.traffic += traffic;
    phase.energy += energy;
    phase.seconds += seconds;
    phase.rest_s += rest.seconds;
    decider_.end_step();
    if (step.prompt) return;
    result_.steps.push_back({.joules = energy.total(),
                             .seconds = seconds,
                             .missed = phase.account.missed - before.missed,
                             .requested = phase.account.requested - before.requested});
  }

  ExpertPhase layer(const RoutedStep& step, std::uint32_t layer, MachinePhase& phase, Traffic& traffic) {
    step.describe_spans(step.layers[layer].tokens(), spans_);
    const experts::Routing& routing = route(step.layers[layer], layer);
    const experts::LayerDecision& decision = decider_.decide();
    const experts::EventOutcome& outcome = *decision.outcome;
    if (!step.prompt) count_critical(routing);
    phase.account.add(outcome, sizes_, experts::least_parts(settings_.precision.mode), kHighView);
    phase.requests += decision.experts.size();
    phase.hits += outcome.hits.size();
    if (observer_) observer_(events_, layer, outcome);
    ++events_;
    return charge(decision, traffic);
  }

  // The routing of the layer, by the router, or as recorded where there are no logits. Uses scores_.
  const experts::Routing& route(const RoutedLayer& layer, std::uint32_t index) {
    const RecordedEvent recorded = layer.recorded();
    const experts::ScoresView scores = recorded.seen(index, steps_.experts, spans_, scores_);
    if (!steps_.logits) return decider_.follow(scores, recorded.choices, recorded.begin);
    const experts::Routing& routing = decider_.route(scores);
    result_.recorded_differs += recorded.differing(routing);
    return routing;
  }

  void count_critical(const experts::Routing& routing) {
    for (std::size_t t = 0; t + 1 < routing.begin.size(); ++t) {
      const auto token = routing.token(static_cast<std::uint32_t>(t));
      const auto critical = std::ranges::count(token, experts::Precision::kHigh, &experts::Choice::precision);
      result_.critical[std::min<std::size_t>(static_cast<std::size_t>(critical), steps_.top_k)] += 1;
    }
  }

  // In the order in which the event asks for its experts.
  ExpertPhase charge(const experts::LayerDecision& decision, Traffic& traffic) {
    uses_.assign(steps_.experts, {});
    for (const auto* used : {&decision.outcome->hits, &decision.outcome->misses})
      for (const experts::Admission& one : *used) uses_[one.id.index].admission = &one;
    for (std::size_t i = 0; i < decision.experts.size(); ++i)
      uses_[decision.experts[i].index].tokens = decision.tokens[i];
    work_.clear();
    for (const ExpertId id : decision.slices.ranked) {
      const experts::Admission& one = *uses_[id.index].admission;
      const Parts read = one.to_read();
      ExpertWork work = {.msb_read = read.has(Part::kMsb) ? settings_.bytes.msb : 0,
                         .lsb_read = read.has(Part::kLsb) ? settings_.bytes.lsb : 0,
                         .view = settings_.bytes.of(one.view),
                         .ops = model_.expert_ops(uses_[id.index].tokens)};
      traffic.flash += static_cast<double>(work.msb_read + work.lsb_read);
      traffic.dram_read += static_cast<double>(work.view);
      traffic.ops += work.ops;
      work_.push_back(work);
    }
    // Nobody waits for what the cache brings in besides, but it is read.
    for (const experts::Update& update : decision.outcome->updates)
      traffic.flash += static_cast<double>(settings_.bytes.of(update.parts - update.before));
    return clock_.time(work_);
  }

  const RoutedSteps& steps_;
  const SlicedModel& model_;
  const Machine& machine_;
  const MachineReplaySettings& settings_;
  const DecisionObserver& observer_;
  struct Use {
    const experts::Admission* admission = nullptr;
    std::uint32_t tokens = 0;
  };

  const experts::EqualSizes sizes_;
  experts::LayerDecider decider_;
  ExpertClock clock_;
  MachineReplayResult result_;
  std::uint64_t events_ = 0;
  std::vector<float> scores_;  // (T, N) of the running event
  std::vector<Use> uses_;      // by expert of the layer
  std::vector<ExpertWork> work_;
  std::vector<SlicedModel::Stretch> stretches_;
  std::vector<experts::SequenceSpan> spans_;  // the running event's
};

}  // namespace

MachineReplayResult replay_on_machine(const RoutedSteps& steps, const SlicedModel& model,
                                      const Machine& machine, const MachineReplaySettings& settings,
                                      const DecisionObserver& observer, const std::function<bool()>& stop) {
  check(steps, model, settings);
  return MachineReplay(steps, model, machine, settings, observer).run(stop);
}

}  // namespace sluice::lab
