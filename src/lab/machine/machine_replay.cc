#include "lab/machine/machine_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "experts/combination.h"
#include "experts/registry.h"
#include "kernels/elementwise/elementwise.h"
#include "lab/machine/expert_phase.h"

namespace sluice::lab {
namespace {

using experts::ExpertId, experts::Part, experts::Parts;

constexpr std::size_t kStepsBetweenStops = 64;
constexpr Parts kHighView = Part::kMsb | Part::kLsb;

void check(const RoutedSteps& steps, const SlicedModel& model, const MachineReplaySettings& settings) {
  const std::array<std::string_view, 1> routers = {settings.router};
  experts::check_combination({.family = experts::Family::kSliced,
                              .routers = routers,
                              .cache = settings.cache,
                              .precision = settings.precision.mode,
                              .constraint = settings.constraint.mode,
                              .slices = &settings.slices});
  settings.precision.critical.validate(model.top_k());
  settings.cache_aware.validate_for(model.experts());
  const auto shape = [](std::uint32_t layers, std::uint32_t experts, std::uint32_t k) {
    return fmt::format("{} sparse layers of {} experts, top {}", layers, experts, k);
  };
  const std::string expected = shape(model.layers(), model.experts(), model.top_k()),
                    found = shape(steps.layers, steps.experts, steps.top_k);
  if (expected != found)
    throw Error(ErrorKind::kInvalid, "the trace was recorded from another model")
        .in("--shape")
        .expected(expected + ", as " + model.name())
        .found(found);
  if (!steps.logits && experts::find_router(settings.router).lossy)
    throw Error(ErrorKind::kUsage, "this router needs the logits of all experts, and the trace has none")
        .in("--router")
        .found(settings.router)
        .fix("use the router exact, or a trace of `sluice trace`");
  if (settings.memory < settings.bytes.of(experts::least_parts(settings.precision.mode)))
    throw Error(ErrorKind::kBudget, "no expert fits in this memory")
        .in("--memory-experts")
        .expected(fmt::format("at least {} bytes",
                              settings.bytes.of(experts::least_parts(settings.precision.mode))))
        .found(std::to_string(settings.memory));
}

experts::CacheConfig cache_config(const MachineReplaySettings& settings) {
  experts::CacheConfig config;
  const bool sliced = experts::find_cache(settings.cache).sliced;
  config.keep = sliced ? kHighView : experts::least_parts(settings.precision.mode);
  config.seed = settings.seed;
  config.slices = settings.slices;
  return config;
}

experts::ConstraintConfig constraint_config(const MachineReplaySettings& settings) {
  experts::ConstraintConfig config = settings.constraint;
  config.low = experts::least_parts(settings.precision.mode);
  config.high = kHighView;
  return config;
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
        residency_(experts::make_cache(settings.cache, cache_config(settings)), sizes_, settings.memory),
        constraint_(constraint_config(settings), sizes_),
        clock_(machine) {
    experts::RouterConfig config;
    config.select.top_k = steps.top_k;
    config.cache_aware = settings.cache_aware;
    config.constraint = settings.constraint.mode == experts::ConstraintMode::kNone ? nullptr : &constraint_;
    router_ = experts::find_router(settings.router).make(config);
    result_.critical.resize(steps.top_k + std::size_t{1});
  }

  MachineReplayResult run(const std::function<bool()>& stop) {
    for (std::size_t s = 0; s < steps_.steps.size(); ++s) {
      if (s % kStepsBetweenStops == 0 && stop && stop()) throw Error(ErrorKind::kInterrupted, "interrupted");
      step(steps_.steps[s], s);
    }
    result_.prompts = steps_.prompts;
    result_.accounted = constraint_.account();
    result_.replaced = constraint_.replaced();
    result_.violations = constraint_.violations();
    result_.lambda = constraint_.lambda().value_or(settings_.cache_aware.lambda);
    result_.decision_hash = residency_.decision_hash();
    return std::move(result_);
  }

 private:
  void step(const RoutedStep& step, std::size_t index) {
    if (!step.prompt && (index == 0 || steps_.steps[index - 1].prompt)) constraint_.begin_generation();
    router_->begin_forward();
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
      const ExpertPhase took = this->layer(step.layers[layer], layer, step.prompt, phase, traffic);
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
    if (step.prompt) return;
    constraint_.end_step();
    result_.steps.push_back({.joules = energy.total(),
                             .seconds = seconds,
                             .missed = phase.account.missed - before.missed,
                             .requested = phase.account.requested - before.requested});
  }

  ExpertPhase layer(const RoutedLayer& recorded, std::uint32_t layer, bool prompt, MachinePhase& phase,
                    Traffic& traffic) {
    route(recorded, layer, prompt);
    experts::set_precision(settings_.precision, routing_);
    demands_.gather(scores_, routing_);
    gather_used(layer);
    const Bytes allowance = prompt ? experts::kAnyBytes : constraint_.lsb_allowance(used_, residency_);
    const experts::SliceDemand demand = demands_.demand(allowance);
    const experts::EventOutcome& outcome = residency_.on_event(used_, {}, tokens_, demand);
    if (!prompt) {
      constraint_.on_event(outcome);
      result_.changes.add(scores_, routing_);
      count_critical();
    }
    phase.account.add(outcome, sizes_, experts::least_parts(settings_.precision.mode), kHighView);
    phase.requests += used_.size();
    phase.hits += outcome.hits.size();
    if (observer_) observer_(residency_.events() - 1, layer, outcome);
    return charge(outcome, demand.ranked, traffic);
  }

  // Fills scores_ and routing_.
  void route(const RoutedLayer& recorded, std::uint32_t layer, bool prompt) {
    const std::uint32_t tokens = recorded.tokens();
    scores_ = {.layer = layer, .experts = steps_.experts, .tokens = tokens, .prompt = prompt};
    score_.assign(std::size_t{tokens} * steps_.experts, 0);
    if (steps_.logits) {
      std::ranges::copy(recorded.logits, score_.begin());
      kernels::softmax_rows({}, score_.data(), tokens, steps_.experts);
      scores_.logits = recorded.logits;
      scores_.scores = score_;
      router_->route(scores_, residency_, routing_);
      compare_with(recorded);
      return;
    }
    for (std::uint32_t t = 0; t < tokens; ++t)
      for (std::uint32_t c = recorded.begin[t]; c < recorded.begin[t + 1]; ++c)
        score_[std::size_t{t} * steps_.experts + recorded.choices[c].expert] = recorded.choices[c].weight;
    scores_.scores = score_;
    routing_.choices = recorded.choices;
    routing_.begin = recorded.begin;
  }

  void compare_with(const RoutedLayer& recorded) {
    const bool exact = routing_.exact_begin.empty();
    for (std::uint32_t t = 0; t < recorded.tokens(); ++t) {
      const auto theirs =
          std::span(recorded.choices).subspan(recorded.begin[t], recorded.begin[t + 1] - recorded.begin[t]);
      const bool same =
          exact ? std::ranges::equal(theirs, routing_.token(t), {}, &experts::Choice::expert,
                                     &experts::Choice::expert)
                : std::ranges::equal(theirs,
                                     std::span(routing_.exact)
                                         .subspan(routing_.exact_begin[t],
                                                  routing_.exact_begin[t + 1] - routing_.exact_begin[t]),
                                     {}, &experts::Choice::expert);
      result_.recorded_differs += same ? 0 : 1;
    }
  }

  // Gathers the event's experts, ascending, and their tokens.
  void gather_used(std::uint32_t layer) {
    count_.assign(steps_.experts, 0);
    for (const experts::Choice& choice : routing_.choices) count_[choice.expert] += 1;
    used_.clear();
    tokens_.clear();
    for (std::uint32_t e = 0; e < steps_.experts; ++e) {
      if (count_[e] == 0) continue;
      used_.push_back({static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(e)});
      tokens_.push_back(count_[e]);
    }
  }

  void count_critical() {
    for (std::size_t t = 0; t + 1 < routing_.begin.size(); ++t) {
      const auto token = routing_.token(static_cast<std::uint32_t>(t));
      const auto critical = std::ranges::count(token, experts::Precision::kHigh, &experts::Choice::precision);
      result_.critical[std::min<std::size_t>(static_cast<std::size_t>(critical), steps_.top_k)] += 1;
    }
  }

  ExpertPhase charge(const experts::EventOutcome& outcome, std::span<const ExpertId> ranked,
                     Traffic& traffic) {
    admissions_.assign(steps_.experts, nullptr);
    for (const auto* used : {&outcome.hits, &outcome.misses})
      for (const experts::Admission& one : *used) admissions_[one.id.index] = &one;
    work_.clear();
    for (const ExpertId id : ranked) {
      const experts::Admission& one = *admissions_[id.index];
      const Parts read = one.to_read();
      ExpertWork work = {.msb_read = read.has(Part::kMsb) ? settings_.bytes.msb : 0,
                         .lsb_read = read.has(Part::kLsb) ? settings_.bytes.lsb : 0,
                         .view = settings_.bytes.of(one.view),
                         .ops = model_.expert_ops(count_[id.index])};
      traffic.flash += static_cast<double>(work.msb_read + work.lsb_read);
      traffic.dram_read += static_cast<double>(work.view);
      traffic.ops += work.ops;
      work_.push_back(work);
    }
    return clock_.time(work_);
  }

  const RoutedSteps& steps_;
  const SlicedModel& model_;
  const Machine& machine_;
  const MachineReplaySettings& settings_;
  const DecisionObserver& observer_;
  const EqualSlices sizes_;
  experts::Residency residency_;
  experts::MissConstraint constraint_;
  std::unique_ptr<experts::Router> router_;
  experts::SliceDemands demands_;
  ExpertClock clock_;
  MachineReplayResult result_;
  // State of the running event.
  experts::ScoresView scores_;
  experts::Routing routing_;
  std::vector<float> score_;
  std::vector<std::uint32_t> count_, tokens_;
  std::vector<ExpertId> used_;
  std::vector<const experts::Admission*> admissions_;  // by expert of the layer
  std::vector<ExpertWork> work_;
  std::vector<SlicedModel::Stretch> stretches_;
};

}  // namespace

MachineReplayResult replay_on_machine(const RoutedSteps& steps, const SlicedModel& model,
                                      const Machine& machine, const MachineReplaySettings& settings,
                                      const DecisionObserver& observer, const std::function<bool()>& stop) {
  check(steps, model, settings);
  return MachineReplay(steps, model, machine, settings, observer).run(stop);
}

}  // namespace sluice::lab
