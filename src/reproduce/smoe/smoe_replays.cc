#include "reproduce/smoe/smoe_replays.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "experts/device_presets.h"
#include "experts/routing/score_classes.h"
#include "lab/replay/assumed_prediction.h"
#include "lab/replay/batches.h"
#include "reproduce/preset_settings.h"

namespace sluice::reproduce {
namespace {

double share(double part, double whole) { return whole == 0 ? 0 : part / whole; }

// Counts needed experts while a replay decides.
class NeedCounter {
 public:
  NeedCounter(const lab::RoutedSteps& steps, double alpha)
      : alpha_(alpha), top_k_(steps.top_k), is_top_(steps.experts), scores_(steps.experts) {}

  void operator()(const lab::RoutedStep& step, const experts::LayerDecision& decision) {
    if (step.prompt) return;
    find_top(step.layers[decision.experts.front().layer].logits);
    for (std::size_t i = 0; i < decision.experts.size(); ++i) {
      const experts::ExpertId id = decision.experts[i];
      const bool missing = is_missing(decision, i);
      (is_top_[id.index] != 0 ? found.top : found.low) += 1;
      (is_top_[id.index] != 0 ? found.top_missing : found.low_missing) += missing ? 1 : 0;
    }
  }

  NeededExperts found;

 private:
  void find_top(std::span<const float> logits) {
    std::ranges::fill(is_top_, std::uint8_t{0});
    for (std::size_t at = 0; at < logits.size(); at += scores_.size()) {
      const auto row = logits.subspan(at, scores_.size());
      const double most = *std::ranges::max_element(row);
      std::ranges::transform(row, scores_.begin(), [&](float z) { return std::exp(z - most); });
      classes_.classify(scores_, {}, top_k_, alpha_);
      for (const std::uint32_t e : classes_.top()) is_top_[e] = 1;
    }
  }

  // The placements of all rungs leave on the device what is there, so what the host computes is not.
  static bool is_missing(const experts::LayerDecision& decision, std::size_t i) {
    if (decision.assignment.unit[i] == experts::Unit::kHost) return true;
    const experts::DeviceUse& use =
        *std::ranges::find(decision.device->uses, decision.experts[i], &experts::DeviceUse::id);
    return use.from == experts::DeviceBytes::kLink || use.remaining > 0;
  }

  const double alpha_;
  const std::uint32_t top_k_;
  std::vector<std::uint8_t> is_top_;  // (N)
  std::vector<double> scores_;        // (N) of a token, times some positive number
  experts::ScoreClasses classes_;
};

}  // namespace

const std::vector<SmoeSystem>& smoe_ladder() {
  static const std::vector<SmoeSystem> rungs = {
      {"s-base", "s-base"}, {"s-ce", "s-ce"}, {"s-er", "s-er"}, {"s-pre", "s-pre"}, {"smoe", "smoe"}};
  return rungs;
}

const std::vector<SmoeSystem>& smoe_host_ladder() {
  static const std::vector<SmoeSystem> rungs = {{"s-base, host", "s-base", "layer-split"},
                                                {"s-ce, host", "s-ce", "layer-split"},
                                                {"s-er, host", "s-er", "layer-split"},
                                                {"s-pre, host", "s-pre", "layer-split"},
                                                {"smoe", "smoe"}};
  return rungs;
}

const std::vector<SmoeSystem>& smoe_idle_ladder() {
  constexpr experts::Admit kIdle = experts::Admit::kIdle;
  static const std::vector<SmoeSystem> rungs = {{"s-ce, host, idle", "s-ce", "layer-split", kIdle},
                                                {"s-er, host, idle", "s-er", "layer-split", kIdle},
                                                {"s-pre, host, idle", "s-pre", "layer-split", kIdle},
                                                {"smoe, idle", "smoe", {}, kIdle}};
  return rungs;
}

const std::vector<SmoeSystem>& smoe_baselines() {
  static const std::vector<SmoeSystem> systems = {{"s-llamacpp", "s-llamacpp", {}, {}, true},
                                                  {"s-deepspeed", "s-deepspeed"},
                                                  {"s-moe-infinity", "s-moe-infinity"},
                                                  {"hybrimoe", "hybrimoe"}};
  return systems;
}

const SmoeSystem& smoe_literal() {
  static const SmoeSystem system = {"smoe, literal", "smoe", "smoe-balance-literal"};
  return system;
}

lab::RoutedSteps smoe_steps(const SmoeSetting& setting, SmoeRoutingKind kind, const SmoeShape& shape,
                            std::uint64_t seed) {
  lab::SyntheticRouting routing = smoe_routing(kind);
  routing.layers = setting.layers;
  routing.experts = setting.experts;
  routing.top_k = setting.top_k;
  routing.prompts = shape.sequences;
  routing.tokens = shape.prompt + shape.output;
  routing.seed = seed;
  lab::SyntheticTrace trace(routing, shape.prompt);
  lab::RoutedSteps steps = lab::batched(lab::read_routed_steps(trace), shape.batch);
  lab::assume_errors(kPredictionError, seed, steps);
  return steps;
}

SmoeCell run_smoe(const lab::RoutedSteps& steps, const SmoePlace& place, const SmoeSystem& system,
                  std::uint64_t seed, const std::function<bool()>& stop) {
  lab::HybridSettings settings =
      settings_of(system.preset, place.slots, experts::usual_prefetch_size(steps.experts));
  settings.prefetch_size = std::min(settings.prefetch_size, steps.experts);
  if (!system.placement.empty()) {
    settings.placement = system.placement;
    settings.prefill_placement = "device";
    settings.prefill_from = 1;
  }
  if (system.admit) settings.workload.admit = *system.admit;
  settings.smoe.alpha = place.setting->alpha;
  settings.costs = place.machine->costs;
  settings.seed = seed;
  SmoeCell cell{
      .place = place.label, .system = system.name, .prompts = steps.prompts, .result = {}, .needed = {}};
  for (const lab::RoutedStep& step : steps.steps)
    if (!step.prompt) cell.batch = std::max(cell.batch, step.tokens());
  NeedCounter counter(steps, place.setting->alpha);
  cell.result = lab::replay_hybrid(steps, settings, {}, stop,
                                   [&](const lab::RoutedStep& step, const experts::LayerDecision& decision,
                                       const experts::DeviceDecider&) { counter(step, decision); });
  cell.needed = counter.found;
  return cell;
}

double SmoeCell::tpot_s() const {
  return share(result.decode.seconds, static_cast<double>(result.decode.steps));
}
double SmoeCell::ttft_s() const { return share(result.prefill.seconds, static_cast<double>(prompts)); }
double SmoeCell::hit() const {
  const experts::DeviceCounts& counts = result.decode.counts;
  const std::uint64_t there = counts.resident + counts.prefetch.used - counts.prefetch.late;
  return share(static_cast<double>(there), static_cast<double>(counts.active));
}
double SmoeCell::own_hit() const { return result.decode.own.a_hit(); }
double SmoeCell::moved() const {
  return share(result.decode_changes.mass_lost, static_cast<double>(result.decode_changes.tokens));
}
double SmoeCell::host_s() const {
  return share(result.decode.counts.host, static_cast<double>(result.decode.steps));
}
double SmoeCell::load_s() const {
  return share(result.decode.link.loads, static_cast<double>(result.decode.steps));
}
double SmoeCell::prefetch_s() const {
  return share(result.decode.link.prefetches, static_cast<double>(result.decode.steps));
}

Json to_json(const SmoeCell& cell) {
  const experts::DeviceCounts& counts = cell.result.decode.counts;
  return {{"place", cell.place},
          {"system", cell.system},
          {"batch", cell.batch},
          {"tpot_s", cell.tpot_s()},
          {"ttft_s", cell.ttft_s()},
          {"hit", cell.hit()},
          {"own_hit", cell.own_hit()},
          {"moved", cell.moved()},
          {"substituted", 1 - cell.result.decode_changes.agreement()},
          {"host_s", cell.host_s()},
          {"load_s", cell.load_s()},
          {"prefetch_s", cell.prefetch_s()},
          {"copies", {{"loads", counts.loads}, {"streamed", counts.streamed}, {"updates", counts.updates}}},
          {"prefetch",
           {{"sent", counts.prefetch.sent},
            {"used", counts.prefetch.used},
            {"late", counts.prefetch.late},
            {"kept", counts.prefetch.kept},
            {"wasted", counts.prefetch.wasted}}},
          {"missing", {{"top", cell.needed.top_share()}, {"low", cell.needed.low_share()}}}};
}

const SmoeCell& SmoeTable::find(const std::string& place, const std::string& system,
                                std::uint32_t batch) const {
  for (const SmoeCell& cell : cells_)
    if (cell.place == place && cell.system == system && cell.batch == batch) return cell;
  SLUICE_CHECK(false, "no cell of " + system + " at " + place);
}

bool SmoeTable::has(const std::string& place, const std::string& system) const {
  return std::ranges::any_of(
      cells_, [&](const SmoeCell& cell) { return cell.place == place && cell.system == system; });
}

}  // namespace sluice::reproduce
