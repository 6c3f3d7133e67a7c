#include "report/start_warnings.h"

#include "engine/device_check.h"
#include "streams/standard_error.h"

namespace sluice::app {

void write_start_warnings(const engine::RunReport& run) {
  if (!run.isa_warning.empty()) write_warning(run.isa_warning);
  if (const std::string device = engine::device_warning(run.plan); !device.empty()) write_warning(device);
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
