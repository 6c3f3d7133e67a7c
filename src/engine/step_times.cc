#include "engine/step_times.h"

#include <algorithm>

#include "engine/plan/profile.h"
#include "engine/run_report.h"
#include "engine/session/step.h"
#include "engine/watch/statistics.h"
#include "experts/layer_decider.h"
#include "model/architecture.h"

namespace sluice::engine {
namespace {

// What a step for one token has beside its layers.
double head_seconds(const RunReport& run) {
  const Profile& profile = run.profile.value();
  const double layers = sparse_layers_of_step(run.model.config) * profile.device_costs().device.gate.of(1);
  return std::max(0.0, profile.rest.median - layers);
}

}  // namespace

StepTimes predicted_step(const RunReport& run) {
  const auto steps = static_cast<double>(run.statistics.decode.steps);
  if (steps == 0) return {};
  const experts::DeviceCounts& counts = run.decider.device()->counts(experts::StepKind::kDecode);
  return {counts.layers / steps + head_seconds(run), counts.moe / steps};
}

StepTimes measured_step(const RunReport& run) {
  const ExpertStatistics& decode = run.statistics.decode;
  const auto steps = static_cast<double>(decode.steps);
  if (steps == 0) return {};
  return {decode.seconds / steps, decode.moe_s / steps};
}

}  // namespace sluice::engine
