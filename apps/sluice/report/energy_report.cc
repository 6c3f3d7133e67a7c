#include "report/energy_report.h"

#include "engine/engine.h"
#include "engine/run_report.h"
#include "engine/watch/statistics.h"
#include "lab/machine/run_on_machine.h"
#include "model/architecture.h"

namespace sluice::app {
namespace {

Json phase_json(const lab::RunPhase& phase) {
  return {{"tokens", phase.tokens},
          {"bytes_read", phase.traffic.flash},
          {"dram_bytes_read", phase.traffic.dram_read},
          {"dram_bytes_written", phase.traffic.flash + phase.traffic.dram_written},
          {"operations", phase.traffic.ops},
          {"joules_per_token", joules_json(phase.energy, static_cast<double>(phase.tokens))},
          {"seconds_per_token",
           {{"rest", phase.per_token(phase.rest_s)},
            {"compute", phase.per_token(phase.compute_s)},
            {"flash_wait", phase.per_token(phase.wait_s)},
            {"total", phase.per_token(phase.seconds())}}}};
}

}  // namespace

Json joules_json(const lab::Energy& energy, double tokens) {
  const auto per_token = [&](double joules) { return tokens > 0 ? joules / tokens : 0; };
  return {{"flash", per_token(energy.flash)},
          {"dram_read", per_token(energy.dram_read)},
          {"dram_write", per_token(energy.dram_write)},
          {"compute", per_token(energy.compute)},
          {"total", per_token(energy.total())}};
}

EnergyReport::EnergyReport(const engine::Engine& engine, const std::string& machine, bool wanted)
    : machine_(lab::find_machine(machine)) {
  if (wanted && lab::RunOnMachine::models(engine.report().model.config))
    watched_ = std::make_unique<lab::RunOnMachine>(engine, machine_);
}

EnergyReport::~EnergyReport() = default;

engine::RoutingObserver* EnergyReport::observer() const { return watched_.get(); }

Json EnergyReport::json() const {
  if (watched_ == nullptr) return nullptr;
  return {{"machine", machine_.name},
          {"prefill", phase_json(watched_->prefill())},
          {"decode", phase_json(watched_->decode())}};
}

}  // namespace sluice::app
