// Energy and time that a run would take on a modelled machine, as JSON, for `run`, `eval` and `simulate`.
#pragma once

#include <memory>
#include <string>

#include "base/json/json.h"
#include "lab/machine/machine.h"

namespace sluice::engine {
class Engine;
class RoutingObserver;
}  // namespace sluice::engine
namespace sluice::lab {
class RunOnMachine;
}

namespace sluice::app {

// {flash, dram_read, dram_write, compute, total}: joules per token.
Json joules_json(const lab::Energy& energy, double tokens);

// Observes the steps of an engine from now on, except for models without experts or with an encoder. An
// engine has one observer: pass observer() to a list if there are others. The engine must outlive it.
class EnergyReport {
 public:
  // `machine`: as for lab::find_machine. `wanted`: false observes nothing, for runs that print no JSON.
  EnergyReport(const engine::Engine& engine, const std::string& machine, bool wanted);
  ~EnergyReport();
  engine::RoutingObserver* observer() const;  // may be null
  // {"machine", "prefill": {…}, "decode": {"tokens", "bytes_read", "joules_per_token", "seconds_per_token"}};
  // null if nothing was observed.
  Json json() const;

 private:
  lab::Machine machine_;
  std::unique_ptr<lab::RunOnMachine> watched_;
};

}  // namespace sluice::app
