#include "reproduce/smoe/smoe.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/machine/cpu.h"
#include "base/stop_request.h"
#include "lab/replay/batches.h"
#include "reproduce/smoe/smoe_report.h"
#include "reproduce/smoe/smoe_results.h"

namespace sluice::reproduce {
namespace {

// Runs the stages in turn; each stores its findings in the results.
class SmoeReproducer {
 public:
  explicit SmoeReproducer(const SmoeReproduction& settings) : settings_(settings) {
    report_.title = "SMoE, tried again";
    report_.command = settings.command;
    report_.machine = "modelled: the paper's three cards, each beside hosts that it leaves open";
    report_.configuration = {
        .model = "shapes of deepseek-moe-16b, XVERSE-MoE-A4.2B, Qwen2-57B-A14B",
        .flags = fmt::format("{}seed {}, trained model {}", settings.quick ? "quick, " : "", settings.seed,
                             settings.trained ? settings.trained->model : "none"),
        .machine = fmt::format("modelled; the trained model on {}", cpu_info().model),
        .version = settings.version};
    results_.batches = {1, 3};
    if (settings.quick) results_.shape = {.output = 24, .sequences = 3};
  }

  Report run() {
    for (const SmoeSetting& setting : smoe_settings()) replays(setting);
    overlap();
    if (settings_.trained) trained();
    store_data();
    add_smoe_rows(results_, report_);
    add_smoe_pictures(results_, report_);
    return std::move(report_);
  }

 private:
  void stage(const std::string& text) const {
    stop_if(settings_.interrupted);
    if (settings_.on_stage) settings_.on_stage(text);
  }

  lab::RoutedSteps steps(const SmoeSetting& setting, SmoeRoutingKind kind, std::uint32_t batch) const {
    SmoeShape shape = results_.shape;
    shape.batch = batch;
    return smoe_steps(setting, kind, shape, settings_.seed);
  }

  void describe(const SmoeSetting& setting, SmoeRoutingKind kind, const lab::RoutedSteps& steps) {
    results_.routings.push_back({.setting = &setting,
                                 .kind = kind,
                                 .facts = routing_facts(steps),
                                 .ranks = rank_figures(steps),
                                 .accuracy = top_score_accuracy(steps, setting.alpha)});
  }

  void run(const std::vector<SmoeSystem>& systems, const lab::RoutedSteps& steps, const SmoePlace& place,
           SmoeTable& table) const {
    for (const SmoeSystem& system : systems)
      table.add(run_smoe(steps, place, system, settings_.seed, settings_.interrupted));
  }
  void both_ladders(const lab::RoutedSteps& steps, const SmoePlace& place, SmoeTable& table) const {
    run(smoe_ladder(), steps, place, table);
    std::vector<SmoeSystem> on_host = smoe_host_ladder();
    on_host.pop_back();  // the last rung is the same
    run(on_host, steps, place, table);
    run(smoe_idle_ladder(), steps, place, table);
  }

  void replays(const SmoeSetting& setting) {
    using enum SmoeRoutingKind;
    for (const std::uint32_t batch : results_.batches) {
      stage(fmt::format("{}: all systems, B = {}", setting.model, batch));
      const lab::RoutedSteps all = steps(setting, kFitted, batch);
      if (batch == 1) describe(setting, kFitted, all);
      for (const SmoePlace& place : smoe_places()) {
        if (place.setting != &setting) continue;
        both_ladders(all, place, results_.places);
        run(smoe_baselines(), all, place, results_.places);
        run({smoe_literal()}, all, place, results_.places);
      }
    }
  }

  void overlap() {
    using enum SmoeRoutingKind;
    const SmoePlace& place = smoe_place(kSmoeKnownPlace);
    for (const std::uint32_t batch : results_.batches) {
      stage(fmt::format("{}: overlap {}, B = {}", place.setting->model, kSecondOverlap, batch));
      const lab::RoutedSteps all = steps(*place.setting, kOverlap, batch);
      if (batch == 1) describe(*place.setting, kOverlap, all);
      both_ladders(all, place, results_.overlap);
    }
  }

  void trained() {
    stage("the trained model: routing, predictions, losses");
    SmoeTrainedSettings trained = *settings_.trained;
    trained.interrupted = settings_.interrupted;
    results_.trained = measure_smoe_trained(trained);
    stage("the trained model's routing, replayed");
    SmoePlace place = smoe_place(kSmoeKnownPlace);
    const lab::RoutedSteps& routing = results_.trained->routing;
    place.slots = routing.experts * place.slots / place.setting->experts;
    for (const std::uint32_t batch : results_.batches)
      both_ladders(lab::batched(routing, batch), place, results_.own);
  }

  void store_data() {
    const std::pair<const char*, const SmoeTable*> tables[] = {
        {"places", &results_.places}, {"overlap", &results_.overlap}, {"own", &results_.own}};
    for (const auto& [name, table] : tables) {
      report_.data[name] = Json::array();
      for (const SmoeCell& cell : table->cells()) report_.data[name].push_back(to_json(cell));
    }
    report_.data["routings"] = Json::array();
    for (const SmoeRoutingFound& one : results_.routings)
      report_.data["routings"].push_back(
          {{"setting", one.setting->name},
           {"overlap", one.facts.overlap},
           {"f_1", one.facts.f_1},
           {"mass", one.facts.mass},
           {"fitted", one.kind == SmoeRoutingKind::kFitted},
           {"score_by_rank", one.ranks.score},
           {"reuse_by_rank", one.ranks.reuse},
           {"predicted",
            {{"top_score", one.accuracy.precision()}, {"active", one.accuracy.active_share()}}}});
    report_.data["machines"] = Json::array();
    for (const SmoePlace& place : smoe_places()) {
      Json json = lab::to_json(*place.machine);
      json["place"] = place.label;
      json["slots"] = place.slots;
      json["alpha"] = place.setting->alpha;
      json["source"] = place.machine->source;
      report_.data["machines"].push_back(std::move(json));
    }
    if (results_.trained) report_.data["trained"] = to_json(*results_.trained);
    report_.data["quick"] = settings_.quick;
  }

  const SmoeReproduction& settings_;
  SmoeResults results_;
  Report report_;
};

}  // namespace

const SmoeRoutingFound& SmoeResults::routing(const SmoeSetting& setting, SmoeRoutingKind kind) const {
  for (const SmoeRoutingFound& one : routings)
    if (one.setting == &setting && one.kind == kind) return one;
  SLUICE_CHECK(false, "no routing of " + setting.name);
}

Report reproduce_smoe(const SmoeReproduction& settings) { return SmoeReproducer(settings).run(); }

}  // namespace sluice::reproduce
