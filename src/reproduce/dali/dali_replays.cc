#include "reproduce/dali/dali_replays.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "experts/prefetch/prefetch.h"
#include "experts/registry.h"
#include "lab/replay/assumed_prediction.h"
#include "reproduce/preset_settings.h"

namespace sluice::reproduce {
namespace {

template <class Value>
void add_new(std::vector<Value>& list, const Value& value) {
  if (std::ranges::count(list, value) == 0) list.push_back(value);
}

}  // namespace

DaliGuess guess_of(const experts::PrefetchPolicy& prefetch) {
  const experts::PredictorKind predictor = prefetch.predictor;
  return predictor == experts::PredictorKind::kNone       ? DaliGuess::kNone
         : predictor == experts::PredictorKind::kResidual ? DaliGuess::kResidual
                                                          : DaliGuess::kRaw;
}

DaliSystem dali_system(const DaliModel& model, const experts::NamedPreset& preset, std::uint32_t slots) {
  DaliSystem system{.name = std::string(preset.name()),
                    .settings = settings_of(preset, slots, model.prefetch),
                    .guess = {}};
  system.guess = guess_of(*system.settings.prefetch);
  system.settings.workload.window.swaps = model.swaps;
  return system;
}

DaliSystem static_system(const DaliModel& model, experts::Named<experts::PlacementPolicy> placement,
                         std::uint32_t slots) {
  DaliSystem system = dali_system(model, "dali", slots);
  system.name = placement.name();
  system.guess = DaliGuess::kNone;
  system.settings.placement = placement;
  system.settings.prefetch = "none";
  system.settings.workload.window.swaps = 0;
  return system;
}

DaliTokens::DaliTokens(const WeightedTokens& all)
    : batches(all.part(all.tokens() / 3, all.tokens())),
      popularity(all.part(0, all.tokens() / 3).popularity()),
      transitions(all.part(0, all.tokens() / 3).transitions()) {}

DaliWork::DaliWork(const DaliModel& model, const DaliTokens& tokens, const BatchShape& shape,
                   std::uint64_t seed)
    : model_(model), tokens_(tokens), shape_(shape), seed_(seed), plain_(batch_of(tokens.batches, shape)) {}

const lab::RoutedSteps& DaliWork::steps(DaliGuess guess) {
  if (guess == DaliGuess::kNone) return plain_;
  const auto [at, is_new] = guessed_.try_emplace(guess);
  if (is_new) {
    at->second = plain_;
    lab::assume_predictions(guess == DaliGuess::kRaw ? model_.right_raw : model_.right_residual, seed_,
                            at->second);
  }
  return at->second;
}

lab::HybridResult DaliWork::run(const DaliSystem& system, const DaliMachine& machine,
                                const std::function<bool()>& stop, const lab::HybridWatch& watch) {
  lab::HybridSettings settings = system.settings;
  settings.costs = machine.machine.costs;
  settings.seed = seed_;
  settings.transitions = &tokens_.transitions;
  settings.workload.popularity = tokens_.popularity;
  return lab::replay_hybrid(steps(system.guess), settings, {}, stop, watch);
}

double DaliCell::tpot_s() const {
  return result.decode.steps == 0 ? 0 : result.decode.seconds / static_cast<double>(result.decode.steps);
}
double DaliCell::moe_s() const {
  return result.decode.steps == 0 ? 0 : result.decode.counts.moe / static_cast<double>(result.decode.steps);
}
double DaliCell::prefill_s() const { return result.prefill.seconds; }
double DaliCell::demand_share() const {
  return result.decode.seconds == 0 ? 0 : result.decode.link.loads / result.decode.seconds;
}
double DaliCell::link_share() const {
  const experts::LinkUse& link = result.decode.link;
  const double busy = link.loads + link.rows + link.prefetches + link.updates;
  return result.decode.seconds == 0 ? 0 : busy / result.decode.seconds;
}
double DaliCell::imbalance_s() const {
  return result.decode.steps == 0 ? 0
                                  : result.decode.counts.imbalance / static_cast<double>(result.decode.steps);
}

Json to_json(const DaliCell& cell) {
  const experts::DeviceCounts& counts = cell.result.decode.counts;
  return {{"model", cell.model},
          {"machine", cell.machine},
          {"system", cell.system},
          {"batch", cell.batch},
          {"slots", cell.slots},
          {"tpot_s", cell.tpot_s()},
          {"moe_s", cell.moe_s()},
          {"prefill_s", cell.prefill_s()},
          {"link_share", cell.link_share()},
          {"demand_share", cell.demand_share()},
          {"imbalance_s", cell.imbalance_s()},
          {"d_hit", counts.d_hit()},
          {"a_hit", counts.a_hit()},
          {"token_hit", counts.token_hit()},
          {"copies", {{"loads", counts.loads}, {"streamed", counts.streamed}, {"updates", counts.updates}}},
          {"prefetch",
           {{"sent", counts.prefetch.sent},
            {"used", counts.prefetch.used},
            {"late", counts.prefetch.late},
            {"wasted", counts.prefetch.wasted}}},
          {"fallbacks", cell.result.fallbacks}};
}

const DaliCell& DaliTable::find(const std::string& model, const std::string& machine,
                                const std::string& system, std::uint32_t batch, std::uint32_t slots) const {
  for (const DaliCell& cell : cells_)
    if (cell.model == model && cell.machine == machine && cell.system == system && cell.batch == batch &&
        cell.slots == slots)
      return cell;
  SLUICE_CHECK(false, "no cell of " + system + " for " + model + " on " + machine);
}

std::vector<std::uint32_t> DaliTable::batches(const std::string& model) const {
  std::vector<std::uint32_t> list;
  for (const DaliCell& cell : cells_)
    if (cell.model == model) add_new(list, cell.batch);
  return list;
}
std::vector<std::uint32_t> DaliTable::slots(const std::string& model) const {
  std::vector<std::uint32_t> list;
  for (const DaliCell& cell : cells_)
    if (cell.model == model) add_new(list, cell.slots);
  return list;
}
std::vector<std::string> DaliTable::machines(const std::string& model) const {
  std::vector<std::string> list;
  for (const DaliCell& cell : cells_)
    if (cell.model == model) add_new(list, cell.machine);
  return list;
}
std::vector<std::string> DaliTable::models() const {
  std::vector<std::string> list;
  for (const DaliCell& cell : cells_) add_new(list, cell.model);
  return list;
}
bool DaliTable::has(const std::string& model) const {
  return std::ranges::any_of(cells_, [&](const DaliCell& cell) { return cell.model == model; });
}

DaliRatio ratio_of(const DaliTable& table, const std::string& model, const std::string& machine,
                   const std::string& other, const std::string& system, std::uint32_t slots,
                   double (DaliCell::*of)() const) {
  DaliRatio found{.mean = 0, .least = 1e300, .most = 0};
  const std::vector<std::uint32_t> batches = table.batches(model);
  for (const std::uint32_t batch : batches) {
    const double ratio = (table.find(model, machine, other, batch, slots).*of)() /
                         (table.find(model, machine, system, batch, slots).*of)();
    found.mean += std::log(ratio) / static_cast<double>(batches.size());
    found.least = std::min(found.least, ratio);
    found.most = std::max(found.most, ratio);
  }
  found.mean = std::exp(found.mean);
  return found;
}

}  // namespace sluice::reproduce
