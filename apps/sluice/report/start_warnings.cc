#include "report/start_warnings.h"

#include "engine/device_check.h"
#include "streams/standard_error.h"

namespace sluice::app {

std::vector<std::string> start_warnings(const engine::RunReport& run) {
  std::vector<std::string> warnings = {run.isa_warning, engine::device_warning(run.plan)};
  std::erase(warnings, "");
  return warnings;
}

void write_start_warnings(const engine::RunReport& run) {
  for (const std::string& warning : start_warnings(run)) write_warning(warning);
}

Json device_faults_json(std::span<const kernels::UnitFault> faults) {
  Json json = Json::array();
  for (const kernels::UnitFault& fault : faults)
    json.push_back({{"operation", fault.operation},
                    {"found", fault.found},
                    {"of", fault.of_dense ? "dense" : "experts"}});
  return json;
}

}  // namespace sluice::app
